//! Forecasters of a load series: studies of them and of what they are worth, and their training.

mod study;
#[cfg(feature = "learning")]
mod training;
mod worth;

pub use study::{BacktestConfig, ForecastConfig, LendingConfig, ModelConfig, SeriesConfig};
#[cfg(feature = "learning")]
pub use training::{DataConfig, ForecasterExperiment, WindowConfig};
pub use worth::{WorthConfig, WorthLoad};
