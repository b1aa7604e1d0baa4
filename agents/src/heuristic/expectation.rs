//! Values that a parameter allows: the part of its JSON schema that checks them and says them in words.

use std::fmt;

use serde_json::Value;

/// Values that a parameter allows.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// Whole numbers or numbers within bounds, both included.
    Number {
        /// Whether the number has to be whole.
        whole: bool,
        /// Lower bound, negative infinity where there is none.
        least: f64,
        /// Upper bound, infinity where there is none.
        most: f64,
    },
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Word(Vec<String>),
    /// A list of such values.
    List(Box<Expectation>),
}

impl Expectation {
    /// Expectation of a property of a JSON schema.
    pub(super) fn of(property: &Value) -> Self {
        let bound = |key: &str, unbounded: f64| property[key].as_f64().unwrap_or(unbounded);
        match property["type"].as_str() {
            Some("array") => Self::List(Box::new(Self::of(&property["items"]))),
            Some("boolean") => Self::Switch,
            Some(kind @ ("integer" | "number")) => Self::Number {
                whole: kind == "integer",
                least: bound("minimum", f64::NEG_INFINITY),
                most: bound("maximum", f64::INFINITY),
            },
            _ => Self::Word(words(property)),
        }
    }

    /// Whether `value` is one of them.
    pub fn allows(&self, value: &Value) -> bool {
        match self {
            Self::Number { whole, least, most } => {
                let number = value.as_f64().filter(|number| (*least..=*most).contains(number));
                number.is_some() && (!whole || value.is_u64() || value.is_i64())
            }
            Self::Switch => value.is_boolean(),
            Self::Word(words) => value.as_str().is_some_and(|text| words.iter().any(|word| word == text)),
            Self::List(each) => value.as_array().is_some_and(|values| values.iter().all(|value| each.allows(value))),
        }
    }
}

/// Words of a schema of plain variants, with descriptions or without.
fn words(property: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let listed = property["enum"].as_array().into_iter().flatten().filter_map(text);
    let described = property["oneOf"].as_array().into_iter().flatten().flat_map(|variant| match &variant["enum"] {
        Value::Array(all) => all.iter().filter_map(text).collect(),
        _ => text(&variant["const"]).into_iter().collect::<Vec<_>>(),
    });
    listed.chain(described).collect()
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { whole, least, most } => {
                f.write_str(if *whole { "a whole number" } else { "a number" })?;
                match (least.is_finite(), most.is_finite()) {
                    (true, true) => write!(f, " from {least} to {most}"),
                    (true, false) => write!(f, " of at least {least}"),
                    (false, true) => write!(f, " of at most {most}"),
                    (false, false) => Ok(()),
                }
            }
            Self::Switch => f.write_str("true or false"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
            Self::List(each) => write!(f, "a list, each {each}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_says_what_it_allows() {
        for (schema, words, allowed, refused) in [
            (json!({"type": "number", "minimum": 1.0}), "a number of at least 1", json!(1.0), json!(0.5)),
            (json!({"type": "integer", "maximum": 9}), "a whole number of at most 9", json!(9), json!(2.5)),
            (json!({"type": "number", "minimum": 0.0, "maximum": 1.0}), "a number from 0 to 1", json!(1), json!("1")),
            (json!({"type": "boolean"}), "true or false", json!(false), json!(0)),
            (json!({"enum": ["a", "b"]}), "one of a, b", json!("b"), json!("c")),
            (json!({"oneOf": [{"const": "a"}, {"const": "b"}]}), "one of a, b", json!("b"), json!(1)),
            (
                json!({"type": "array", "items": {"type": "integer", "minimum": 1}}),
                "a list, each a whole number of at least 1",
                json!([1, 2]),
                json!([0]),
            ),
        ] {
            let expectation = Expectation::of(&schema);
            assert_eq!(expectation.to_string(), words);
            assert!(expectation.allows(&allowed), "{words}: {allowed}");
            assert!(!expectation.allows(&refused), "{words}: {refused}");
        }
    }
}
