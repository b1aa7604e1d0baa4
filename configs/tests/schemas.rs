//! Shipped files fit the schemas by which editors judge them, and broken files do not.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use goodput_configs::kind::Kind;
use goodput_configs::reader::Document;
use goodput_configs::schema;
use serde_json::{Map, Value};

/// First fault of `value` under `schema`, as far as the schemas of configuration files go.
fn fault(value: &Value, schema: &Value, root: &Value, path: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = &root["$defs"][name.trim_start_matches("#/$defs/")];
        assert!(definition.is_object() || definition.is_boolean(), "{name} is not defined");
        return fault(value, definition, root, path);
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[several].as_array()
            && choices.iter().all(|choice| fault(value, choice, root, path).is_some())
        {
            return Some(format!("{path}: {value} is none of the choices"));
        }
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Some(format!("{path}: {value} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        return Some(format!("{path}: {value} is not in {}", schema["enum"]));
    }
    let is = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("{path}: the schema has the type {other}"),
    };
    let fits = match &schema["type"] {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().any(|kind| is(kind.as_str().unwrap())),
        _ => true,
    };
    if !fits {
        return Some(format!("{path}: {value} is not of type {}", schema["type"]));
    }
    if let Some(least) = schema["minimum"].as_f64()
        && value.as_f64().is_some_and(|value| value < least)
    {
        return Some(format!("{path}: {value} is below {least}"));
    }
    match value {
        Value::Object(table) => table_fault(table, schema, root, path),
        Value::Array(values) => values.iter().enumerate().find_map(|(at, value)| {
            let item = schema["prefixItems"].get(at).unwrap_or(&schema["items"]);
            fault(value, item, root, &format!("{path}.{at}"))
        }),
        _ => None,
    }
}

fn table_fault(table: &Map<String, Value>, schema: &Value, root: &Value, path: &str) -> Option<String> {
    let required = schema["required"].as_array().into_iter().flatten();
    if let Some(key) = required.filter_map(Value::as_str).find(|key| !table.contains_key(*key)) {
        return Some(format!("{path}: the key {key} is missing"));
    }
    table.iter().find_map(|(key, value)| {
        let below = format!("{path}.{key}");
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(property), _) => fault(value, property, root, &below),
            (None, Value::Bool(false)) => Some(format!("{below} is unknown")),
            (None, others) => fault(value, others, root, &below),
        }
    })
}

fn read(text: &str) -> Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

#[test]
fn shipped_files_fit_their_schemas() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = Vec::new();
    for folder in ["experiment", "leaderboard", "scenario", "forecast", "live"] {
        for entry in fs::read_dir(configs.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let kind = Document::read(&path, &[]).unwrap().kind();
            let schema = schema::of(kind).to_value();
            let found = fault(&read(&fs::read_to_string(&path).unwrap()), &schema, &schema, "");
            assert_eq!(found, None, "{}", path.display());
            seen.push(kind);
        }
    }
    assert!(Kind::ALL.iter().all(|kind| seen.contains(kind)), "an example of every kind ships");
}

#[test]
fn schemas_refuse_what_the_reader_refuses() {
    for (kind, text) in [
        (Kind::Deployment, "mode = \"acting\""),
        (Kind::Deployment, "[guard]\nmax_action = 1"),
        (Kind::Deployment, "[canary]\norders_per_hour = -1"),
        (Kind::NodeAgent, "fencing = { kill = {} }"),
        (Kind::NodeAgent, "pace = 5"),
        (Kind::ForecasterTraining, "[forecaster.mlp]"),
    ] {
        let mut schema = schema::of(kind).to_value();
        // What is missing is not what is wrong here.
        schema["required"] = Value::Null;
        assert!(fault(&read(text), &schema, &schema, "").is_some(), "{kind:?}: {text}");
    }
}
