//! Room of the runs: every policy on every scenario, in parallel, on common random numbers, and the
//! summary of the runs.
//!
//! Files, each of which uses only those above it:
//!
//! - `entry`: a policy and a scenario that enter a comparison.
//! - `policy_run`: one policy on one scenario, with its outcome and its measures.
//! - [`summary`]: means, intervals and paired differences, the content of `summary.json`.
//! - `comparison`: the loop over policies and scenarios.

mod comparison;
mod entry;
mod policy_run;
pub mod summary;

pub use comparison::{Comparison, Evaluation, RunError};
pub use entry::{NamedScenario, PolicyEntry, PolicyFactory};
pub use policy_run::PolicyRun;
