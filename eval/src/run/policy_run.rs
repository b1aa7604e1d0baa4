//! One run of one policy on one scenario.

use std::sync::Arc;

use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;

use crate::metrics::Measures;

/// One policy on one scenario.
#[derive(Clone)]
pub struct PolicyRun {
    /// Index into [`RunLayout::policies`](super::Layout::policies).
    pub policy: usize,
    /// Index into [`RunLayout::workloads`](super::Layout::workloads).
    pub workload: usize,
    /// Seed of the repetition.
    pub seed: u64,
    /// The inputs, with the batching and information level of this run.
    pub scenario: Arc<Scenario>,
    /// Outcome of the simulation.
    pub outcome: Outcome,
    /// Values of all metrics.
    pub measures: Measures,
}

impl std::fmt::Debug for PolicyRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { policy, workload, seed, .. } = self;
        write!(f, "PolicyRun {{ policy: {policy}, workload: {workload}, seed: {seed}, .. }}")
    }
}
