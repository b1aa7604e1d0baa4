//! AFS (Hwang et al., NSDI'21): elastic sharing that compares jobs in pairs, and gives the next
//! accelerator to the job of a pair with which the mean completion time falls more.
//!
//! AFS-L knows the lengths of jobs. AFS-P does not know them and presumes that the job that has run
//! least finishes first. Both divide anew at churn only: arrivals, completions and changes of
//! capacity. The rule itself is in [`rule`]; this file applies the rule to a cluster.
//!
//! Throughput is in iterations per second on packed accelerators, at the user's batch size, which
//! the paper keeps fixed. Where a profile says that more accelerators are slower, a size counts as
//! the best smaller size, and accelerators that bring nothing are given back.
//!
//! `afs-l@replica` is `afs.py` of DeepBoot's simulator, with these [`departures`] from the paper:
//! - both sides of the comparison divide by the later throughput;
//! - the job with fewer accelerators takes the place of the job that finishes first, and ties go to
//!   the job submitted later;
//! - a lone replica is modelled as accumulating gradients;
//! - only the request bounds the accelerators of a job;
//! - every call divides anew.

pub mod departures;
pub mod rule;

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::state::Trigger;
use goodput_env::view::{ClusterView, JobView};

use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::Free;
use departures::{AfsDepartures, DeepBootAfs, PublishedAfs};
use rule::{AfsContender, AfsRule, AfsShares};

/// Entries of AFS in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "afs-l",
        about: "elastic; each accelerator to the one of two jobs that shortens the mean more, lengths known",
        source: "Hwang et al. (AFS), NSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Afs::new(AfsRule::Lengths))),
        replica: Some(|_| Box::new(Afs::artifact())),
    },
    ListedPolicy {
        name: "afs-p",
        about: "as afs-l with lengths unknown: the job that has run least is presumed to finish first",
        source: "Hwang et al. (AFS), NSDI 2021; our reading of its unknown-length form",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        constructor: &Fixed(|_| Box::new(Afs::new(AfsRule::Attained))),
        replica: None,
    },
];

/// AFS over a cluster. Jobs are scanned in order of (submission, id).
#[derive(Clone, Debug)]
pub struct Afs<D = PublishedAfs> {
    rule: AfsRule,
    departures: D,
    /// Accelerators that could be given at the last decision.
    capacity: u32,
    shares: AfsShares,
    free: Free,
}

impl Afs {
    /// A policy that follows `rule` as published.
    pub fn new(rule: AfsRule) -> Self {
        Self::with(rule)
    }
}

impl Afs<DeepBootAfs> {
    /// A policy that behaves as `afs.py` of DeepBoot's simulator, which knows lengths.
    pub fn artifact() -> Self {
        Self::with(AfsRule::Lengths)
    }
}

impl<D: AfsDepartures> Afs<D> {
    fn with(rule: AfsRule) -> Self {
        Self { rule, departures: D::default(), capacity: 0, shares: AfsShares::default(), free: Free::default() }
    }

    fn contender(&self, job: &JobView<'_>, capacity: u32) -> AfsContender {
        let length = match self.rule {
            AfsRule::Attained => job.executed().as_secs_f64(),
            AfsRule::Lengths => job.remaining_iterations().unwrap_or(f64::INFINITY),
        };
        AfsContender { length, min: job.min_gpus(), max: self.departures.most(job).min(capacity) }
    }

    fn throughput(&self, job: &JobView<'_>, gpus: u32) -> Option<f64> {
        self.departures.iteration_secs(job, gpus).map(f64::recip)
    }
}

impl<D: AfsDepartures> Policy for Afs<D> {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let jobs: Vec<JobView<'_>> = view.jobs().collect();
        let capacity = view.total_free() + jobs.iter().map(JobView::gpus).sum::<u32>();
        let Trigger { arrival, completion, fault, .. } = view.trigger;
        let churned = arrival || completion || fault || capacity != self.capacity;
        self.capacity = capacity;
        let mut plan = Plan::keep();
        if !churned && !self.departures.divides_at_every_call() {
            return plan;
        }
        let contenders: Vec<AfsContender> = jobs.iter().map(|job| self.contender(job, capacity)).collect();
        let mut shares = std::mem::take(&mut self.shares);
        let throughput = |at: usize, gpus| self.throughput(&jobs[at], gpus);
        shares.allocate(self.rule, &self.departures, capacity, &contenders, throughput);
        let sizes: Vec<(JobView<'_>, u32)> = jobs.into_iter().zip(shares.counts()).collect();
        self.shares = shares;
        self.departures.place(view, &mut self.free, &sizes, &mut plan);
        plan
    }

    fn information(&self) -> Information {
        match self.rule {
            AfsRule::Attained => Information::Profiled,
            AfsRule::Lengths => Information::Estimate { sigma: 0.0 },
        }
    }

    fn needs(&self) -> Information {
        self.information()
    }
}
