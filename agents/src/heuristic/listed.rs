//! Entry of a published policy in the registry of policies.

use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information};

use super::parameters::Constructor;

/// Kind of scheduler that a policy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Takes accelerators away from running jobs.
    pub preemptive: bool,
    /// Gives a job other numbers of accelerators than it asked for.
    pub elastic: bool,
    /// Takes account of different speeds of accelerator types.
    pub heterogeneous: bool,
}

/// Policy in the list.
#[derive(Clone, Copy, Debug)]
pub struct ListedPolicy {
    /// Name that users type.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Publication of the rule and its public artifact.
    pub source: &'static str,
    /// Kind of scheduler.
    pub traits: Traits,
    /// Constructor of the policy by the paper's rule, with its parameters. The seed matters only to policies that
    /// draw random numbers.
    pub constructor: &'static dyn Constructor,
    /// Builds the policy as its public artifact behaves, defects included, where that differs from
    /// the paper: for reproduction only. Users type `NAME@replica`.
    pub replica: Option<fn(u64) -> Box<dyn Policy>>,
}

impl ListedPolicy {
    /// Builds the policy by the paper's rule, with every parameter at its default.
    pub fn build(&self, seed: u64) -> Box<dyn Policy> {
        self.constructor.build(seed)
    }

    /// Knowledge of jobs that the policy has in its publication.
    pub fn information(&self) -> Information {
        self.build(0).information()
    }

    /// Least knowledge of jobs without which the policy cannot run.
    pub fn needs(&self) -> Information {
        self.build(0).needs()
    }

    /// Choice of batch sizes under the policy.
    pub fn batching(&self) -> Batching {
        self.build(0).batching()
    }
}
