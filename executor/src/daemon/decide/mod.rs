//! From a snapshot to orders under way: the cycle of the daemon.
//!
//! # Layout
//! - [`cycle`]: one turn, from the snapshot to the orders under way.
//! - [`chooser`]: the policy on a thread of its own, and the heuristic behind it.
//! - [`decision`]: the policy's plan, as far as the guard lets it pass.
//! - [`orders`]: the orders that carry a plan out.
//! - `act`: the next step of each order under way. `canary`: the limits of the mode `canary`.
//! - `evidence`: records for the report. `policy_change`: another policy in the running daemon, and
//!   back. `ruling_policy`: the policy that rules on all hosts. `regression`: back by itself, where jobs wait longer.
//! - `failures`: errors of cycles in the log. `forecasts`: loads that the policy expected, beside those that came.
//! - [`starts`]: when a job will start, and what would become of a submission.
//! - [`explain`]: why a job waits; `show`: the state of the cluster as users and monitoring see it.

mod act;
mod canary;
pub mod chooser;
pub mod cycle;
pub mod decision;
mod evidence;
pub mod explain;
pub(super) mod failures;
mod forecasts;
pub mod orders;
mod policy_change;
pub mod regression;
pub(super) mod ruling_policy;
mod show;
pub mod starts;
