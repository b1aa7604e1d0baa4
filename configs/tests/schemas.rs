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

/// A file with the keys that its comments show, each line by itself where the line is TOML behind `# `.
fn with_comments(text: &str) -> Value {
    let shown = |line: &str| {
        let behind = line.strip_prefix("# ").unwrap_or(line);
        let code =
            behind.starts_with(['[', '"']) || behind.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        if code { behind.to_owned() } else { line.to_owned() }
    };
    read(&text.lines().map(shown).collect::<Vec<_>>().join("\n"))
}

/// Keys of a schema that none of `values` has, as dotted paths below `path`.
fn unnamed(schema: &Value, root: &Value, values: &[&Value], path: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return unnamed(&root["$defs"][name.trim_start_matches("#/$defs/")], root, values, path);
    }
    let flat: Vec<&Value> = values
        .iter()
        .flat_map(|value| value.as_array().map_or_else(|| vec![*value], |several| several.iter().collect()))
        .collect();
    let choices = ["oneOf", "anyOf"].into_iter().filter_map(|several| schema[several].as_array()).flatten();
    // A policy is a text or a table of its parameters, and the parameters are listed elsewhere.
    let is_text = |choice: &Value| choice["type"] == "string";
    if choices.clone().any(is_text) && flat.iter().all(|value| value.is_string()) {
        return Vec::new();
    }
    let mut found: Vec<String> = choices.flat_map(|choice| unnamed(choice, root, &flat, path)).collect();
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{key}");
        let given: Vec<&Value> = flat.iter().filter_map(|value| value.get(key)).collect();
        match given.is_empty() {
            true => found.push(path),
            false => found.extend(unnamed(below, root, &given, &format!("{path}."))),
        }
    }
    if schema["items"].is_object() {
        found.extend(unnamed(&schema["items"], root, &flat, path));
    }
    if schema["additionalProperties"].is_object() {
        let given: Vec<&Value> = flat.iter().filter_map(|value| value.as_object()).flat_map(Map::values).collect();
        found.extend(unnamed(&schema["additionalProperties"], root, &given, &format!("{path}*.")));
    }
    found
}

/// The heads of the files promise that every key of a deployment is in one of them, so a user finds each.
#[test]
fn the_examples_of_deployments_have_every_key() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("live");
    let schema = schema::of(Kind::Deployment).to_value();
    // Tenants share the table of experiments, which alone take these; `role` is the earlier form of `verbs`.
    let left_out = ["api.tokens.role", "tenants.priority", "tenants.quota_changes"];
    // A deployment refuses services of language models.
    let of_language_models = ["services.slo.tpot_ms", "services.slo.ttft_ms"];
    let apart = ["engine.agents", "engine.kubernetes", "leader.lease", "services", "prometheus"];
    for (file, own) in [
        ("slurm.toml", None),
        ("agents.toml", Some(&["engine.agents", "leader.lease.etcd", "services", "prometheus"][..])),
        ("kubernetes.toml", Some(&["engine.kubernetes", "leader.lease.kubernetes", "leader.address"])),
    ] {
        let value = with_comments(&fs::read_to_string(folder.join(file)).unwrap());
        assert_eq!(fault(&value, &schema, &schema, ""), None, "{file}, with its comments");
        let is_promised = |key: &&String| match own {
            Some(own) => own.iter().any(|own| key.starts_with(own)) && !of_language_models.contains(&key.as_str()),
            None => !apart.iter().chain(&left_out).any(|apart| key.starts_with(apart)),
        };
        let missing = unnamed(&schema, &schema, &[&value], "");
        assert_eq!(missing.iter().filter(is_promised).collect::<Vec<_>>(), Vec::<&String>::new(), "{file}");
    }
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
