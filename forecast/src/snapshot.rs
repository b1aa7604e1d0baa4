//! Snapshot of a fitted forecaster: the form in which a file keeps it, with the clock of its
//! series.

use serde::{Deserialize, Serialize};

use crate::covariates::{CovariateRegression, FittedRegressed};
use crate::{Adaptive, Fit, FitError, FittedAdaptive, Predict, Series};

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
    /// Regression on covariates in front of the forecaster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression: Option<CovariateRegression>,
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
            regression: None,
        })
    }

    /// Snapshot of a forecaster with covariates: those of the steps ahead are kept.
    pub fn of_regressed(fitted: FittedRegressed<FittedAdaptive>, day_steps: usize) -> Self {
        let FittedRegressed { inner, regression, next_epoch_millis, step_millis } = fitted;
        let covariates = regression.covariates.since(next_epoch_millis);
        let regression = Some(CovariateRegression { covariates, ..regression });
        Self { next_epoch_millis, step_millis, day_steps, forecaster: inner, regression }
    }

    /// The forecaster, with the effects of its covariates.
    pub fn into_forecaster(self) -> Box<dyn Predict> {
        let Self { next_epoch_millis, step_millis, forecaster: inner, regression, .. } = self;
        match regression {
            Some(regression) => Box::new(FittedRegressed { inner, regression, next_epoch_millis, step_millis }),
            None => Box::new(inner),
        }
    }
}
