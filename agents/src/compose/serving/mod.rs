//! Inference services on a cluster: how many replicas each should have, and where they go.
//!
//! - [`Outlook`]: the highest rate to expect, as measured now ([`Now`]), as forecast ([`Ahead`]), as the objective of a
//!   service asks ([`Decided`]), or as it will be ([`OracleOutlook`]).
//! - [`ForecastingOptions`]: the forecasters, and the level of their quantiles.
//! - [`Autoscaler`]: from a rate to a number of replicas, with hysteresis.
//! - [`FrugalTypes`]: the accelerator types that keep objectives with the least power, or at the least price.
//! - [`allot`]: the division of too few replicas among services.
//! - [`Replicas`]: the servers that gain or lose replicas, so that as many servers as possible stay
//!   empty.

mod ahead;
mod allotment;
mod autoscaler;
mod decided;
mod forecasting;
mod outlook;
mod replicas;
mod saved;
mod steps;
mod types;

use goodput_env::time::SimTime;

pub use ahead::Ahead;
pub use allotment::{Claim, allot};
pub use autoscaler::{Autoscaler, Scaling, needed, needed_for};
pub(crate) use autoscaler::{beside_waiting, kind_for};
pub use decided::Decided;
pub use forecasting::{ForecastingOptions, SteeredBy};
pub use outlook::{Expected, Now, OracleOutlook, Outlook, Sizing};
pub use replicas::Replicas;
pub use saved::{Misfit, SavedForecaster};
pub use types::FrugalTypes;

/// Steps of length `step` after the first `known` that begin no later than `until`.
fn steps_until(step: SimTime, known: usize, until: SimTime) -> usize {
    let last = until.as_millis() / step.as_millis().max(1);
    (last + 1 - known as i64).clamp(0, 10_000) as usize
}
