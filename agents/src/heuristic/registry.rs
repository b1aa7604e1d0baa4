//! List of policies by the names that users type. Each paper's file declares its own entries; this
//! file puts them in a row.

use goodput_env::policy::Policy;
use goodput_env::view::{Batching, Information};

use crate::loaning::{Sharing, Variant};

use super::deepboot::requests::{RequestScheduler, Taking};
use super::deepboot::{self, BesideAtsI};

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
    /// Publication.
    pub source: &'static str,
    /// Kind of scheduler.
    pub traits: Traits,
    /// Builds the policy by the paper's rule. The seed matters only to policies that draw random
    /// numbers.
    pub build: fn(u64) -> Box<dyn Policy>,
    /// Builds the policy as its public artifact behaves, defects included, where that differs from
    /// the paper: for reproduction only. Users type `NAME@replica`.
    pub replica: Option<fn(u64) -> Box<dyn Policy>>,
}

impl ListedPolicy {
    /// The policy by the paper's rule, in its published settings.
    pub fn build(&self, seed: u64) -> Box<dyn Policy> {
        (self.build)(seed)
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

/// Suffix of a policy's name for the behaviour of its public artifact.
pub const REPLICA: &str = "@replica";

/// Separator between a policy's name and the way that it shares a cluster with services.
pub const VARIANT: char = '+';

/// All policies, paper by paper.
pub fn policies() -> impl Iterator<Item = &'static ListedPolicy> {
    super::PAPERS.iter().copied().flatten()
}

/// Names of all policies, in the order of [`policies`].
pub fn names() -> Vec<&'static str> {
    policies().map(|entry| entry.name).collect()
}

/// Policy that users call `name`: by the paper's rule, or with `@replica` as its artifact behaves.
/// `None` where there is no such policy, or no artifact that differs. `NAME+VARIANT` shares the
/// cluster with services in that way ([`Variant`], with its usual settings); `NAME+ats-i` runs
/// beside DeepBoot's scheduler of inference requests.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Policy>> {
    if let Some(training) = name.strip_suffix(deepboot::SUFFIX) {
        let plain = training.split([VARIANT, '@']).next().unwrap_or_default();
        let elastic = policies().find(|entry| entry.name == plain)?.traits.elastic;
        let taking = if elastic { Taking::One } else { Taking::All };
        let requests = RequestScheduler::default().taking(taking);
        return Some(Box::new(BesideAtsI::new(by_name(training, seed)?, requests)));
    }
    if let Some((training, variant)) = name.split_once(VARIANT) {
        return Some(Box::new(Variant::by_name(variant)?.around(by_name(training, seed)?, &Sharing::default())));
    }
    let (name, replica) = match name.strip_suffix(REPLICA) {
        Some(name) => (name, true),
        None => (name, false),
    };
    let entry = policies().find(|entry| entry.name == name)?;
    if replica { entry.replica.map(|build| build(seed)) } else { Some(entry.build(seed)) }
}
