//! Load series in, probabilistic forecasts out.
//!
//! A scheduler that lends inference nodes to training needs to know how much load may return before
//! the lease ends, and with which probability. So every model here answers with quantiles, never
//! with a bare number, and every claim about a model is made by a rolling-origin backtest that
//! cannot see the future.
//!
//! The crate does no I/O and reads no clock: same series in, same bits out.
//!
//! # Layout
//! - [`Series`]: an evenly spaced load series in which a missing measurement is a gap, not a zero
//!   ([`calendar`], [`Aggregate`]).
//! - [`Fit`] and [`Predict`]: a model that was not fitted has no `predict`, because fitting gives
//!   another type.
//! - [`SeasonalNaive`]: the value of one season ago, the bar that every other model has to beat.
//! - [`Adaptive`]: the default, an ensemble of [`Model`]s weighed online with conformal quantiles;
//!   a model alone is a list of one.
//! - [`neural`]: nets with quantile heads; training them needs the feature `train`.
//! - [`covariates`]: what is known of a step before its load comes, in front of any forecaster.
//! - [`decide`]: the capacity that an objective asks for, from joint paths of past errors.
//! - [`lending`] and [`Lender`]: the number of accelerators that can be lent, and the value of a
//!   forecast for that.
//! - [`worth`]: accelerator-hours of autoscaling rules at one attainment of the objective.
//! - [`Forecast`]: one row a step ahead, one column a quantile level, never crossing.
//! - [`metrics`] and [`ForecastScores`]: errors, errors relative to a naive forecast, and coverage
//!   of the quantiles.
//! - [`Backtest`]: forecasts of the past from rolling origins.
//!
//! # Example
//! ```
//! use goodput_forecast::{Fit, Horizon, Predict, SeasonalNaive, Series};
//!
//! // Three "days" of four steps of six hours; one measurement of the third day is missing.
//! let six_hours_millis = 6 * 60 * 60 * 1000;
//! let load = [1.0, 5.0, 7.0, 2.0, 1.0, 6.0, 7.0, 2.0, 2.0, 6.0, f64::NAN, 2.0];
//! let series = Series::new(0, six_hours_millis, load.to_vec().into())?;
//! let season_steps = series.steps_per_day().expect("six hours divide a day");
//!
//! let model = SeasonalNaive { season_steps }.fit(&series)?;
//! let forecast = model.predict(Horizon::steps(4), &[0.1, 0.5, 0.9]);
//! assert_eq!(forecast.point().to_vec(), [2.0, 6.0, 7.0, 2.0]);
//! assert_eq!(forecast.quantiles().dim(), (4, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod calendar;
pub mod covariates;
pub mod decide;
pub mod lending;
pub mod metrics;
pub mod neural;
pub mod worth;

mod adaptive;
mod backtest;
mod forecast;
mod gaps;
mod history;
mod lender;
pub mod linalg;
mod model;
mod models;
pub mod nelder_mead;
mod quantile;
mod resample;
mod scores;
mod season;
mod seasonal_naive;
mod series;
mod significance;
mod snapshot;

pub use adaptive::{Adaptive, Alarm, FittedAdaptive, Shift};
pub use backtest::{Backtest, BacktestError, BacktestReport, OriginReport, Refit};
pub use forecast::{Forecast, ForecastError, Horizon, check_levels};
pub use lender::Lender;
pub use model::{Fit, FitError, Predict};
pub use models::{LinearMap, Model};
pub use resample::Aggregate;
pub use scores::{ForecastScores, LevelScore};
pub use season::season_steps;
pub use seasonal_naive::{FittedSeasonalNaive, SeasonalNaive};
pub use series::{Series, SeriesError};
pub use significance::block_bootstrap;
pub use snapshot::ForecasterSnapshot;
