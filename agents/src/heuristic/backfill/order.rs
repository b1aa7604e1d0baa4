//! Orders of the queue of a batch system: a number for each waiting job, the least of which comes first.
//!
//! [`QueueOrder`] is what a queue asks. [`JobOrder`] has the published numbers, each of which is about one job alone; a
//! learned order looks at the whole queue (`agents::policies::queue`).

use goodput_env::job::JobRequest;
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Order of a queue. With r the run time that a job asks for, n its accelerators, s its submission since the start of
/// the trace and w its wait so far, all times in seconds, a job comes the earlier the smaller its number is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum JobOrder {
    /// First come, first served: s.
    #[default]
    Fcfs,
    /// Shortest job first: r.
    Sjf,
    /// Smallest area first: r n.
    Saf,
    /// -(w / r)^3 n (WFP3; Tang et al., IPDPS 2010).
    Wfp3,
    /// -w / (log2(n) r) (UNICEP; Tang et al., CLUSTER 2009).
    Unicep,
    /// log10(r) n + 870 log10(s) (Carastan-Santos and de Camargo, SC 2017).
    F1,
    /// sqrt(r) n + 25,600 log10(s) (Carastan-Santos and de Camargo, SC 2017).
    F2,
    /// r n + 6,860,000 log10(s) (Carastan-Santos and de Camargo, SC 2017).
    F3,
    /// r sqrt(n) + 530,000 log10(s) (Carastan-Santos and de Camargo, SC 2017).
    F4,
}

/// Waiting job, as an order knows it.
#[derive(Clone, Copy, Debug)]
pub struct OrderedJob<'a> {
    /// Request of the job.
    pub request: &'a JobRequest,
    /// Run time that the job is expected to need.
    pub planned: SimTime,
    /// Wait of the job so far, seconds.
    pub waited_secs: f64,
}

/// Moment at which a queue is sorted.
#[derive(Clone, Copy, Debug)]
pub struct QueueMoment<'a> {
    /// Time of the decision.
    pub now: SimTime,
    /// Accelerators of the cluster.
    pub gpus: u32,
    /// Accelerators that no job holds.
    pub free: u32,
    /// Jobs that run: the time at which each is expected to end, and its accelerators.
    pub running: &'a [(SimTime, u32)],
}

/// Rule by which a queue is sorted.
pub trait QueueOrder: Send {
    /// Numbers by which the waiting `jobs` are queued, one for each; the least comes first.
    fn numbers(&mut self, moment: &QueueMoment<'_>, jobs: &[OrderedJob<'_>]) -> Vec<f64>;

    /// Whether the numbers depend on the run times that jobs are expected to need.
    fn needs_run_times(&self) -> bool;

    /// Whether the artifact of RLScheduler breaks ties of the numbers by submission; otherwise by its last order.
    fn goes_by_submission(&self) -> bool {
        true
    }

    /// Hears how many jobs at the head of the last order took their turn: those that started, and the one that waits.
    fn took_turns(&mut self, _jobs: usize) {}
}

impl QueueOrder for JobOrder {
    fn numbers(&mut self, _moment: &QueueMoment<'_>, jobs: &[OrderedJob<'_>]) -> Vec<f64> {
        jobs.iter().map(|job| self.key(job)).collect()
    }

    fn needs_run_times(&self) -> bool {
        *self != Self::Fcfs
    }

    fn goes_by_submission(&self) -> bool {
        *self == Self::Sjf
    }
}

/// Keeps a logarithm and a quotient finite where a job has no length or one accelerator, as the artifact of RLScheduler
/// does.
const TINY: f64 = 1e-15;

impl JobOrder {
    /// Every order, as the list of its choices has them.
    pub const ALL: [Self; 9] =
        [Self::Fcfs, Self::Sjf, Self::Saf, Self::Wfp3, Self::Unicep, Self::F1, Self::F2, Self::F3, Self::F4];

    /// Number by which the job is queued. Jobs with equal numbers go by submission.
    pub fn key(self, job: &OrderedJob<'_>) -> f64 {
        let (n, r, w) = (f64::from(job.request.gpus), job.planned.as_secs_f64(), job.waited_secs);
        // The logarithm of the first second is that of a tenth of it, as in the artifact of RLScheduler.
        let submitted = job.request.submit.as_secs_f64();
        let log_s = || if submitted > 0.0 { submitted } else { 0.1 }.log10();
        match self {
            Self::Fcfs => submitted,
            Self::Sjf => r,
            Self::Saf => r * n,
            Self::Wfp3 => -(w / r).powi(3) * n,
            Self::Unicep => -(w + TINY) / ((n + TINY).log2() * r),
            Self::F1 => r.log10() * n + 870.0 * log_s(),
            Self::F2 => r.sqrt() * n + 25_600.0 * log_s(),
            Self::F3 => r * n + 6_860_000.0 * log_s(),
            Self::F4 => r * n.sqrt() + 530_000.0 * log_s(),
        }
    }

    /// Whether the number of a job changes while it waits.
    pub fn ages(self) -> bool {
        matches!(self, Self::Wfp3 | Self::Unicep)
    }
}
