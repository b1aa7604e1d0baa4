//! Snapshot of a fitted forecaster: the form in which a file keeps it, with the clock of its
//! series.

use serde::{Deserialize, Serialize};

use crate::{Adaptive, Fit, FitError, FittedAdaptive, Series};

/// Fitted forecaster with the present position in its series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForecasterSnapshot {
    /// Time of the next step, milliseconds of the series' clock.
    pub next_epoch_millis: i64,
    /// Length of a step, milliseconds.
    pub step_millis: i64,
    /// Steps in a day.
    pub day_steps: usize,
    /// Fitted forecaster itself.
    pub forecaster: FittedAdaptive,
}

impl ForecasterSnapshot {
    /// Snapshot of `settings` fitted to all of `series`.
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
