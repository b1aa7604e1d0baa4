//! Forecasters of a load series: studies of them, and their training.

mod study;
#[cfg(feature = "learning")]
mod training;

pub use study::{BacktestConfig, ForecastConfig, LendingConfig, ModelConfig, SeriesConfig};
#[cfg(feature = "learning")]
pub use training::{DataConfig, ForecasterExperiment, WindowConfig};
