//! Points at which the AFS of DeepBoot's simulator departs from the paper.
//!
//! Rule and policy ask [`AfsDepartures`] wherever paper and simulator differ. The defaults of the trait are the
//! paper's behaviour; [`DeepBootAfs`] overrides them with `afs.py` of DeepBoot's simulator.

use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::view::{ClusterView, JobView};

use super::rule::AfsRunner;
use crate::placement::{Free, Packer, resize};

/// Behaviour that differs between the paper and DeepBoot's simulator.
pub trait AfsDepartures: Clone + Default + Send {
    /// Most accelerators that the job can use.
    fn most(&self, job: &JobView<'_>) -> u32 {
        job.max_gpus()
    }

    /// Seconds of an iteration of the job; `None` where they are unknown.
    fn iteration_secs(&self, job: &JobView<'_>, gpus: u32) -> Option<f64> {
        job.iteration_secs(gpus)
    }

    /// Whether every call divides anew, and not churn alone.
    fn divides_at_every_call(&self) -> bool {
        false
    }

    /// Order among jobs without a share, by the bits of their time on the smallest size and their place in the
    /// scan: the least goes first.
    fn turn(&self, first: u64, at: u32) -> (u64, u32) {
        (first, at)
    }

    /// Whether the `challenger`, which comes later in the scan, takes the place of the `champion`.
    fn prefers(&self, champion: &AfsRunner, challenger: &AfsRunner) -> bool {
        champion.gives_way_to(challenger)
    }

    /// Throughput after the next step, given the measured one and the present one. A job may leave accelerators
    /// idle that would slow it down.
    fn next_speed(&self, measured: f64, present: f64) -> f64 {
        measured.max(present)
    }

    /// Whether a job keeps accelerators that make it no faster.
    fn keeps_useless(&self) -> bool {
        false
    }

    /// Adds the placement of the new sizes to the plan.
    fn place(&self, view: &ClusterView<'_>, free: &mut Free, sizes: &[(JobView<'_>, u32)], plan: &mut Plan) {
        resize(view, free, sizes, plan);
    }
}

/// AFS as the paper has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublishedAfs;

impl AfsDepartures for PublishedAfs {}

/// AFS as `afs.py` of DeepBoot's simulator has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeepBootAfs;

impl AfsDepartures for DeepBootAfs {
    /// Only the request bounds the accelerators of a job.
    fn most(&self, job: &JobView<'_>) -> u32 {
        job.request().max_gpus()
    }

    /// A lone replica is modelled as accumulating gradients.
    fn iteration_secs(&self, job: &JobView<'_>, gpus: u32) -> Option<f64> {
        if gpus == 1 { job.accumulating_iteration_secs() } else { job.iteration_secs(gpus) }
    }

    fn divides_at_every_call(&self) -> bool {
        true
    }

    /// Of equal jobs the last one goes first.
    fn turn(&self, first: u64, at: u32) -> (u64, u32) {
        (first, u32::MAX - at)
    }

    /// Both gains are relative to the later throughput, so the order of finishing matters on ties only. On ties
    /// the job with fewer accelerators wins, and of equal ones the later job.
    fn prefers(&self, champion: &AfsRunner, challenger: &AfsRunner) -> bool {
        if champion.share == 0 && challenger.share == 0 {
            champion.first >= challenger.first
        } else if champion.share >= challenger.share {
            champion.gain_over_next <= challenger.gain_over_next
        } else {
            challenger.gain_over_next > champion.gain_over_next
        }
    }

    fn next_speed(&self, measured: f64, _present: f64) -> f64 {
        measured
    }

    fn keeps_useless(&self) -> bool {
        true
    }

    /// A job that keeps its size keeps its nodes, and all other jobs are placed anew, the smallest first, best
    /// fit.
    fn place(&self, view: &ClusterView<'_>, free: &mut Free, sizes: &[(JobView<'_>, u32)], plan: &mut Plan) {
        free.reset(view);
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
}
