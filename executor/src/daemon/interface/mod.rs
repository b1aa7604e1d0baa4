//! Interface of a daemon: its state for users and monitoring, and calls of users.
//!
//! # Layout
//! - [`api`]: the HTTP interface.
//! - [`metrics`]: numbers for Prometheus.
//! - [`health`]: what fails, for those that watch over the daemon.
//! - [`status`]: the state of nodes, queue and orders. [`resize`]: what made way for the last resize of a job.
//!   [`reasons`]: why a learned policy changed a job.
//! - [`report`]: a summary of what a daemon saw and would have done, for the decision to let it act.
//! - [`audit`]: the log of all decisions and orders; [`alert`]: what is wrong, in all of these
//!   places.
//! - `certificates`: alerts about those that end soon.

pub mod alert;
pub mod api;
pub mod audit;
mod certificates;
pub mod health;
pub mod metrics;
pub mod reasons;
pub mod report;
pub mod resize;
pub mod status;
