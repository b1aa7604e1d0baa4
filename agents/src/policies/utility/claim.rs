//! The claim of a job to accelerators: what the value of each of its sizes goes by at a decision point.

use goodput_env::cluster::TypeId;
use goodput_env::view::{ClusterView, JobView};

use super::features::{FEATURES, JobFacts};
use super::history::{History, Left};
use super::reach::{available, capacity};
use super::speeds::Speeds;
use super::tenants::Tenants;
use super::theta::{Theta, log_restart};

/// Claim of a job.
pub(super) struct JobClaim {
    /// Features of its weight.
    pub features: [f64; FEATURES.len()],
    /// Seconds since its submission.
    pub age_secs: f64,
    /// Restarts so far.
    pub restarts: u32,
    /// Seconds that it may have left at its present speed.
    pub remaining_secs: f64,
}

/// Quantities that all jobs of a decision point share.
pub(super) struct ClaimRound {
    /// Equal share of a job, accelerators.
    pub fair: u32,
    /// Logarithm of jobs per node.
    pub pressure: f64,
    /// Exponent of the speed in the value of a size.
    pub exponent: f64,
    /// Accelerators that the jobs of a tenant hold, and those that the tenant is due.
    pub tenants: Tenants,
}

impl JobClaim {
    /// Claim of the job at `at` of the view.
    pub fn of(
        view: &ClusterView<'_>,
        at: usize,
        job: &JobView<'_>,
        round: &ClaimRound,
        theta: &Theta,
        speeds: &Speeds,
        history: &History,
    ) -> Self {
        let least = speeds.smallest(at).max(1);
        let left = history.left(view, theta, job, speeds.least(at), least);
        let facts = facts(view, speeds, at, job, &left, round);
        // A job that waits counts with the speed of its smallest size.
        let now = speeds.speedup(at, job.kind(), job.gpus()).max(1.0);
        Self {
            features: facts.features(),
            age_secs: facts.age_secs,
            restarts: facts.restarts,
            remaining_secs: left.gpu_secs / (f64::from(least) * now),
        }
    }
}

impl ClaimRound {
    /// Of the jobs in view on all accelerators that jobs hold or that are free.
    pub fn at(view: &ClusterView<'_>, theta: &Theta) -> Self {
        Self::new(view, theta, &capacity(view, &available(view)))
    }

    /// Of the jobs in view on what is there of each type.
    pub fn new(view: &ClusterView<'_>, theta: &Theta, capacity: &[u32]) -> Self {
        let per_node = |kind: usize| f64::from(view.cluster().gpus_per_node_of(TypeId::at(kind)).max(1));
        let total: u32 = capacity.iter().sum();
        let jobs = (view.active() as u32).max(1);
        // Nodes of types differ; the mean goes by accelerators.
        let of_nodes: f64 = (0..capacity.len()).map(|kind| f64::from(capacity[kind]) * per_node(kind)).sum();
        let mean = if total > 0 { of_nodes / f64::from(total) } else { per_node(0) };
        let pressure = (f64::from(jobs) * mean / f64::from(total.max(1))).ln();
        let tenants = Tenants::of(view, total);
        let restart = view.jobs().map(|job| log_restart(job.restart_secs())).sum::<f64>() / f64::from(jobs);
        Self { fair: total.div_ceil(jobs).max(1), pressure, exponent: theta.exponent(pressure, restart), tenants }
    }
}

/// Facts about the job at `at`.
fn facts(
    view: &ClusterView<'_>,
    speeds: &Speeds,
    at: usize,
    job: &JobView<'_>,
    left: &Left,
    round: &ClaimRound,
) -> JobFacts {
    let (least, most_measured) = (speeds.smallest(at).max(1), speeds.most_measured(at));
    let most = speeds.on(at, most_measured).last().map_or(1, |rate| rate.0);
    let node = view.cluster().gpus_per_node_of(most_measured).max(least);
    JobFacts {
        attained_gpu_secs: job.attained_gpu_millis() as f64 / 1e3,
        remaining_gpu_secs: left.gpu_secs,
        done_gpu_secs: left.done_gpu_secs,
        age_secs: job.age().as_secs_f64(),
        speedups: [round.fair.max(least), node, most].map(|gpus| speeds.scaling(at, most_measured, gpus)),
        waiting: job.gpus() == 0,
        never_ran: speeds.least(at).is_none(),
        restarts: job.state.restarts,
        pressure: round.pressure,
        spread: speeds.spread(at),
        share_of_tenant: round.tenants.share(job.request().tenant),
        failures: job.failures(),
    }
}
