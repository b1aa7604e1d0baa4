//! Configuration files of commands: what the reader finds, as errors of a command.

use std::path::Path;

use goodput_configs::experiment::Experiment;
use goodput_configs::federation::FederationConfig;
use goodput_configs::forecast::{ForecastConfig, ForecasterExperiment, WorthConfig};
use goodput_configs::kind::Kind;
use goodput_configs::reader::{self, Document};
use goodput_configs::scenario::SetupError;
use goodput_console::CommandError;
use goodput_eval::studies::federation::Federation;
use goodputd::config_file::command_error;

/// Reads an experiment, applies `--set KEY=VALUE`, and checks the values.
pub fn read(path: &Path, sets: &[String]) -> Result<Experiment, CommandError> {
    Ok(reader::read(path, sets).map_err(command_error)?.0)
}

/// Reads a federation, applies `--set KEY=VALUE`, and prepares the clusters.
pub fn read_federation(path: &Path, sets: &[String]) -> Result<Federation, CommandError> {
    // The reader has prepared the clusters once to check them, so an error here is one of the machine.
    let (config, _) = reader::read::<FederationConfig>(path, sets).map_err(command_error)?;
    Federation::new(config).map_err(CommandError::input)
}

/// Reads a study of forecasters, applies `--set KEY=VALUE`, and checks the values.
pub fn read_forecast(path: &Path, sets: &[String]) -> Result<ForecastConfig, CommandError> {
    Ok(reader::read(path, sets).map_err(command_error)?.0)
}

/// Reads a study of what a forecast is worth, applies `--set KEY=VALUE`, and checks the values.
pub fn read_worth(path: &Path, sets: &[String]) -> Result<WorthConfig, CommandError> {
    Ok(reader::read(path, sets).map_err(command_error)?.0)
}

/// Reads a forecaster to train and applies `--set KEY=VALUE`.
pub fn read_forecaster(path: &Path, sets: &[String]) -> Result<ForecasterExperiment, CommandError> {
    Ok(reader::read(path, sets).map_err(command_error)?.0)
}

/// Error of a scenario that cannot be set up, with its remedy.
pub fn setup_error(error: SetupError) -> CommandError {
    let remedy = error.remedy();
    let error = CommandError::input(error);
    match remedy {
        Some(remedy) => error.with_help(remedy),
        None => error,
    }
}

/// Error about the value of a key of a file, `--set KEY=VALUE` applied.
pub fn at_key(path: &Path, sets: &[String], key: &'static str, message: &str) -> CommandError {
    match Document::read(path, sets) {
        Ok(document) => command_error(document.at_key(key, message)),
        Err(error) => command_error(error),
    }
}

/// Whether a file is a forecaster to train. A file that cannot be read is not.
pub fn is_forecaster(path: &Path) -> bool {
    Document::read(path, &[]).is_ok_and(|document| document.kind() == Kind::ForecasterTraining)
}
