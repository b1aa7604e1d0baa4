//! Policies x scenarios, in parallel, on common random numbers.
//!
//! Every policy meets the same scenarios, so differences are paired. Runs share nothing but their
//! inputs and come back in the order policy, then scenario, whatever the number of threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput_agents::compose::Wrappers;
use goodput_agents::compose::loaning::{Sharing, complete};
use goodput_env::policy::Scope;
use goodput_env::scenario::Information;
use goodput_env::sim::{SimError, Simulator};
use rayon::prelude::*;
use thiserror::Error;

use super::entry::{AllocationLog, NamedScenario, PolicyEntry};
use super::policy_run::PolicyRun;
use super::summary::{Statistics, Summary};
use crate::metrics::{RunFacts, measure};

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

/// A finished comparison.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Names of the policies.
    pub policies: Vec<String>,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Runs in the order policy, then scenario as given. Those of the first scenario have their
    /// allocations logged.
    pub runs: Vec<PolicyRun>,
    /// Means, intervals and differences.
    pub summary: Summary,
}

impl Evaluation {
    /// The runs of one policy, in the order of the scenarios.
    pub fn runs_of(&self, policy: usize) -> &[PolicyRun] {
        let scenarios = self.runs.len() / self.policies.len();
        &self.runs[policy * scenarios..(policy + 1) * scenarios]
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
        let workloads = self.check()?;
        let total = self.policies.len() * self.scenarios.len();
        let done = AtomicUsize::new(0);
        // Runs differ in length by orders of magnitude, so each is a task of its own. All of them
        // end before errors are looked at, so that the first error is the first in order.
        let results: Vec<Result<PolicyRun, RunError>> = (0..total)
            .into_par_iter()
            .with_max_len(1)
            .map(|index| {
                let (policy, scenario) = (index / self.scenarios.len(), index % self.scenarios.len());
                let run = self.run_one(policy, scenario, &workloads);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                run
            })
            .collect();
        // A fault of a policy is the reason why its run failed, where it did.
        for entry in &self.policies {
            if let Some(problem) = (entry.fault)() {
                return Err(RunError::Faulty { policy: entry.name.clone(), problem });
            }
        }
        let runs = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let policies: Vec<String> = self.policies.iter().map(|entry| entry.name.clone()).collect();
        let reference = self.reference.clone().unwrap_or_else(|| policies[0].clone());
        let summary = Summary::new(&policies, &workloads, &runs, &reference, self.statistics);
        Ok(Evaluation { policies, workloads, runs, summary })
    }

    fn run_one(&self, policy: usize, scenario: usize, workloads: &[String]) -> Result<PolicyRun, RunError> {
        let (entry, named) = (&self.policies[policy], &self.scenarios[scenario]);
        // Timelines show the first scenario only, and a log of every run would fill the memory.
        let log = if scenario == 0 { AllocationLog::Kept } else { AllocationLog::AsConfigured };
        let inputs = entry.scenario(&named.scenario, log);
        let make = || (entry.make)(named.seed);
        if !self.wrappers.is_empty() && make().scope() == Scope::Everything {
            return Err(RunError::NotTraining { policy: entry.name.clone() });
        }
        let mut instance = complete(self.wrappers.around(make), &inputs, &self.sharing);
        let (needs, given) = (instance.needs(), inputs.options.information);
        if !given.allows(needs) {
            let (policy, workload) = (entry.name.clone(), named.name.clone());
            return Err(RunError::Information { policy, workload, needs, given });
        }
        let outcome = Simulator::new(inputs.clone()).run(&mut *instance).map_err(|source| RunError::Run {
            policy: entry.name.clone(),
            workload: named.name.clone(),
            seed: named.seed,
            source: Box::new(source),
        })?;
        let measures = measure(&RunFacts::new(&inputs, &outcome));
        let workload = workloads.iter().position(|name| *name == named.name).unwrap_or_default();
        Ok(PolicyRun { policy, workload, seed: named.seed, scenario: inputs, outcome, measures })
    }

    /// Checks names and shape; gives the workloads in order of appearance.
    fn check(&self) -> Result<Vec<String>, RunError> {
        if self.policies.is_empty() || self.scenarios.is_empty() {
            return Err(RunError::Empty);
        }
        for (index, entry) in self.policies.iter().enumerate() {
            if self.policies[..index].iter().any(|other| other.name == entry.name) {
                return Err(RunError::DuplicatePolicy { name: entry.name.clone() });
            }
        }
        if let Some(name) =
            self.reference.as_ref().filter(|name| self.policies.iter().all(|entry| entry.name != **name))
        {
            let known = self.policies.iter().map(|entry| entry.name.clone()).collect();
            return Err(RunError::UnknownReference { name: name.clone(), known });
        }
        let mut workloads: Vec<String> = Vec::new();
        let mut seeds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for named in &self.scenarios {
            if !workloads.contains(&named.name) {
                workloads.push(named.name.clone());
            }
            let of_name = seeds.entry(&named.name).or_default();
            if of_name.contains(&named.seed) {
                return Err(RunError::DuplicateScenario { workload: named.name.clone(), seed: named.seed });
            }
            of_name.push(named.seed);
        }
        let (first, expected) = (workloads[0].clone(), seeds[workloads[0].as_str()].len());
        match workloads.iter().find(|name| seeds[name.as_str()].len() != expected) {
            None => Ok(workloads),
            Some(name) => {
                let found = seeds[name.as_str()].len();
                Err(RunError::UnequalSeeds { workload: name.clone(), seeds: found, first, expected })
            }
        }
    }
}
