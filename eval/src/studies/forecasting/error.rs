//! Reasons for which a study of forecasters cannot be run.

use goodput_agents::bundle::forecaster::ForecasterError;
use goodput_configs::scenario::SetupError;
use goodput_datasets::DataError;
use goodput_forecast::covariates::CovariateError;
use goodput_forecast::{BacktestError, FitError};
use thiserror::Error;

/// Reason for which a study cannot be run.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The series cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A setting is out of its range.
    #[error(transparent)]
    Setting(#[from] SetupError),
    /// The backtest cannot be run.
    #[error("backtest: {0}")]
    Backtest(#[from] BacktestError),
    /// The forecaster cannot be fitted.
    #[error("fit: {0}")]
    Fit(#[from] FitError),
    /// Covariates that do not cover the series.
    #[error("{0}")]
    Covariates(#[from] CovariateError),
    /// A trained forecaster cannot be read.
    #[error(transparent)]
    Bundle(#[from] ForecasterError),
    /// A trained forecaster of another step or day.
    #[error(
        "{name} was trained on steps of {} s, {} a day, and the series has steps of {} s, {} a day: set series.step_secs, or train on this series",
        of.0 as f64 / 1e3, of.1, series.0 as f64 / 1e3, series.1
    )]
    OtherSteps {
        /// Name of the forecaster.
        name: String,
        /// Milliseconds of its step, steps of its day.
        of: (i64, usize),
        /// Step in milliseconds and steps of a day of the series.
        series: (i64, usize),
    },
    /// A backtest that begins before the end of what a forecaster was trained on.
    #[error(
        "{name} has seen the series up to {unseen_from_epoch_millis} ms since 1970, and the first forecast is at {first_epoch_millis}: set backtest.initial_share to at least {share:.3}, or train with a smaller data.known_share"
    )]
    Seen {
        /// Name of the forecaster.
        name: String,
        /// First time it has not seen.
        unseen_from_epoch_millis: i64,
        /// Time of the first forecast.
        first_epoch_millis: i64,
        /// Share that would do.
        share: f64,
    },
    /// A series that a net of all series was trained on.
    #[error(
        "{name} was trained on {series}, so its forecasts of it are no test: choose another series, or leave the bundle out"
    )]
    Trained {
        /// Name of the forecaster.
        name: String,
        /// Series, by file and column.
        series: String,
    },
    /// A series that ends before the parts of a study do.
    #[error(
        "{name} has {days:.1} days, and known_days, validation_days and two days of test are {needed:.1}: shorten them"
    )]
    Short {
        /// Name of the load.
        name: String,
        /// Days of the series.
        days: f64,
        /// Days that the study needs.
        needed: f64,
    },
    /// A load that is almost always 0 before the test, so that no accelerator has a share of it.
    #[error("{name} is 0 on 99 of 100 steps before its test: leave it out, or set zeros_are_gaps in its series")]
    Idle {
        /// Name of the load.
        name: String,
    },
    /// A season is not a whole number of steps.
    #[error(
        "a season of one {season} is not a whole number of steps of {step_millis} ms: set model.day_steps, resample with series.step_secs, or set model.season = \"detected\""
    )]
    Day {
        /// Name of the season.
        season: &'static str,
        /// Step of the series in milliseconds.
        step_millis: i64,
    },
    /// Lending and trained forecasters go by the time of the day.
    #[error(
        "lending and trained forecasters go by days: leave out model.season = \"{season}\", or [lending] and the bundles"
    )]
    OnlyDays {
        /// Name of the season.
        season: &'static str,
    },
    /// No season was found in the values.
    #[error(
        "no season repeats in the part before the first origin: set model.season to day, hour or week, or model.day_steps"
    )]
    NoSeason,
    /// A fault of one series of a panel.
    #[error("series `{id}`: {fault}")]
    Of {
        /// Name of the series.
        id: String,
        /// Fault of it.
        fault: Box<StudyError>,
    },
}
