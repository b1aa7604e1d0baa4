//! Entries of a comparison: the policies and the scenarios on which they meet.

use std::sync::Arc;

use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario};

/// Makes a fresh policy for a run with this seed.
pub type PolicyFactory = Box<dyn Fn(u64) -> Box<dyn Policy> + Send + Sync>;

/// Sentence about decisions that a policy could not take; `None` where there are none.
pub type PolicyFault = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Treatment of the log of allocations in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationLog {
    /// The log is kept, for the timelines of the report.
    Kept,
    /// The options of the scenario decide.
    AsConfigured,
}

/// A policy to compare.
pub struct PolicyEntry {
    /// Name of the policy, unique in a comparison.
    pub name: String,
    /// Constructor of the policy; called once a run with the scenario's seed.
    pub make: PolicyFactory,
    /// Choice of the batch sizes of jobs under the policy, in place of the scenario's.
    pub batching: Option<Batching>,
    /// Information level of the policy, in place of the scenario's.
    pub information: Option<Information>,
    /// Moments at which the policy is asked, in place of the scenario's.
    pub rounds: Option<Rounds>,
    /// Question, after the runs, for decisions that the policy could not take; such a policy has no results.
    pub fault: PolicyFault,
}

impl std::fmt::Debug for PolicyEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolicyEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PolicyEntry {
    /// A policy under the scenario's own batching and information level.
    pub fn new(name: impl Into<String>, make: impl Fn(u64) -> Box<dyn Policy> + Send + Sync + 'static) -> Self {
        let (batching, information, rounds) = Default::default();
        Self { name: name.into(), make: Box::new(make), batching, information, rounds, fault: Box::new(|| None) }
    }

    /// Policy entry with the batching and the information level of the publication.
    #[must_use]
    pub fn as_published(mut self) -> Self {
        let policy = (self.make)(0);
        self.batching = Some(policy.batching());
        self.information = Some(policy.information());
        self
    }

    /// Scenario with the conventions of this policy.
    pub fn under(&self, scenario: &Arc<Scenario>) -> Arc<Scenario> {
        self.scenario(scenario, AllocationLog::AsConfigured)
    }

    pub(crate) fn scenario(&self, scenario: &Arc<Scenario>, log: AllocationLog) -> Arc<Scenario> {
        let mut options = scenario.options.clone();
        options.batching = self.batching.unwrap_or(options.batching);
        options.information = self.information.unwrap_or(options.information);
        options.rounds = self.rounds.unwrap_or(options.rounds);
        options.log_allocations |= log == AllocationLog::Kept;
        if options == scenario.options {
            scenario.clone()
        } else {
            Arc::new(Scenario { options, ..(**scenario).clone() })
        }
    }
}

/// A scenario to compare on.
#[derive(Clone, Debug)]
pub struct NamedScenario {
    /// Name of the workload; scenarios of one name are repetitions of it with other seeds.
    pub name: String,
    /// Seed of the repetition.
    pub seed: u64,
    /// Cluster, workload and options of the run.
    pub scenario: Arc<Scenario>,
}
