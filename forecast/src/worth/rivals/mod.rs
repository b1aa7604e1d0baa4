//! Predictors of published autoscalers.

mod arima;
mod histogram;
pub(super) mod hourly;
mod trend;

pub(super) use arima::Arima;
pub(super) use histogram::UsageHistogram;
pub(super) use trend::LocalTrend;
