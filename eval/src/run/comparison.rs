//! Policies x scenarios, in parallel, on common random numbers.
//!
//! Every policy meets the same scenarios, so differences are paired. Runs share nothing but their
//! inputs and come back in the order policy, then scenario, whatever the number of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput_agents::compose::Wrappers;
use goodput_agents::compose::loaning::Sharing;
use rayon::prelude::*;

use super::entry::{AllocationLog, NamedScenario, PolicyEntry};
use super::error::RunError;
use super::head::RunHead;
use super::layout::RunLayout;
use super::play::{RunSurroundings, play};
use super::policy_run::PolicyRun;
use super::summary::{Statistics, Summary};

/// Comparison of policies on scenarios.
#[derive(Debug)]
pub struct Comparison {
    /// Policies that are compared.
    pub policies: Vec<PolicyEntry>,
    /// The scenarios: every workload under the same number of seeds.
    pub scenarios: Vec<NamedScenario>,
    /// The policy that others are measured against; the first where `None`.
    pub reference: Option<String>,
    /// Method of the intervals.
    pub statistics: Statistics,
    /// Terms on which policies that decide about training only share the cluster with services.
    pub sharing: Arc<Sharing>,
    /// Adaptation and guarantees around every policy.
    pub wrappers: Wrappers,
}

/// A finished comparison.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Names of the policies, the workloads and the scenarios.
    pub layout: RunLayout,
    /// Runs in the order policy, then scenario as given. Those of the first scenario have their
    /// allocations logged.
    pub runs: Vec<PolicyRun>,
    /// Means, intervals and differences.
    pub summary: Summary,
}

impl Evaluation {
    /// The runs of one policy, in the order of the scenarios.
    pub fn runs_of(&self, policy: usize) -> &[PolicyRun] {
        &self.runs[self.layout.runs_of(policy)]
    }
}

impl Comparison {
    /// A comparison against the first policy, with default statistics.
    pub fn new(policies: Vec<PolicyEntry>, scenarios: Vec<NamedScenario>) -> Self {
        let (statistics, sharing, wrappers) = Default::default();
        Self { policies, scenarios, reference: None, statistics, sharing, wrappers }
    }

    /// Runs everything on rayon's current thread pool. `progress` is told how many runs are done
    /// and how many there are.
    ///
    /// # Errors
    /// [`RunError`] where the comparison is ill-formed or a run fails; of several failed runs the
    /// first in order.
    pub fn run(&self, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Evaluation, RunError> {
        let layout = self.layout()?;
        let total = layout.runs();
        let done = AtomicUsize::new(0);
        let around = RunSurroundings { sharing: &self.sharing, wrappers: &self.wrappers };
        // Runs differ in length by orders of magnitude, so each is a task of its own. All of them
        // end before errors are looked at, so that the first error is the first in order.
        let results: Vec<Result<PolicyRun, RunError>> = (0..total)
            .into_par_iter()
            .with_max_len(1)
            .map(|index| {
                // Timelines show the first scenario only, and a log of every run would fill the memory.
                let log = if layout.is_shown(index) { AllocationLog::Kept } else { AllocationLog::AsConfigured };
                let (policy, name) = layout.run(index);
                let named = &self.scenarios[index % self.scenarios.len()];
                let finished = play(&self.policies[policy], named, log, &around);
                let run = finished.map(|run| PolicyRun { policy, workload: name.workload, ..run });
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                run
            })
            .collect();
        let runs = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let heads: Vec<RunHead> = runs.iter().map(RunHead::of).collect();
        let summary = Summary::new(&layout, &heads, self.statistics);
        Ok(Evaluation { layout, runs, summary })
    }

    /// Names of the policies and of the scenarios.
    fn layout(&self) -> Result<RunLayout, RunError> {
        let policies = self.policies.iter().map(|entry| entry.name.clone()).collect();
        let scenarios = self.scenarios.iter().map(|named| (named.name.as_str(), named.seed));
        RunLayout::new(policies, scenarios, self.reference.as_deref())
    }
}
