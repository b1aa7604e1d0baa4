//! Document: the text of a file with its overrides, and the places of keys in it.

use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml_edit::{DocumentMut, Item, Key, TableLike, Value};

use super::overrides;
use super::suggestion::suggestion;
use super::wording::plain;
use crate::error::{CheckError, ReadError};
use crate::kind::Kind;
use crate::names::nearest;
use crate::shipped;

/// Text of a configuration file, overrides applied.
#[derive(Clone, Debug)]
pub struct Document {
    name: String,
    text: String,
}

impl Document {
    /// Reads a file and applies `sets`, each `KEY=VALUE`.
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML; an override with a key that does not exist.
    pub fn read(path: &Path, sets: &[String]) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            let fault = ReadError::new(format!("cannot read {name}: {error}"));
            match error.kind() {
                ErrorKind::NotFound => fault.with_help(shipped::where_to_get(path)),
                _ => fault,
            }
        })?;
        Self::new(name, text, sets)
    }

    /// Document of a text; `name` is for messages.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn new(name: impl Into<String>, text: impl Into<String>, sets: &[String]) -> Result<Self, ReadError> {
        let mut document = Self { name: name.into(), text: text.into() };
        for set in sets {
            document.apply(set)?;
        }
        Ok(document)
    }

    /// Document with more overrides.
    ///
    /// # Errors
    /// An override with a key that does not exist.
    pub fn with(&self, sets: &[String]) -> Result<Self, ReadError> {
        Self::new(self.name.clone(), self.text.clone(), sets)
    }

    /// Kind of the file, by its top-level keys. A text that is not TOML, or has no key that tells the kind,
    /// counts as an experiment.
    pub fn kind(&self) -> Kind {
        match toml_edit::Document::parse(self.text.as_str()) {
            Ok(document) => Self::kind_of(&document).unwrap_or(Kind::Experiment),
            Err(_) => Kind::Experiment,
        }
    }

    fn kind_of(document: &toml_edit::Document<&str>) -> Option<Kind> {
        Kind::of(|key| document.as_table().contains_key(key))
    }

    /// Reads the text as a table `T` of a file of `kind`.
    ///
    /// # Errors
    /// The first key or value that does not fit, with its line and column.
    pub fn parse<T: DeserializeOwned>(&self, kind: Kind) -> Result<T, ReadError> {
        toml::from_str(&self.text).map_err(|error| {
            let document = toml_edit::Document::parse(self.text.as_str());
            if document.as_ref().is_ok_and(|document| document.as_table().is_empty()) {
                return self.at("the file has no keys", None).with_help(Kind::overview());
            }
            let message = error.message().trim_end();
            if let Some((message, help)) = error.span().and_then(|span| self.several_choices(message, &self.text[span]))
            {
                return self.at(message, error.span()).with_help(help);
            }
            let found = document.map(|document| Self::kind_of(&document));
            let message = plain(message);
            let help = match (found, suggestion(&message)) {
                // A close key is no help in a file of another kind.
                (Ok(Some(found)), _) if found != kind => found.advice(),
                (_, Some(close)) => format!("did you mean `{close}`?"),
                (Ok(None), None) => Kind::overview().to_owned(),
                (Ok(Some(_)) | Err(_), None) => kind.help().to_owned(),
            };
            self.at(&message, error.span()).with_help(help)
        })
    }

    /// Message and advice about a table that takes one of several tables, such as `[agent.ppo]`, and has
    /// more than one. `None` for other messages of the parser.
    fn several_choices(&self, message: &str, name: &str) -> Option<(String, String)> {
        if !message.starts_with("wanted exactly 1 element") {
            return None;
        }
        let document = toml_edit::Document::parse(self.text.as_str()).ok()?;
        let keys = keys_of(document.as_table(), name)?;
        let quoted: Vec<String> = keys.iter().map(|key| format!("`{name}.{key}`")).collect();
        let close = keys.iter().enumerate().find_map(|(at, key)| {
            nearest(key, keys[at + 1..].iter().map(String::as_str))
                .map(|near| format!("`{key}` and `{near}` are close: is one misspelt?"))
        });
        let message = format!("`{name}` takes one table, and the file has {}", quoted.join(" and "));
        Some((message, close.unwrap_or_else(|| "remove all tables but one".into())))
    }

    /// Whether a dotted key is written in the text.
    pub fn writes(&self, key: &str) -> bool {
        self.span(key, &[]).1
    }

    /// Error about the value of a dotted key, with the place of the key as far as it is written
    /// out.
    pub fn at_key(&self, key: &str, message: impl std::fmt::Display) -> ReadError {
        self.at(message, self.span(key, &[]).0)
    }

    /// Error about a configuration that parses but cannot be run.
    pub fn at_error(&self, error: &CheckError) -> ReadError {
        let CheckError { message, key, names, remedy } = error;
        let span = key.as_deref().and_then(|key| {
            if !names.iter().any(|(array, _)| *array == "clusters") {
                return self.span(key, names).0;
            }
            // A cluster of a federation is checked as if it were alone, and has its groups in a table of its own.
            let alone = key.strip_prefix("cluster.").unwrap_or(key);
            match self.span(&format!("clusters.{alone}"), names) {
                (span, true) => span,
                (span, false) => self.span(key, names).0.or(span),
            }
        });
        let error = self.at(message, span);
        match remedy {
            Some(remedy) => error.with_help(*remedy),
            None => error,
        }
    }

    fn at(&self, message: impl std::fmt::Display, span: Option<Range<usize>>) -> ReadError {
        let place = span.as_ref().map_or_else(String::new, |span| position(&self.text, span.start));
        ReadError::new(format!("{}{place}: {message}", self.name)).pointing(&self.name, &self.text, span)
    }

    /// Applies one `KEY=VALUE`.
    fn apply(&mut self, set: &str) -> Result<(), ReadError> {
        let wrong = |problem: &str| {
            ReadError::new(format!("--set {set}: {problem}"))
                .with_help("for example --set agent.ppo.learning_rate=5e-4 or --set services.0.slo.latency_ms=50")
        };
        let (key, value) = set.split_once('=').ok_or_else(|| wrong("expected KEY=VALUE"))?;
        let path = Key::parse(key).map_err(|_| wrong("expected KEY=VALUE"))?;
        // A value that is not TOML is meant as a string.
        let value: Value = value.trim().parse().unwrap_or_else(|_| Value::from(value.trim()));
        let parsed: Result<DocumentMut, _> = self.text.parse();
        let mut document = parsed.map_err(|error| self.at(error.message().trim_end(), error.span()))?;
        overrides::set(&mut document, &path, value).map_err(|problem| wrong(&problem))?;
        self.text = document.to_string();
        Ok(())
    }

    /// Place of a dotted key. In an array of tables called `array`, the table is the one with the
    /// name that `names` has for `array`, and otherwise the first with the key. A number is the
    /// place in a list. The flag says
    /// whether all of the key is written out; if not, the place is that of the longest part that
    /// is.
    fn span(&self, key: &str, names: &[(&'static str, String)]) -> (Option<Range<usize>>, bool) {
        let Ok(document) = toml_edit::Document::parse(self.text.as_str()) else { return (None, false) };
        let mut item = document.as_item();
        let (mut span, mut inside) = (None, "");
        for part in key.split('.') {
            let name = names.iter().find(|(array, _)| *array == inside).map(|(_, name)| name.as_str());
            let below = match (item, part.parse::<usize>()) {
                (list, Ok(at)) => list.get(at),
                (Item::ArrayOfTables(tables), Err(_)) => {
                    let named = |table: &&toml_edit::Table| {
                        name.is_none_or(|name| table.get("name").and_then(Item::as_str) == Some(name))
                    };
                    tables.iter().filter(named).find_map(|table| table.get(part))
                }
                (item, Err(_)) => item.get(part),
            };
            let Some(below) = below else { return (span, false) };
            (item, inside) = (below, part);
            span = item.span().or(span);
        }
        (span, true)
    }
}

/// Keys of the first table called `name`, here or in a table below, that has more than one key.
fn keys_of(table: &dyn TableLike, name: &str) -> Option<Vec<String>> {
    table.iter().find_map(|(key, item)| {
        let below = item.as_table_like()?;
        let keys: Vec<String> = below.iter().map(|(key, _)| key.to_owned()).collect();
        if key == name && keys.len() > 1 { Some(keys) } else { keys_of(below, name) }
    })
}

/// `:line:column` of a byte offset, both from 1; columns count characters.
fn position(text: &str, at: usize) -> String {
    let before = &text[..at.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    format!(":{line}:{column}")
}
