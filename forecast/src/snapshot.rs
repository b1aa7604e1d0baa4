//! A fitted forecaster with what has to be known to go on with it: the form in which it is kept in a file.

use serde::{Deserialize, Serialize};

use crate::{Adaptive, Fit, FitError, FittedAdaptive, Series};

/// A fitted forecaster and where its series stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Time of the next step, milliseconds of the series' clock.
    pub next_epoch_millis: i64,
    /// Length of a step, milliseconds.
    pub step_millis: i64,
    /// Steps in a day.
    pub day_steps: usize,
    /// The forecaster.
    pub forecaster: FittedAdaptive,
}

impl Snapshot {
    /// `settings` fitted to all of `series`.
    ///
    /// # Errors
    /// A series from which nothing can be estimated.
    pub fn fit(settings: &Adaptive, series: &Series) -> Result<Self, FitError> {
        Ok(Self {
            next_epoch_millis: series.end_epoch_millis(),
            step_millis: series.step_millis(),
            day_steps: settings.day_steps,
            forecaster: settings.fit(series)?,
        })
    }
}
