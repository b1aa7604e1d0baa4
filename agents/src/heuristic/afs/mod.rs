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
//! `afs-l@replica` is `afs.py` of DeepBoot's simulator, with these departures from the paper:
//! - both sides of the comparison divide by the later throughput;
//! - the job with fewer accelerators takes the place of the job that finishes first, and ties go to
//!   the job submitted later;
//! - a lone replica is modelled as accumulating gradients;
//! - only the request bounds the accelerators of a job;
//! - every call divides anew.

pub mod rule;

use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::state::Trigger;
use goodput_env::view::{ClusterView, JobView};

use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::{Free, Packer, resize};
use rule::{AfsContender, AfsRule, AfsShares};

/// Entries of AFS in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "afs-l",
        about: "elastic; each accelerator to the one of two jobs that shortens the mean more, lengths known",
        source: "Hwang et al. (AFS), NSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        build: |_| Box::new(Afs::new(AfsRule::Lengths)),
        replica: Some(|_| Box::new(Afs::new(AfsRule::DeepBoot))),
    },
    ListedPolicy {
        name: "afs-p",
        about: "as afs-l with lengths unknown: the job that has run least is presumed to finish first",
        source: "Hwang et al. (AFS), NSDI 2021; our reading of its unknown-length form",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        build: |_| Box::new(Afs::new(AfsRule::Attained)),
        replica: None,
    },
];

/// AFS over a cluster. Jobs are scanned in order of (submission, id).
#[derive(Clone, Debug)]
pub struct Afs {
    rule: AfsRule,
    /// Accelerators that could be given at the last decision.
    capacity: u32,
    shares: AfsShares,
    free: Free,
}

impl Afs {
    /// A policy that follows `rule`.
    pub fn new(rule: AfsRule) -> Self {
        Self { rule, capacity: 0, shares: AfsShares::default(), free: Free::default() }
    }

    fn contender(&self, job: &JobView<'_>, capacity: u32) -> AfsContender {
        let length = match self.rule {
            AfsRule::Attained => job.executed().as_secs_f64(),
            AfsRule::Lengths | AfsRule::DeepBoot => job.remaining_iterations().unwrap_or(f64::INFINITY),
        };
        let max = if self.rule == AfsRule::DeepBoot { job.request().max_gpus() } else { job.max_gpus() };
        AfsContender { length, min: job.min_gpus(), max: max.min(capacity) }
    }

    fn throughput(&self, job: &JobView<'_>, gpus: u32) -> Option<f64> {
        let lone = gpus == 1 && self.rule == AfsRule::DeepBoot;
        let secs = if lone { job.accumulating_iteration_secs() } else { job.iteration_secs(gpus) };
        secs.map(f64::recip)
    }
}

impl Policy for Afs {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let jobs: Vec<JobView<'_>> = view.jobs().collect();
        let capacity = view.total_free() + jobs.iter().map(JobView::gpus).sum::<u32>();
        let Trigger { arrival, completion, fault, .. } = view.trigger;
        let churned = arrival || completion || fault || capacity != self.capacity;
        self.capacity = capacity;
        let mut plan = Plan::keep();
        if !churned && self.rule != AfsRule::DeepBoot {
            return plan;
        }
        let contenders: Vec<AfsContender> = jobs.iter().map(|job| self.contender(job, capacity)).collect();
        let mut shares = std::mem::take(&mut self.shares);
        shares.allocate(self.rule, capacity, &contenders, |at, gpus| self.throughput(&jobs[at], gpus));
        let sizes: Vec<(JobView<'_>, u32)> = jobs.into_iter().zip(shares.counts()).collect();
        self.shares = shares;
        match self.rule {
            AfsRule::Lengths | AfsRule::Attained => resize(view, &mut self.free, &sizes, &mut plan),
            AfsRule::DeepBoot => place_anew(view, &mut self.free, &sizes, &mut plan),
        }
        plan
    }

    fn information(&self) -> Information {
        match self.rule {
            AfsRule::Attained => Information::Profiled,
            AfsRule::Lengths | AfsRule::DeepBoot => Information::Estimate { sigma: 0.0 },
        }
    }

    fn needs(&self) -> Information {
        self.information()
    }
}

/// Placement of the artifact: a job that keeps its size keeps its nodes, and all other jobs are
/// placed anew, the smallest first, best fit.
fn place_anew(view: &ClusterView<'_>, free: &mut Free, sizes: &[(JobView<'_>, u32)], plan: &mut Plan) {
    free.reset(view.free());
    let mut changed: Vec<&(JobView<'_>, u32)> = sizes.iter().filter(|(job, gpus)| job.gpus() != *gpus).collect();
    changed.sort_by_key(|(_, gpus)| *gpus);
    for (job, _) in &changed {
        free.release(&job.state.placement);
    }
    for (job, gpus) in changed {
        let placement = if *gpus == 0 { None } else { Packer::FewestNodes.place(view.cluster(), free, *gpus) };
        plan.set(job.id(), placement.unwrap_or_else(Placement::none));
    }
}
