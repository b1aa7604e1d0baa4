//! Reading experiment files: TOML with overrides, errors with line, column and caret.

use std::fs;
use std::path::Path;

use goodput_agents::compose;
use goodput_agents::zoo;
use goodput_configs::experiment::Experiment;
use goodput_configs::federation::FederationConfig;
use goodput_configs::forecast::{ForecastConfig, ForecasterExperiment};
use goodput_configs::scenario::SetupError;
use goodput_console::CommandError;
use goodput_eval::studies::federation::Federation;
use toml_edit::{DocumentMut, Item, Key, Table, Value};

use crate::wording::{nearest, reword};

const HELP: &str = "`goodput config schema` describes every key; `goodput config show FILE` fills in the defaults";

/// Reads an experiment and applies `--set KEY=VALUE`.
pub fn read(path: &Path, sets: &[String]) -> Result<Experiment, CommandError> {
    let help = match path {
        path if is_federation(path) => "with [[clusters]] it is a federation: `goodput federate FILE`",
        path if is_forecast(path) => "with [series] it is a study of forecasters: `goodput forecast backtest FILE`",
        _ => HELP,
    };
    let (experiment, name, text) = parse_with_text::<Experiment>(path, sets, help)?;
    experiment.setup().map_err(|error| BadValue::from(error).at_key(&name, &text))?;
    for policy in &experiment.evaluate.policies {
        known_policy(policy).map_err(|error| error.at_key(&name, &text))?;
    }
    Ok(experiment)
}

/// Checks that a policy of `evaluate.policies` is a published one, a shipped one or a file.
fn known_policy(policy: &str) -> Result<(), BadValue> {
    // Suffixes choose a replica, or how services and learning rates are decided: fifo+forecast.
    let plain = policy.split(['+', '@']).next().unwrap_or_default();
    if policy.starts_with(zoo::PREFIX) || Path::new(policy).exists() || compose::by_name(plain, 0).is_some() {
        return Ok(());
    }
    let near = nearest(plain, &compose::names()).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    let message = format!("there is no policy {policy:?}{near} `goodput list policies` names all");
    Err(BadValue { message, key: Some("evaluate.policies") })
}

/// Reads a federation, applies `--set KEY=VALUE`, and prepares it.
pub fn read_federation(path: &Path, sets: &[String]) -> Result<(FederationConfig, Federation), CommandError> {
    let help = match has_table(path, "cluster") {
        true => "with [cluster] it is an experiment: `goodput train FILE` or `goodput eval FILE`",
        false => HELP,
    };
    let (config, name, text) = parse_with_text::<FederationConfig>(path, sets, help)?;
    let federation = Federation::new(config.clone()).map_err(|error| BadValue::from(error).at_key(&name, &text))?;
    Ok((config, federation))
}

/// Reads a study of forecasters, applies `--set KEY=VALUE`, and checks its values.
pub fn read_forecast(path: &Path, sets: &[String]) -> Result<ForecastConfig, CommandError> {
    let help = match is_forecaster(path) {
        true => "with [forecaster] it is a forecaster to train: `goodput train FILE`",
        false => "`configs/forecast` has examples; configs/schema/forecast.schema.json describes every key",
    };
    let (config, name, text) = parse_with_text::<ForecastConfig>(path, sets, help)?;
    config.check().map_err(|error| BadValue::from(error).at_key(&name, &text))?;
    Ok(config)
}

/// Reads a forecaster to train and applies `--set KEY=VALUE`.
pub fn read_forecaster(path: &Path, sets: &[String]) -> Result<ForecasterExperiment, CommandError> {
    let help = "`configs/forecast/nhits.toml` is an example; docs, neural forecasters, describes every key";
    let (experiment, name, text) = parse_with_text::<ForecasterExperiment>(path, sets, help)?;
    experiment.check().map_err(|error| BadValue::from(error).at_key(&name, &text))?;
    Ok(experiment)
}

/// A message about the value of a key of a file, `--set KEY=VALUE` applied.
pub fn at_key(path: &Path, sets: &[String], key: &'static str, message: &str) -> CommandError {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).unwrap_or_default();
    let text = sets.iter().try_fold(text, |text, set| apply(&name, text, set)).unwrap_or_default();
    BadValue { message: message.into(), key: Some(key) }.at_key(&name, &text)
}

