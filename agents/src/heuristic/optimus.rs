//! Optimus (Peng et al., EuroSys'18): accelerators go, one at a time, to the job that saves most
//! remaining time with one more.
//!
//! This is the form in which later work compares against Optimus (Pollux artifact, `optimus.py`):
//! all-reduce instead of parameter servers, and an oracle for both step times and remaining
//! iterations, where the paper fits convergence curves online.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information};
use goodput_env::view::{ClusterView, JobView};

use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::{Free, Packer};

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "optimus",
    about: "accelerators one by one, each to the job with the largest cut of its remaining time",
    source: "Peng et al., EuroSys 2018; oracle form of the Pollux artifact",
    traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
    constructor: &Fixed(|_| Box::new(Optimus::default())),
    replica: None,
}];

/// Optimus over a cluster. Ties go to the job submitted first. Jobs of unknown remaining work or
/// speed stay at their minimum.
#[derive(Clone, Debug, Default)]
pub struct Optimus {
    free: Free,
    counts: Vec<u32>,
    order: Vec<u32>,
}

/// Division of `gpus` accelerators among jobs (Optimus, section 4.1).
///
/// In order each job gets its minimum `min(job)` if that is left. Then the largest `gain(job, n)`,
/// the seconds saved by going from `n` to `n + 1`, wins an accelerator, the first job on ties,
/// until none is left or nothing is gained. `counts` is overwritten.
pub fn allocate(
    jobs: usize,
    gpus: u32,
    min: impl Fn(usize) -> u32,
    mut gain: impl FnMut(usize, u32) -> f64,
    counts: &mut Vec<u32>,
) {
    let mut left = gpus;
    counts.clear();
    counts.extend((0..jobs).map(|job| {
        let count = if min(job) <= left { min(job) } else { 0 };
        left -= count;
        count
    }));
    let mut bid = |job: usize, count: u32| Some(Bid { gain: gain(job, count), job }).filter(|bid| bid.gain > 0.0);
    let mut bids: BinaryHeap<Bid> = match left {
        0 => BinaryHeap::new(),
        _ => (0..jobs).filter(|&job| counts[job] > 0).filter_map(|job| bid(job, counts[job])).collect(),
    };
    while left > 0
        && let Some(Bid { job, .. }) = bids.pop()
    {
        counts[job] += 1;
        left -= 1;
        bids.extend(bid(job, counts[job]));
    }
}

/// Bid of a job for one more accelerator; the greatest has the largest gain, and among equals the
/// lowest job.
#[derive(PartialEq)]
struct Bid {
    gain: f64,
    job: usize,
}

impl Eq for Bid {}

impl PartialOrd for Bid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.job.cmp(&self.job))
    }
}

/// Seconds of remaining time that the accelerator after the `count`-th saves.
fn gain(job: &JobView<'_>, count: u32) -> f64 {
    if count >= job.max_gpus() {
        return 0.0;
    }
    let saved = || {
        // The artifact predicts that a lone replica accumulates at least once, whether or not it
        // will.
        let now = if count == 1 { job.accumulating_iteration_secs()? } else { job.iteration_secs(count)? };
        Some((now - job.iteration_secs(count + 1)?) * job.remaining_iterations()?)
    };
    saved().unwrap_or(0.0)
}

impl Policy for Optimus {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let jobs: Vec<JobView<'_>> = view.jobs().collect();
        let held: u32 = jobs.iter().map(JobView::gpus).sum();
        let gpus = view.total_free() + held;
        allocate(jobs.len(), gpus, |at| jobs[at].min_gpus(), |at, count| gain(&jobs[at], count), &mut self.counts);

        // A job that keeps its count keeps its nodes; the others are placed smallest first.
        let counts = &self.counts;
        self.free.reset(view);
        self.order.clear();
        self.order.extend((0..jobs.len() as u32).filter(|&at| jobs[at as usize].gpus() != counts[at as usize]));
        for &at in &self.order {
            self.free.release(&jobs[at as usize].state.placement);
        }
        self.order.sort_by_key(|&at| counts[at as usize]);
        let mut plan = Plan::keep();
        for &at in &self.order {
            let placement = match counts[at as usize] {
                0 => None,
                count => {
                    let job = &jobs[at as usize];
                    let (held, least) = (&job.state.placement, job.min_gpus());
                    Packer::MostFreeFirst.place_most(view.cluster(), &mut self.free, held, count, least)
                }
            };
            plan.set(jobs[at as usize].id(), placement.unwrap_or_else(Placement::none));
        }
        plan
    }

    fn batching(&self) -> Batching {
        Batching::Requested
    }

    fn information(&self) -> Information {
        Information::Oracle
    }

    fn needs(&self) -> Information {
        Information::Estimate { sigma: 0.0 }
    }
}
