//! Inference services on a cluster: how many replicas each should have, and where they go.
//!
//! - [`Outlook`]: the highest rate to expect, as measured now, as forecast, or as it will be.
//! - [`Autoscaler`]: from a rate to a number of replicas, with hysteresis.
//! - [`Replicas`]: which servers gain or lose replicas, so that as many as possible stay empty.

mod autoscaler;
mod outlook;
mod replicas;

pub(crate) use autoscaler::kind_for;
pub use autoscaler::{Autoscaler, Scaling, needed};
pub use outlook::{Ahead, Model, Now, Outlook, Told};
pub use replicas::Replicas;
