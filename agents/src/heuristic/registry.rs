//! The list of policies by the names users type. Each paper's file declares its own entries; this file only puts them in a row.

use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information};

use crate::loaning::{Sharing, Variant};

use super::deepboot::requests::{RequestScheduler, Taking};
use super::deepboot::{self, Beside};

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

/// Ends the name of a policy that behaves as its public artifact does.
pub const REPLICA: &str = "@replica";

/// Between a policy and the way it shares a cluster with services.
pub const VARIANT: char = '+';

/// All policies, paper by paper.
pub fn policies() -> impl Iterator<Item = &'static Listed> {
    super::PAPERS.iter().copied().flatten()
}

/// Their names, in the same order.
pub fn names() -> Vec<&'static str> {
    policies().map(|entry| entry.name).collect()
}

/// The policy that users call `name`: by the paper's rule, or with `@replica` as its artifact behaves. `None` where there is
/// no such policy, or no artifact that differs. `NAME+VARIANT` shares the cluster with services in that way ([`Variant`], with its usual settings); `NAME+ats-i` runs beside DeepBoot's
/// scheduler of inference requests.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Policy>> {
    if let Some(training) = name.strip_suffix(deepboot::SUFFIX) {
        let plain = training.split([VARIANT, '@']).next().unwrap_or_default();
        let elastic = policies().find(|entry| entry.name == plain)?.traits.elastic;
        let taking = if elastic { Taking::One } else { Taking::All };
        let requests = RequestScheduler::default().taking(taking);
        return Some(Box::new(Beside::new(by_name(training, seed)?, requests)));
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
