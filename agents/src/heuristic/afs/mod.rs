//! AFS (Hwang et al., NSDI'21): elastic sharing that looks at two jobs at a time and asks which of them shortens the mean completion
//! time more with the next accelerator.
//!
//! AFS-L knows how long jobs are, AFS-P does not and presumes that who has run least finishes first. Both run again at churn: arrivals,
//! completions and changes of capacity, not in between. The rule itself is in [`rule`]; here is what surrounds it in a cluster.
//!
//! Throughput is that of the user's batch size, which the paper keeps fixed, in iterations per second on packed accelerators. Sizes at which
//! a profile says that more accelerators are slower count as the best smaller size; accelerators that bring nothing are given back.
//!
//! `afs-l@replica` is `afs.py` of DeepBoot's simulator: both sides of the comparison divide by the later throughput, the job with fewer
//! accelerators takes the place of the one that finishes first, ties go to the job submitted later, a lone replica is thought to accumulate,
//! nothing bounds a job's accelerators but its request, and it decides anew every time it is asked.

pub mod rule;

use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::state::Trigger;
use goodput_env::view::{ClusterView, JobView};

use crate::heuristic::{Listed, Traits};
use crate::placement::{Free, Packer, resize};
use rule::{Contender, Rule, Shares};

/// In the list of policies.
pub const LISTED: &[Listed] = &[
    Listed {
        name: "afs-l",
        about: "elastic; each accelerator to the one of two jobs that shortens the mean more, lengths known",
        source: "Hwang et al. (AFS), NSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        build: |_| Box::new(Afs::new(Rule::Lengths)),
        replica: Some(|_| Box::new(Afs::new(Rule::DeepBoot))),
    },
    Listed {
        name: "afs-p",
        about: "the same with lengths unknown: who has run least is presumed to finish first",
        source: "Hwang et al. (AFS), NSDI 2021; our reading of its unknown-length form",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        build: |_| Box::new(Afs::new(Rule::Attained)),
        replica: None,
    },
];

/// The policy; jobs are scanned in order of (submission, id).
#[derive(Clone, Debug)]
pub struct Afs {
    rule: Rule,
    /// Accelerators that could be given at the last decision.
    capacity: u32,
    shares: Shares,
    free: Free,
}

impl Afs {
    /// With the given rule.
    pub fn new(rule: Rule) -> Self {
        Self { rule, capacity: 0, shares: Shares::default(), free: Free::default() }
    }

    fn contender(&self, job: &JobView<'_>, capacity: u32) -> Contender {
        let length = match self.rule {
            Rule::Attained => job.executed().as_secs_f64(),
            Rule::Lengths | Rule::DeepBoot => job.remaining_iterations().unwrap_or(f64::INFINITY),
        };
        let max = if self.rule == Rule::DeepBoot { job.request().max_gpus() } else { job.max_gpus() };
        Contender { length, min: job.min_gpus(), max: max.min(capacity) }
    }

    fn throughput(&self, job: &JobView<'_>, gpus: u32) -> Option<f64> {
        let lone = gpus == 1 && self.rule == Rule::DeepBoot;
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
        if !churned && self.rule != Rule::DeepBoot {
            return plan;
        }
        let contenders: Vec<Contender> = jobs.iter().map(|job| self.contender(job, capacity)).collect();
        let mut shares = std::mem::take(&mut self.shares);
        shares.allocate(self.rule, capacity, &contenders, |at, gpus| self.throughput(&jobs[at], gpus));
        let sizes: Vec<(JobView<'_>, u32)> = jobs.into_iter().zip(shares.counts()).collect();
        self.shares = shares;
        match self.rule {
            Rule::Lengths | Rule::Attained => resize(view, &mut self.free, &sizes, &mut plan),
            Rule::DeepBoot => place_anew(view, &mut self.free, &sizes, &mut plan),
        }
        plan
    }

    fn information(&self) -> Information {
        match self.rule {
            Rule::Attained => Information::Profiled,
            Rule::Lengths | Rule::DeepBoot => Information::Estimate { sigma: 0.0 },
        }
    }

    fn needs(&self) -> Information {
        self.information()
    }
}

/// Whoever keeps its size keeps its nodes; the others are placed anew in ascending order of size, best fit.
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
