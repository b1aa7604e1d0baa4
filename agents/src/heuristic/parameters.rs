//! Parameters of the published policies: one typed table a policy. Defaults, units, ranges, sources, the JSON
//! schema and every check come from the table's type.

use std::fmt::Debug;
use std::sync::Arc;

use goodput_env::policy::Policy;
use schemars::{JsonSchema, Schema, json_schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;

use super::expectation::Expectation;

/// Values of parameters by name, as a file or a command line gives them.
pub type ParameterValues = Map<String, Value>;

/// Maker of a policy for a seed.
pub type PolicyMaker = Arc<dyn Fn(u64) -> Box<dyn Policy> + Send + Sync>;

/// Parameter of a policy, as the list of parameters shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyParameter {
    /// Name of the parameter in files and on the command line.
    pub name: String,
    /// Description of the parameter.
    pub about: String,
    /// Value where none is given.
    pub default: Value,
    /// Unit of the value; empty where the value has none.
    pub unit: String,
    /// Values that the parameter allows.
    pub expected: Expectation,
    /// Publication that has the parameter, and where the default is from.
    pub source: String,
}

/// Values of parameters that a policy does not accept.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ParameterError {
    /// The policy has no parameter of the name.
    #[error("no parameter is called {name:?}")]
    Unknown {
        /// Name that was given.
        name: String,
        /// Names of the parameters that the policy has.
        known: Vec<String>,
    },
    /// The value is of another type or outside the range.
    #[error("{name} is {value}, expected {expected}")]
    Value {
        /// Name of the parameter.
        name: String,
        /// Value that was given.
        value: Value,
        /// Values that the parameter allows, in words.
        expected: String,
    },
}

/// Policy with parameters that have been checked.
#[derive(Clone)]
pub struct Prepared {
    /// Parameters that differ from their defaults.
    pub changed: ParameterValues,
    /// Maker of the policy.
    pub make: PolicyMaker,
}

/// Constructor of a listed policy, whatever the type of its table of parameters.
pub trait Constructor: Debug + Sync {
    /// JSON schema of the table of parameters.
    fn schema(&self) -> Schema;

    /// Table of parameters with every default.
    fn defaults(&self) -> ParameterValues;

    /// Policy with `given` in place of defaults.
    ///
    /// # Errors
    /// [`ParameterError`] for the first value that the table does not accept.
    fn prepare(&self, given: &ParameterValues) -> Result<Prepared, ParameterError>;

    /// Policy with every default.
    fn build(&self, seed: u64) -> Box<dyn Policy>;

    /// Parameters of the policy, by name.
    fn parameters(&self) -> Vec<PolicyParameter> {
        parameters_of(&self.schema(), &self.defaults())
    }
}

/// Parameters of a table with this schema and these defaults, by name.
fn parameters_of(schema: &Schema, defaults: &ParameterValues) -> Vec<PolicyParameter> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, property): (&String, &Value)| {
        let text = |key: &str| property[key].as_str().unwrap_or_default().to_owned();
        PolicyParameter {
            name: name.clone(),
            about: text("description"),
            default: defaults.get(name).cloned().unwrap_or_default(),
            unit: text("x-unit"),
            expected: Expectation::of(property),
            source: text("x-source"),
        }
    };
    properties.into_iter().flatten().map(parameter).collect()
}

/// Table with `given` in place of the fields of `defaults`, and the fields that differ.
///
/// # Errors
/// [`ParameterError`] for the first value that the table does not accept.
pub(crate) fn checked<P>(defaults: &P, given: &ParameterValues) -> Result<(P, ParameterValues), ParameterError>
where
    P: Serialize + DeserializeOwned + JsonSchema + Clone,
{
    let usual = values(defaults);
    let parameters = parameters_of(&schema_for!(P), &usual);
    let (mut table, mut typed) = (usual.clone(), defaults.clone());
    // One value after the other, so that a value which the type refuses has a name.
    for (name, value) in given {
        let Some(parameter) = parameters.iter().find(|parameter| parameter.name == *name) else {
            let known = parameters.into_iter().map(|parameter| parameter.name).collect();
            return Err(ParameterError::Unknown { name: name.clone(), known });
        };
        let wrong = |detail: String| {
            let expected = format!("{}{detail}", parameter.expected);
            ParameterError::Value { name: name.clone(), value: value.clone(), expected }
        };
        if !parameter.expected.allows(value) {
            return Err(wrong(String::new()));
        }
        table.insert(name.clone(), value.clone());
        typed = serde_json::from_value(Value::Object(table.clone())).map_err(|error| wrong(format!(": {error}")))?;
    }
    let mut changed = values(&typed);
    changed.retain(|name, value| usual.get(name) != Some(value));
    Ok((typed, changed))
}

/// Constructor of a policy with a table of parameters of type `P`.
#[derive(Debug)]
pub struct Parameterised<P> {
    /// Table with every default.
    pub defaults: fn() -> P,
    /// Builds the policy from its parameters and the seed of its draws.
    pub build: fn(&P, u64) -> Box<dyn Policy>,
}

impl<P> Constructor for Parameterised<P>
where
    P: Serialize + DeserializeOwned + JsonSchema + Clone + Debug + Send + Sync + 'static,
{
    fn schema(&self) -> Schema {
        schema_for!(P)
    }

    fn defaults(&self) -> ParameterValues {
        values(&(self.defaults)())
    }

    fn prepare(&self, given: &ParameterValues) -> Result<Prepared, ParameterError> {
        let (typed, changed) = checked(&(self.defaults)(), given)?;
        let (build, typed) = (self.build, Arc::new(typed));
        Ok(Prepared { changed, make: Arc::new(move |seed| build(&typed, seed)) })
    }

    fn build(&self, seed: u64) -> Box<dyn Policy> {
        (self.build)(&(self.defaults)(), seed)
    }
}

/// Constructor of a policy without parameters, from the seed of its draws.
#[derive(Debug)]
pub struct Fixed(pub fn(u64) -> Box<dyn Policy>);

impl Constructor for Fixed {
    fn schema(&self) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": false })
    }

    fn defaults(&self) -> ParameterValues {
        ParameterValues::new()
    }

    fn prepare(&self, given: &ParameterValues) -> Result<Prepared, ParameterError> {
        match given.keys().next() {
            Some(name) => Err(ParameterError::Unknown { name: name.clone(), known: Vec::new() }),
            None => Ok(Prepared { changed: ParameterValues::new(), make: Arc::new(self.0) }),
        }
    }

    fn build(&self, seed: u64) -> Box<dyn Policy> {
        (self.0)(seed)
    }
}

/// Fields of a table as values.
fn values(table: &impl Serialize) -> ParameterValues {
    match serde_json::to_value(table) {
        Ok(Value::Object(values)) => values,
        _ => ParameterValues::new(),
    }
}

/// Times of tables of parameters, which are written in seconds.
pub(crate) mod secs {
    use goodput_env::time::SimTime;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(time.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SimTime, D::Error> {
        f64::deserialize(deserializer).map(SimTime::from_secs_f64)
    }
}
