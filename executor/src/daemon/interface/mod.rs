//! Interface of a daemon: its state for users and monitoring, and calls of users.
//!
//! # Layout
//! - [`api`]: the HTTP interface.
//! - [`metrics`]: numbers for Prometheus.
//! - [`health`]: what fails, for those that watch over the daemon.
//! - [`status`]: the state of nodes, queue and orders.
//! - [`audit`]: the log of all decisions and orders; `alert`: what is wrong, in all of these
//!   places.

mod alert;
pub mod api;
pub mod audit;
pub mod health;
pub mod metrics;
pub mod status;
