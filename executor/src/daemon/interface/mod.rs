//! Interface of a daemon: its state for users and monitoring, and calls of users.
//!
//! # Layout
//! - [`api`]: the HTTP interface.
//! - [`metrics`]: numbers for Prometheus.
//! - [`status`]: the state of nodes, queue and orders.
//! - [`audit`]: the log of all decisions and orders; `alert`: what is wrong, in all of these
//!   places.
//! - `certificates`: alerts about those that end soon.

mod alert;
pub mod api;
pub mod audit;
mod certificates;
pub mod metrics;
pub mod status;
