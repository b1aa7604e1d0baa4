//! Several clusters, each with its own schedulers and peak hours, and a coordinator that moves
//! whole servers between them.
//!
//! - [`allot`]: the decision, a separable concave program solved exactly.
//! - [`Coordinator`]: what it is told by the clusters, and how far it looks ahead.
//! - [`Federation`]: the clusters side by side in simulated time.
//!
//! A cluster goes on without the coordinator; ownership then stays as it is.

mod allot;
mod coordinate;
mod federation;

pub use allot::{Claim, allot};
pub use coordinate::Coordinator;
pub use federation::{Federation, Transfer};
