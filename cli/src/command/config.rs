//! `goodput config`: experiment files.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use goodput_configs::experiment::Experiment;
use goodput_configs::federation::FederationConfig;
use goodput_configs::forecast::ForecastConfig;
use goodput_console::{CommandError, print, say};
use schemars::{Schema, schema_for};

use crate::args::Config;
use crate::config;

/// Runs `goodput config` and gives its exit code.
pub fn run(verb: &Config) -> Result<ExitCode, CommandError> {
    match verb {
        Config::Check { files } => {
            let mut failed = None;
            for file in files {
                let read = match file {
                    file if config::is_federation(file) => config::read_federation(file, &[]).map(|_| ()),
                    file if config::is_forecaster(file) => config::read_forecaster(file, &[]).map(|_| ()),
                    file if config::is_forecast(file) => config::read_forecast(file, &[]).map(|_| ()),
                    file => config::read(file, &[]).map(|_| ()),
                };
                match read {
                    Ok(()) => say(&format!("{}: ok", file.display())),
                    Err(fault) => failed = Some(fault.report()),
                }
            }
            Ok(failed.unwrap_or(ExitCode::SUCCESS))
        }
        Config::Show { file, sets } => {
            let text = match file {
                file if config::is_federation(file) => resolved(&config::read_federation(file, sets)?.0)?,
                file if config::is_forecaster(file) => resolved(&config::read_forecaster(file, sets)?)?,
                file if config::is_forecast(file) => resolved(&config::read_forecast(file, sets)?)?,
                file => resolved(&config::read(file, sets)?)?,
            };
            print(&text)?;
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
