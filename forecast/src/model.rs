//! Traits of forecasting models: settings that can be fitted, and fitted models.
//!
//! [`Fit`] is implemented by a model's settings, [`Predict`] by what fitting them gives. They are
//! different types, so predicting with a model that was not fitted does not compile, and the
//! settings stay as they were for the next refit. (The shape is that of the augurs crate.)

use thiserror::Error;

use crate::{Forecast, Horizon, Series};

/// Settings that can be fitted to a series.
///
/// # Example
/// ```
/// use goodput_forecast::{Fit, FitError, SeasonalNaive, Series};
///
/// // Two days of four steps of six hours.
/// let load = Series::new(0, 6 * 3_600_000, vec![1.0, 5.0, 7.0, 2.0, 1.0, 6.0, 7.0, 3.0].into())?;
/// let settings = SeasonalNaive { season_steps: 4 };
/// let fitted = settings.fit(&load)?;
/// assert_eq!(fitted.season_steps(), 4);
///
/// // A series without a measurement has nothing to estimate from.
/// let silent = Series::new(0, 6 * 3_600_000, vec![f64::NAN; 8].into())?;
/// assert_eq!(settings.fit(&silent), Err(FitError::NothingObserved { len: 8 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Fit {
    /// The fitted model.
    type Fitted: Predict;

    /// Estimates the model on all of `series`.
    ///
    /// # Errors
    /// A series or settings from which nothing can be estimated.
    fn fit(&self, series: &Series) -> Result<Self::Fitted, FitError>;
}

/// Fitted model, which knows all values up to now.
///
/// # Example
/// ```
/// use goodput_forecast::{Fit, Horizon, Predict, SeasonalNaive, Series};
///
/// let load = Series::new(0, 6 * 3_600_000, vec![1.0, 5.0, 7.0, 2.0, 1.0, 6.0, 7.0, 3.0].into())?;
/// let mut model = SeasonalNaive { season_steps: 4 }.fit(&load)?;
/// let tomorrow = model.predict(Horizon::steps(4), &[0.1, 0.5, 0.9]);
/// assert_eq!(tomorrow.point().to_vec(), [1.0, 6.0, 7.0, 3.0]);
///
/// // The next value arrives; the forecast of the step one day after it changes.
/// model.update(&[2.0]);
/// assert_eq!(model.predict(Horizon::steps(4), &[0.5]).point().to_vec(), [6.0, 7.0, 3.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Predict {
    /// The distribution of the next `horizon` values at `levels`, which pass
    /// [`check_levels`](crate::check_levels).
    ///
    /// # Panics
    /// When the levels do not.
    fn predict(&self, horizon: Horizon, levels: &[f64]) -> Forecast;

    /// Takes in the values that came next, in order; one that is not finite is a gap.
    ///
    /// This moves the model's state forward and estimates nothing anew: that is what refitting is
    /// for.
    fn update(&mut self, values: &[f64]);

    /// Estimates parameters anew on the values it has kept, and keeps all else it has learnt. Cheap
    /// next to a fit; worth doing about once a season.
    ///
    /// A model without anything to estimate does nothing.
    fn refresh(&mut self) {}
}

/// Reasons for which a model cannot be fitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FitError {
    /// The series has no measured value.
    #[error("none of the {len} values is measured")]
    NothingObserved {
        /// Number of values, all gaps.
        len: usize,
    },
    /// The training of a net failed.
    #[error("training: {reason}")]
    Training {
        /// Message of the training error.
        reason: String,
    },
    /// Covariates that do not cover the series.
    #[error(transparent)]
    Covariates(#[from] crate::covariates::CovariateError),
    /// A season has at least one step.
    #[error("season of 0 steps")]
    SeasonEmpty,
}
