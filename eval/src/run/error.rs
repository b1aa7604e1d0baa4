//! Errors of comparisons.

use goodput_env::scenario::Information;
use goodput_env::sim::SimError;
use thiserror::Error;

/// Reason for which a comparison cannot be made.
#[derive(Debug, Error)]
pub enum RunError {
    /// Nothing to compare.
    #[error("a comparison needs at least one policy and one scenario")]
    Empty,
    /// Two policies with one name.
    #[error("two policies are called {name}")]
    DuplicatePolicy {
        /// Name that occurs twice.
        name: String,
    },
    /// Two scenarios with one name and seed.
    #[error("workload {workload} has seed {seed} twice")]
    DuplicateScenario {
        /// Name of the workload.
        workload: String,
        /// Seed that occurs twice.
        seed: u64,
    },
    /// Workloads were repeated unequally often, so that runs do not form a matrix of seeds x
    /// workloads.
    #[error("workload {workload} has {seeds} seeds but {first} has {expected}: each workload needs the same number")]
    UnequalSeeds {
        /// Name of the workload.
        workload: String,
        /// Number of seeds of the workload.
        seeds: usize,
        /// The first workload.
        first: String,
        /// Number of seeds of the first workload.
        expected: usize,
    },
    /// The reference is not among the policies.
    #[error("the reference policy {name} is not compared; there are: {}", .known.join(", "))]
    UnknownReference {
        /// Name of the reference policy.
        name: String,
        /// Names of the policies that are compared.
        known: Vec<String>,
    },
    /// A policy is told less than it needs.
    #[error("policy {policy} on workload {workload}: needs information level {needs}, the run gives {given}")]
    Information {
        /// Name of the policy.
        policy: String,
        /// Name of the workload.
        workload: String,
        /// Information level that the policy needs.
        needs: Information,
        /// Information level of the run.
        given: Information,
    },
    /// A policy decides about services too, and wrappers are around policies of training jobs.
    #[error(
        "policy {policy} decides about services and loans, which [resilience] and [adaptation] \
         cannot be put around: compare a policy of training jobs"
    )]
    NotTraining {
        /// Name of the policy.
        policy: String,
    },
    /// A policy could not take some of its decisions.
    #[error("policy {policy} has no results: {problem}")]
    Faulty {
        /// Name of the policy.
        policy: String,
        /// Sentence about the decisions.
        problem: String,
    },
    /// A run failed.
    #[error("policy {policy} on workload {workload}, seed {seed}: {source}")]
    Run {
        /// Name of the policy.
        policy: String,
        /// Name of the workload.
        workload: String,
        /// Seed of the run.
        seed: u64,
        /// Error of the simulator.
        source: Box<SimError>,
    },
}
