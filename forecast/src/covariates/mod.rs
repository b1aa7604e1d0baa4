//! Covariates: what is known of a step before its load comes, such as a holiday or a planned release.
//!
//! [`Regressed`] puts a regression on covariates in front of any forecaster. The regression says by how much a
//! covariate moves the load; the load without that effect goes to the forecaster, and the effect of the steps ahead
//! comes back onto its quantiles. This is dynamic regression (Hyndman and Athanasopoulos, "Forecasting: Principles
//! and Practice", 3rd ed., chapter 10), with the forecaster in the place of the ARIMA errors.
//!
//! A layer, and no further model of the ensemble: an ensemble weighs its models by the last days, and a model that is
//! right about holidays alone would have no weight when one comes.

mod effects;
mod regressed;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Series;

pub use effects::CovariateEffects;
pub use regressed::{CovariateRegression, FittedRegressed, Regressed};

/// Covariates by name, each with values by time. Steps of a covariate may be longer than those of the load: the value
/// of a day holds all day.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Vec<NamedSeries>", into = "Vec<NamedSeries>")]
pub struct Covariates {
    columns: Vec<NamedSeries>,
}

/// Values of one covariate.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSeries {
    /// Name of the covariate.
    pub name: String,
    /// Values by time.
    pub series: Series,
}

/// Reasons for which covariates are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CovariateError {
    /// There is none.
    #[error("no covariate is given")]
    Empty,
    /// A step without a value of a covariate.
    #[error("covariate `{name}` has no value at {epoch_millis} ms since 1970")]
    Missing {
        /// Name of the covariate.
        name: String,
        /// Time of the step.
        epoch_millis: i64,
    },
}

impl PartialEq for Covariates {
    fn eq(&self, other: &Self) -> bool {
        let parts = |covariate: &NamedSeries| {
            let NamedSeries { name, series } = covariate;
            let bits: Vec<u64> = series.values().iter().map(|value| value.to_bits()).collect();
            (name.clone(), series.start_epoch_millis(), series.step_millis(), bits)
        };
        self.columns.iter().map(parts).eq(other.columns.iter().map(parts))
    }
}

impl TryFrom<Vec<NamedSeries>> for Covariates {
    type Error = CovariateError;

    fn try_from(columns: Vec<NamedSeries>) -> Result<Self, CovariateError> {
        if columns.is_empty() { Err(CovariateError::Empty) } else { Ok(Self { columns }) }
    }
}

impl From<Covariates> for Vec<NamedSeries> {
    fn from(covariates: Covariates) -> Self {
        covariates.columns
    }
}

impl Covariates {
    /// Checks that each of `steps` steps of `step_millis` from `start` on has a value of every covariate.
    ///
    /// # Errors
    /// [`CovariateError::Missing`] with the first step without a value.
    pub fn check(&self, start_epoch_millis: i64, step_millis: i64, steps: usize) -> Result<(), CovariateError> {
        for NamedSeries { name, series } in &self.columns {
            let mut times = (0..steps as i64).map(|step| start_epoch_millis + step * step_millis);
            if let Some(epoch_millis) = times.find(|&at| value_at(series, at).is_none()) {
                return Err(CovariateError::Missing { name: name.clone(), epoch_millis });
            }
        }
        Ok(())
    }

    /// Covariates from `epoch_millis` on.
    #[must_use]
    pub fn since(&self, epoch_millis: i64) -> Self {
        let later = |column: &NamedSeries| {
            let NamedSeries { name, series } = column;
            let passed = (epoch_millis - series.start_epoch_millis()).div_euclid(series.step_millis()).max(0);
            let passed = usize::try_from(passed).unwrap_or(usize::MAX).min(series.len());
            let series = series.slice(passed..series.len()).unwrap_or_else(|_| series.clone());
            NamedSeries { name: name.clone(), series }
        };
        Self { columns: self.columns.iter().map(later).collect() }
    }
}

/// Value of the step that `epoch_millis` lies in.
fn value_at(series: &Series, epoch_millis: i64) -> Option<f64> {
    let passed = (epoch_millis - series.start_epoch_millis()).div_euclid(series.step_millis());
    usize::try_from(passed).ok().and_then(|index| series.get(index))
}
