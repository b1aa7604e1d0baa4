//! Entry of a published policy in the registry of policies.

use goodput_env::policy::Policy;
use goodput_env::view::{Batching, Information};

/// What kind of scheduler a policy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Takes accelerators away from running jobs.
    pub preemptive: bool,
    /// Gives a job other numbers of accelerators than it asked for.
    pub elastic: bool,
    /// Knows that accelerator types differ in speed.
    pub heterogeneous: bool,
}

/// A policy in the list.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// What users type.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What kind of scheduler it is.
    pub traits: Traits,
    /// Makes it by the paper's rule; the seed matters only to policies that draw random numbers.
    pub build: fn(u64) -> Box<dyn Policy>,
    /// Makes it as its public artifact behaves, defects included, where that differs: for reproduction only. Users type
    /// `NAME@replica`.
    pub replica: Option<fn(u64) -> Box<dyn Policy>>,
}

impl Listed {
    /// The policy by the paper's rule, in its published settings.
    pub fn build(&self, seed: u64) -> Box<dyn Policy> {
        (self.build)(seed)
    }

    /// What it is told about jobs in its publication.
    pub fn information(&self) -> Information {
        self.build(0).information()
    }

    /// The least it must be told about jobs to run at all.
    pub fn needs(&self) -> Information {
        self.build(0).needs()
    }

    /// How jobs choose their batch size under it.
    pub fn batching(&self) -> Batching {
        self.build(0).batching()
    }
}
