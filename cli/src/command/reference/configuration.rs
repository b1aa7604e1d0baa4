//! The page of configuration keys, from the JSON schemas of the configuration files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use goodput_configs::kind::Kind;
use goodput_configs::schema;
use goodput_console::markdown::{anchor, code, head, inline, table};

/// Longest default that a cell shows, in characters.
const LONGEST_DEFAULT: usize = 60;

/// Text of the page.
pub fn page() -> String {
    let mut page = head(
        "Configuration files",
        "Configuration files are TOML. `goodput config check FILE` finds mistakes, and `goodput config show\n\
         FILE` prints the file with every default. A key without a default is absent unless the file has it.\n\
         Tables that several kinds of file share stand here once.",
    );
    let mut sections = Sections::default();
    for kind in Kind::ALL {
        let schema = schema::of(kind).to_value();
        page.push_str(&format!("\n## {}\n\n", kind.heading()));
        page.push_str(&format!("{}\n\n", inline(text(&schema, "description"))));
        page.push_str(&format!("Editors find the schema in `configs/schema/{}`.\n", kind.schema_file()));
        sections.begin(kind.heading(), &schema);
        sections.keys("", &schema);
        page.push_str(&std::mem::take(&mut sections.page));
    }
    page
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Writer of one section for each table and each choice.
#[derive(Default)]
struct Sections {
    kind: String,
    definitions: Map<String, Value>,
    /// Titles of the definitions that have a section, by name and content. Two kinds of file can
    /// define different tables by one name.
    titles: BTreeMap<(String, String), String>,
    anchors: BTreeSet<String>,
    page: String,
}

/// Number of times that a table occurs at its place in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    Once,
    /// Any number of times, each under `[[NAME]]`.
    Listed,
}

/// Table or choice that still needs a section.
struct PendingTable {
    title: String,
    path: String,
    schema: Value,
}

impl Sections {
    /// Begins with the schema of another kind of file.
    fn begin(&mut self, kind: &str, schema: &Value) {
        self.kind = kind.to_lowercase();
        self.definitions = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    }

