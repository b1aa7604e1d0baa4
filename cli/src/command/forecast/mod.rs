//! `goodput forecast`: load series in, forecasts, comparisons and lending out.

mod backtest;
mod fitted;
mod worth;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use goodput_configs::forecast::ForecastConfig;
use goodput_console::CommandError;
use goodput_datasets::DataError;
use goodput_eval::studies::forecasting::{Study, StudyError};

use crate::args::{ForecastCommand, StudyFile};
use crate::config;

/// Runs `goodput forecast` and gives its exit code.
pub fn run(verb: &ForecastCommand) -> Result<ExitCode, CommandError> {
    match verb {
        ForecastCommand::Fit { study, to } => fitted::fit(&open(study)?, to)?,
        ForecastCommand::Predict { snapshot, study, sets, hours, levels, output } => {
            let ahead = fitted::known(snapshot, study.as_deref(), sets)?;
            fitted::predict(&ahead, *hours, levels, *output)?;
        }
        ForecastCommand::Backtest { study, report, forecasts, output } => {
            backtest::run(study, Study::run, (report.as_deref(), forecasts.as_deref()), *output)?;
        }
        ForecastCommand::Serve { config, sets } => goodputd::forecasts::serve(config, sets)?,
        ForecastCommand::Worth { config, sets, rules, output } => worth::run(config, sets, *rules, *output)?,
        ForecastCommand::Compare { study, report, forecasts, output } => {
            backtest::run(study, Study::compare, (report.as_deref(), forecasts.as_deref()), *output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(study: &StudyFile) -> Result<ForecastConfig, CommandError> {
    let mut config = config::read_forecast(&study.config, &study.sets)?;
    config.model.bundles.extend_from_slice(&study.bundles);
    Ok(config)
}

/// Opens the studies of a file with their series.
fn open(file: &StudyFile) -> Result<Vec<Study>, CommandError> {
    let config = read(file)?;
    let covariates = config.covariates.as_ref().and_then(|covariates| covariates.path.as_ref());
    Study::all(&config).map_err(|error| match error {
        StudyError::Data(ref absent @ DataError::Read { ref path, .. }) if Some(path) == covariates => {
            config::at_key(&file.config, &file.sets, "covariates.path", &absent.to_string())
                .with_help("paths are relative to the folder in which the command runs")
        }
        StudyError::Data(absent @ DataError::Read { .. }) => {
            config::at_key(&file.config, &file.sets, "series.path", &absent.to_string()).with_help(
                "public series do not ship with goodput: the comment in the file says which one it is; \
                 --set series.path=FILE names yours",
            )
        }
        error => fault(error),
    })
}

fn fault(error: StudyError) -> CommandError {
    match error {
        StudyError::Data(error) => {
            let help = error.remedy();
            let fault = CommandError::input(error);
            if help.is_empty() { fault } else { fault.with_help(help) }
        }
        error @ StudyError::Backtest(_) => CommandError::input(error)
            .with_help("a shorter backtest.horizon_hours or a smaller backtest.initial_share needs fewer steps"),
        other => CommandError::input(other),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    fs::write(path, bytes).map_err(|error| CommandError::failed(format!("cannot write {}: {error}", path.display())))
}