/// Whether a file is of a federation: only those have clusters, and what cannot be read is not.
pub fn is_federation(path: &Path) -> bool {
    has_table(path, "clusters")
}

/// Whether a file is a study of forecasters: only those have a series and none to train.
pub fn is_forecast(path: &Path) -> bool {
    has_table(path, "series") && !has_table(path, "forecaster")
}

/// Whether a file is a forecaster to train: only those have both a series and one.
pub fn is_forecaster(path: &Path) -> bool {
    has_table(path, "series") && has_table(path, "forecaster")
}

fn has_table(path: &Path, key: &str) -> bool {
    let document = fs::read_to_string(path).ok().and_then(|text| toml_edit::Document::parse(text).ok());
    document.is_some_and(|document| document.as_table().contains_key(key))
}

fn parse_with_text<T: serde::de::DeserializeOwned>(
    path: &Path,
    sets: &[String],
    help: &str,
) -> Result<(T, String, String), CommandError> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| {
        CommandError::input(format!("cannot read {name}: {error}"))
            .with_help("experiments shipped with the product are in configs/experiment")
    })?;
    let text = sets.iter().try_fold(text, |text, set| apply(&name, text, set))?;
    let parsed: Result<T, _> = toml::from_str(&text);
    match parsed {
        Ok(config) => Ok((config, name, text)),
        Err(error) => {
            let place = error.span().map_or_else(String::new, |span| position(&text, span.start));
            Err(CommandError::input(format!("{name}{place}: {}", reword(error.message()))).with_help(help).at(
                &name,
                text.clone(),
                error.span(),
            ))
        }
    }
}

/// A value that parses but cannot be run.
struct BadValue {
    message: String,
    key: Option<&'static str>,
}

impl BadValue {
    fn at_key(self, name: &str, text: &str) -> CommandError {
        let span = self.key.and_then(|key| key_span(text, key));
        let place = span.clone().map_or_else(String::new, |span| position(text, span.start));
        let fault = CommandError::input(format!("{name}{place}: {}", self.message));
        if span.is_some() { fault.at(name, text.into(), span) } else { fault }
    }
}

impl From<SetupError> for BadValue {
    fn from(error: SetupError) -> Self {
        let key = if let SetupError::Value { key, .. } = error { Some(key) } else { None };
        Self { message: error.to_string(), key }
    }
}

/// Bytes of a dotted key in the text, as far as the text has the key.
fn key_span(text: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let document = toml_edit::Document::parse(text).ok()?;
    let mut item = document.as_item();
    let mut span = None;
    for part in key.split('.') {
        let item_here = match item {
            Item::ArrayOfTables(tables) => tables.iter().find_map(|table| table.get(part)),
            item => item.get(part),
        };
        let Some(next) = item_here else { break };
        item = next;
        span = item.span().or(span);
    }
    span
}

/// `:line:column` of a byte offset.
fn position(text: &str, at: usize) -> String {
    let before = &text[..at.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    format!(":{line}:{column}")
}

/// Sets one dotted key in the text.
fn apply(name: &str, text: String, set: &str) -> Result<String, CommandError> {
    let malformed = || {
        CommandError::input(format!("--set {set}: expected KEY=VALUE"))
            .with_help("for example --set agent.ppo.learning_rate=5e-4")
    };
    let (key, value) = set.split_once('=').ok_or_else(malformed)?;
    let path = Key::parse(key).map_err(|_| malformed())?;
    // A value that is not TOML is meant as a string.
    let value: Value = value.trim().parse().unwrap_or_else(|_| Value::from(value.trim()));
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let place = error.span().map_or_else(String::new, |span| position(&text, span.start));
        CommandError::input(format!("{name}{place}: {}", error.message().trim_end())).at(
            name,
            text.clone(),
            error.span(),
        )
    })?;
    let Some((last, tables)) = path.split_last() else { return Err(malformed()) };
    let mut item = document.as_item_mut();
    for table in tables {
        let entry = item.as_table_like_mut().ok_or_else(malformed)?;
        if entry.get(table.get()).is_none() {
            entry.insert(table.get(), Item::Table(Table::new()));
        }
        item = entry.get_mut(table.get()).ok_or_else(malformed)?;
    }
    item.as_table_like_mut().ok_or_else(malformed)?.insert(last.get(), Item::Value(value));
    Ok(document.to_string())
}
