//! `goodput config`: configuration files of every kind.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use goodput_configs::error::ReadError;
use goodput_configs::experiment::Experiment;
use goodput_configs::federation::FederationConfig;
use goodput_configs::forecast::{ForecastConfig, ForecasterExperiment};
use goodput_configs::kind::Kind;
use goodput_configs::reader::{self, ConfigFile, Document};
use goodput_console::{CommandError, print, say};
use goodputd::config_file::{self, command_error};
use schemars::{Schema, schema_for};

use crate::args::Config;

/// Runs `goodput config` and gives its exit code.
pub fn run(verb: &Config) -> Result<ExitCode, CommandError> {
    match verb {
        Config::Check { files } => {
            let mut failed = None;
            for file in files {
                match read_any(file, &[]) {
                    Ok(_) => say(&format!("{}: ok", file.display())),
                    Err(error) => failed = Some(error.report()),
                }
            }
            Ok(failed.unwrap_or(ExitCode::SUCCESS))
        }
        Config::Show { file, sets } => {
            print(&read_any(file, sets)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Config::Schema { write } => {
            match write {
                None => print(&text(&schema_for!(Experiment))?)?,
                Some(dir) => schemas().iter().try_for_each(|schema| save(dir, schema.file, &schema.schema))?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads and checks a file of any kind: the text with every deerror filled in.
fn read_any(path: &Path, sets: &[String]) -> Result<String, CommandError> {
    let document = Document::read(path, sets).map_err(command_error)?;
    let text = match document.kind() {
        Kind::Experiment => shown::<Experiment>(&document),
        Kind::Federation => shown::<FederationConfig>(&document),
        Kind::ForecastStudy => shown::<ForecastConfig>(&document),
        Kind::ForecasterTraining => shown::<ForecasterExperiment>(&document),
        Kind::Deployment => config_file::deployment(&document),
        Kind::NodeAgent => config_file::node_agent(&document),
    };
    text.map_err(command_error)
}

fn shown<T: ConfigFile>(document: &Document) -> Result<String, ReadError> {
    reader::resolved(&reader::of_document::<T>(document)?)
}

/// JSON schema of one kind of configuration file.
pub struct ConfigSchema {
    /// Kind of file, in the plural.
    pub kind: &'static str,
    /// File name of the schema.
    pub file: &'static str,
    /// Every key with its type, default and meaning.
    pub schema: Schema,
}

/// Schemas of all kinds of configuration files.
pub fn schemas() -> Vec<ConfigSchema> {
    vec![
        ConfigSchema { kind: "Experiments", file: "experiment.schema.json", schema: schema_for!(Experiment) },
        ConfigSchema { kind: "Federations", file: "federation.schema.json", schema: schema_for!(FederationConfig) },
        ConfigSchema { kind: "Forecast studies", file: "forecast.schema.json", schema: schema_for!(ForecastConfig) },
    ]
}

fn text(schema: &Schema) -> Result<String, CommandError> {
    Ok(serde_json::to_string_pretty(schema).map_err(CommandError::failed)? + "\n")
}

fn save(dir: &Path, name: &str, schema: &Schema) -> Result<(), CommandError> {
    let (path, text) = (dir.join(name), text(schema)?);
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&path, text));
    written.map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

/// The file as TOML with every default filled in.
pub fn resolved(config: &impl serde::Serialize) -> Result<String, CommandError> {
    toml::to_string_pretty(config).map_err(CommandError::failed)
}
