//! Room of the runs: every policy on every scenario, in parallel, on common random numbers, and the
//! summary of the runs.
//!
//! Files, each of which uses only those above it:
//!
//! - `entry`: a policy and a scenario that enter a comparison.
//! - `policy_run`: one policy on one scenario, with its outcome and its measures; `play` makes it.
//! - `layout`: the names of policies, workloads and scenarios; `head`: what statistics take from a run.
//! - [`summary`]: means, intervals and paired differences, the content of `summary.json`.
//! - `comparison`: the loop over policies and scenarios.

mod comparison;
mod entry;
mod error;
mod head;
mod layout;
mod play;
mod policy_run;
pub mod summary;

pub use comparison::{Comparison, Evaluation};
pub use entry::{NamedScenario, PolicyEntry, PolicyFactory};
pub use error::RunError;
pub use head::RunHead;
pub use layout::{RunLayout, ScenarioName};
pub use policy_run::PolicyRun;

pub(crate) use entry::AllocationLog;
pub(crate) use play::{RunSurroundings, play};
