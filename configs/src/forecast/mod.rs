//! Forecasters of a load series: studies of them and of what they are worth, their training, and their service.

mod prometheus;
mod serve;
#[cfg(feature = "scenarios")]
mod study;
#[cfg(feature = "learning")]
mod training;
#[cfg(feature = "scenarios")]
mod worth;

pub use prometheus::{PrometheusConfig, ServerAddress};
pub use serve::{DynamoConfig, ForecastServerConfig, ForecastTls, ServedLoad};
#[cfg(feature = "scenarios")]
pub use study::{BacktestConfig, CovariatesConfig, ForecastConfig, LendingConfig, ModelConfig, Season, SeriesConfig};
#[cfg(feature = "learning")]
pub use training::{DataConfig, ForecasterExperiment, SyntheticLoads, WindowConfig};
#[cfg(feature = "scenarios")]
pub use worth::{WorthConfig, WorthLoad};