    /// Adds the keys of a table, then the sections of the tables below it.
    fn keys(&mut self, path: &str, schema: &Value) {
        let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
            Some(keys) => keys.iter().filter_map(Value::as_str).collect(),
            None => Vec::new(),
        };
        let mut pending = Vec::new();
        let mut rows = Vec::new();
        let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        for (key, property) in &properties {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let kind = self.kind_of(property, &below, Occurrence::Once, &mut pending);
            let default = if required.contains(&key.as_str()) { "required".into() } else { default(property) };
            rows.push(vec![code(key), kind, default, inline(text(property, "description"))]);
        }
        self.page.push_str(&format!("\n{}", table(&["key", "type", "default", "meaning"], &rows)));
        self.sections(pending);
    }

    /// Adds the values of a choice, then the sections of the tables below it.
    fn values(&mut self, path: &str, variants: &[Value]) {
        let mut pending = Vec::new();
        let mut rows = Vec::new();
        for variant in variants {
            let meaning = inline(text(variant, "description"));
            if let Some(value) = variant.get("const") {
                rows.push(vec![code(&toml(value)), "text".into(), meaning]);
                continue;
            }
            let properties = variant.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            match properties.iter().next() {
                Some((key, body)) if properties.len() == 1 => {
                    let kind = self.kind_of(body, &format!("{path}.{key}"), Occurrence::Once, &mut pending);
                    rows.push(vec![code(key), kind, meaning]);
                }
                _ => {
                    rows.push(vec![String::new(), self.kind_of(variant, path, Occurrence::Once, &mut pending), meaning])
                }
            }
        }
        self.page.push_str(&format!("\n{}", table(&["value", "type", "meaning"], &rows)));
        self.sections(pending);
    }

    fn sections(&mut self, pending: Vec<PendingTable>) {
        for PendingTable { title, path, schema } in pending {
            self.page.push_str(&format!("\n### {title}\n"));
            let description = inline(text(&schema, "description"));
            if !description.is_empty() {
                self.page.push_str(&format!("\n{description}\n"));
            }
            match variants(&schema) {
                Some(variants) => self.values(&path, &variants),
                None => self.keys(&path, &schema),
            }
        }
    }

    /// Type of a value in words. A table or choice is a link to its section, which is added to
    /// `pending` unless it is there.
    fn kind_of(&mut self, schema: &Value, path: &str, occurs: Occurrence, pending: &mut Vec<PendingTable>) -> String {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.trim_start_matches("#/$defs/");
            let definition = self.definitions.get(name).cloned().unwrap_or_default();
            if !has_section(&definition) {
                return self.kind_of(&definition, path, occurs, pending);
            }
            let key = (name.to_string(), definition.to_string());
            if let Some(title) = self.titles.get(&key) {
                return link(title);
            }
            let title = self.title(path, occurs, &definition);
            self.titles.insert(key, title.clone());
            pending.push(PendingTable { title: title.clone(), path: path.into(), schema: definition });
            return link(&title);
        }
        if let Some(variants) = schema.get("anyOf").and_then(Value::as_array) {
            // An optional value is the choice between its type and null.
            let one = variants.iter().find(|variant| text(variant, "type") != "null");
            return one.map_or_else(String::new, |one| self.kind_of(one, path, occurs, pending));
        }
        if has_section(schema) {
            let title = self.title(path, occurs, schema);
            pending.push(PendingTable { title: title.clone(), path: path.into(), schema: schema.clone() });
            return link(&title);
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        match types.iter().find(|kind| **kind != "null").copied() {
            Some("integer") => "whole number".into(),
            Some("number") => "number".into(),
            Some("boolean") => "`true` or `false`".into(),
            Some("string") => "text".into(),
            Some("array") => match (schema.get("items"), schema.get("prefixItems").and_then(Value::as_array)) {
                (_, Some(items)) => {
                    let kinds = items.iter().map(|item| self.kind_of(item, path, Occurrence::Listed, pending));
                    format!("list of {}", kinds.collect::<Vec<_>>().join(" and "))
                }
                (Some(items), None) => format!("list of {}", self.kind_of(items, path, Occurrence::Listed, pending)),
                (None, None) => "list".into(),
            },
            Some("object") => match schema.get("additionalProperties").filter(|values| values.is_object()) {
                Some(values) => {
                    format!("{} by name", self.kind_of(values, &format!("{path}.NAME"), Occurrence::Once, pending))
                }
                None => "table".into(),
            },
            _ => String::new(),
        }
    }

    /// Title of a section, unlike all before: the path as TOML writes it.
    fn title(&mut self, path: &str, occurs: Occurrence, schema: &Value) -> String {
        let plain = match (variants(schema).is_some(), occurs) {
            (true, _) => format!("`{path}`"),
            (false, Occurrence::Listed) => format!("`[[{path}]]`"),
            (false, Occurrence::Once) => format!("`[{path}]`"),
        };
        let mut title = plain.clone();
        let mut copies = 1;
        while !self.anchors.insert(anchor(&title)) {
            title = if copies == 1 { format!("{plain} ({})", self.kind) } else { format!("{plain} ({copies})") };
            copies += 1;
        }
        title
    }
}

/// Variants of a choice; nothing for a table or a plain value.
fn variants(schema: &Value) -> Option<Vec<Value>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array).cloned()
}

fn has_section(schema: &Value) -> bool {
    schema.get("properties").is_some() || schema.get("oneOf").is_some()
}

fn link(title: &str) -> String {
    format!("[{title}](#{})", anchor(title))
}

/// Default of a key as TOML, or what stands for it where it is long.
fn default(property: &Value) -> String {
    let single = text(property, "format") == "float";
    match property.get("default") {
        None | Some(Value::Null) => String::new(),
        // Schemas hold 32-bit numbers with the digits of 64 bits.
        Some(Value::Number(number)) if single => code(&(number.as_f64().unwrap_or_default() as f32).to_string()),
        Some(value) => match toml(value) {
            text if text.chars().count() <= LONGEST_DEFAULT => code(&text),
            _ => "see its keys".into(),
        },
    }
}

/// A value on one line of TOML; keys that are absent are left out.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(keys) => {
            let keys = keys.iter().filter(|(_, value)| !value.is_null());
            let keys: Vec<_> = keys.map(|(key, value)| format!("{key} = {}", toml(value))).collect();
            if keys.is_empty() { "{}".into() } else { format!("{{ {} }}", keys.join(", ")) }
        }
        value => value.to_string(),
    }
}
