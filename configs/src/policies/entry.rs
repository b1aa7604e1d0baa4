//! Text or table by which a file names a policy: `"gandiva(quantum_secs=600)"`, or
//! `{ name = "gandiva", quantum_secs = 600 }`.

use std::borrow::Cow;
use std::fmt;

use goodput_agents::compose::lookahead::LookaheadParameters;
use goodput_agents::compose::{policies, with_parameters};
use goodput_agents::heuristic::ListedPolicy;
use goodput_agents::heuristic::parameters::ParameterValues;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// Name of a policy with its parameters, as text. A table of parameters becomes such a text.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyText(pub String);

/// Reads a policy of a file as text.
pub(crate) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    PolicyText::deserialize(deserializer).map(|policy| policy.0)
}

/// Reads a policy of a file as text, where the file has one.
pub(crate) fn optional_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<PolicyText>::deserialize(deserializer)?.map(|policy| policy.0))
}

/// Reads a list of policies of a file as texts.
#[cfg(feature = "scenarios")]
pub(crate) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<PolicyText>::deserialize(deserializer)?.into_iter().map(|policy| policy.0).collect())
}

impl<'de> Deserialize<'de> for PolicyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;

        impl<'de> Visitor<'de> for TextOrTable {
            type Value = PolicyText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("string or table")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PolicyText, E> {
                Ok(PolicyText(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicyText, A::Error> {
                let (mut name, mut parameters) = (None::<String>, ParameterValues::new());
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "name" => name = Some(map.next_value()?),
                        _ => drop(parameters.insert(key, map.next_value()?)),
                    }
                }
                let name = name.ok_or_else(|| A::Error::missing_field("name"))?;
                Ok(PolicyText(with_parameters(&name, &parameters)))
            }
        }

        deserializer.deserialize_any(TextOrTable)
    }
}

impl JsonSchema for PolicyText {
    fn schema_name() -> Cow<'static, str> {
        "PolicyText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut choices = vec![json!({ "type": "string" })];
        for (properties, entries) in tables() {
            let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
            let mut keys = Map::new();
            keys.insert("name".into(), json!({ "type": "string", "pattern": pattern(&names) }));
            keys.extend(properties);
            choices.push(json!({
                "type": "object", "properties": keys, "required": ["name"], "additionalProperties": false,
            }));
        }
        let planning = LookaheadParameters::default();
        let mut keys = with_defaults(schema_for!(LookaheadParameters), serde_json::to_value(planning).ok());
        keys.insert("name".into(), json!({ "type": "string", "pattern": "^lookahead\\(.+\\)(\\+.*)?$" }));
        choices.push(json!({
            "type": "object", "properties": keys, "required": ["name"], "additionalProperties": false,
        }));
        json_schema!({ "anyOf": choices })
    }
}

/// Tables of parameters, each with the policies that have it.
fn tables() -> Vec<(Map<String, Value>, Vec<&'static ListedPolicy>)> {
    let mut tables: Vec<(Map<String, Value>, Vec<&'static ListedPolicy>)> = Vec::new();
    for entry in policies() {
        let properties = properties(entry);
        match tables.iter_mut().find(|(known, _)| *known == properties) {
            Some((_, entries)) => entries.push(entry),
            None => tables.push((properties, vec![entry])),
        }
    }
    tables
}

/// Schemas of the parameters of a policy, with their defaults.
fn properties(entry: &ListedPolicy) -> Map<String, Value> {
    with_defaults(entry.constructor.schema(), Some(Value::Object(entry.constructor.defaults())))
}

/// Properties of the schema of a table, with their defaults.
fn with_defaults(schema: Schema, defaults: Option<Value>) -> Map<String, Value> {
    let mut properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let defaults = defaults.as_ref().and_then(Value::as_object);
    for (name, default) in defaults.into_iter().flatten() {
        if let Some(property) = properties.get_mut(name).and_then(Value::as_object_mut) {
            property.insert("default".into(), default.clone());
        }
    }
    properties
}

/// Pattern of the names of these policies, with what may follow them.
fn pattern(names: &[&str]) -> String {
    format!("^({})([@+].*)?$", names.join("|"))
}
