//! The scheduler of RLScheduler's simulator (Zhang et al., SC'20; DIR-LAB/deep-batch-scheduler,
//! `HPCSimPickJobs.py`), for comparison with its figures. It differs from the rule in five ways.
//!
//! - The first job of the queue is chosen once. It stays first until it runs, whatever comes after it.
//! - Jobs that pass it come in order of submission, whatever the order of the queue.
//! - A job may pass only if it is to end before the first job can start. Accelerators that the first job will leave
//!   over do not count.
//! - That start is estimated once, when the first job is chosen.
//! - WFP3 and UNICEP take -1 for the present time, because the artifact has the start of a job there, which is -1 until
//!   the job runs. So both prefer jobs that came late.
//!
//! Events of one moment are handled one by one, arrivals first, and each is followed by a pass over the queue.

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::batch::planned;
use super::order::{OrderedJob, QueueMoment, QueueOrder};
use crate::placement::{Free, Packer};

/// Present time of WFP3 and UNICEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueClock {
    /// The artifact's: a second before the trace begins.
    Stopped,
    /// The time of the decision.
    Running,
}

/// A job that runs, with the time at which it is expected to end.
#[derive(Clone, Copy, Debug)]
struct RunningJob {
    job: JobId,
    gpus: u32,
    end: SimTime,
}

/// The first job of the queue, which has been chosen to run next.
#[derive(Clone, Copy, Debug)]
struct ChosenJob {
    job: JobId,
    /// Time at which it is expected to start, as of its choice.
    start: SimTime,
}

/// A batch system as RLScheduler's simulator has it.
#[derive(Clone, Debug)]
pub struct ArtifactQueue<O> {
    order: O,
    backfill: bool,
    clock: QueueClock,
    /// Jobs that wait, in the order that the last sort left.
    waiting: Vec<JobId>,
    running: Vec<RunningJob>,
    chosen: Option<ChosenJob>,
    free: u32,
    /// Smallest id that has not been seen.
    unseen: JobId,
    nodes: Free,
}

impl<O: QueueOrder> ArtifactQueue<O> {
    /// A policy with the given order, with backfill or without.
    pub fn new(order: O, backfill: bool, clock: QueueClock) -> Self {
        Self {
            order,
            backfill,
            clock,
            waiting: Vec::new(),
            running: Vec::new(),
            chosen: None,
            free: 0,
            unseen: JobId(0),
            nodes: Free::default(),
        }
    }

    /// The order of the queue, with what it has kept.
    pub fn into_order(self) -> O {
        self.order
    }

    /// Chooses the next job, and starts all that can start, in `plan`.
    fn pass(&mut self, view: &ClusterView<'_>, plan: &mut Plan) {
        loop {
            let Some(chosen) = self.chosen.or_else(|| self.choose(view)) else { return };
            if gpus(view, chosen.job) <= self.free {
                self.chosen = None;
                self.start(view, chosen.job, plan);
                continue;
            }
            self.chosen = Some(chosen);
            if self.backfill {
                self.waiting.sort_by_key(|job| submit(view, *job));
                for job in self.waiting.clone() {
                    if view.now + span(view, job) < chosen.start && gpus(view, job) <= self.free {
                        self.start(view, job, plan);
                    }
                }
            }
            return;
        }
    }

    fn choose(&mut self, view: &ClusterView<'_>) -> Option<ChosenJob> {
        self.running.sort_by_key(|running| running.end);
        let running: Vec<(SimTime, u32)> = self.running.iter().map(|running| (running.end, running.gpus)).collect();
        let moment =
            QueueMoment { now: view.now, gpus: view.cluster().total_gpus(), free: self.free, running: &running };
        let clock = match self.clock {
            QueueClock::Stopped => SimTime::from_secs(-1),
            QueueClock::Running => view.now,
        };
        let ordered = |job: &JobId| {
            let request = view.job(*job)?.request();
            let waited_secs = (clock - request.submit).as_secs_f64();
            Some(OrderedJob { request, planned: span(view, *job), waited_secs })
        };
        self.waiting.retain(|job| view.job(*job).is_some());
        let jobs: Vec<OrderedJob<'_>> = self.waiting.iter().filter_map(ordered).collect();
        let numbers = self.order.numbers(&moment, &jobs);
        let mut keyed: Vec<_> = numbers.into_iter().zip(self.waiting.iter().copied()).collect();
        if self.order.goes_by_submission() {
            keyed.sort_by_key(|(_, job)| submit(view, *job));
        }
        keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        self.order.took_turns(1);
        self.waiting = keyed.into_iter().map(|(_, job)| job).collect();
        let job = *self.waiting.first()?;
        let wanted = gpus(view, job);
        let (mut free, mut start) = (self.free, view.now);
        for running in &self.running {
            if free >= wanted {
                break;
            }
            (free, start) = (free + running.gpus, running.end);
        }
        Some(ChosenJob { job, start })
    }

    fn start(&mut self, view: &ClusterView<'_>, job: JobId, plan: &mut Plan) {
        let gpus = gpus(view, job);
        let Some(placement) = Packer::FewestNodes.place(view.cluster(), &mut self.nodes, gpus) else { return };
        plan.set(job, placement);
        self.waiting.retain(|waiting| *waiting != job);
        self.running.push(RunningJob { job, gpus, end: view.now + span(view, job) });
        self.free -= gpus;
    }
}

fn gpus(view: &ClusterView<'_>, job: JobId) -> u32 {
    view.job(job).map_or(0, |job| job.request().gpus)
}

fn submit(view: &ClusterView<'_>, job: JobId) -> SimTime {
    view.job(job).map_or(SimTime::NEVER, |job| job.request().submit)
}

/// Time that a waiting job is expected to run.
fn span(view: &ClusterView<'_>, job: JobId) -> SimTime {
    view.job(job).map_or(SimTime::ZERO, |job| planned(&job))
}

impl<O: QueueOrder> Policy for ArtifactQueue<O> {
    fn information(&self) -> Information {
        Information::Estimate { sigma: 0.0 }
    }

    fn needs(&self) -> Information {
        self.information()
    }

    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        self.nodes.reset(view);
        let ended: Vec<RunningJob> =
            self.running.iter().filter(|running| view.job(running.job).is_none()).copied().collect();
        let arrived: Vec<JobId> = view.waiting().map(|job| job.id()).filter(|job| *job >= self.unseen).collect();
        self.free = self.nodes.total() - ended.iter().map(|ended| ended.gpus).sum::<u32>();
        for job in arrived {
            self.unseen = JobId(job.0 + 1);
            self.waiting.push(job);
            self.pass(view, &mut plan);
        }
        for ended in ended {
            self.running.retain(|running| running.job != ended.job);
            self.free += ended.gpus;
            self.pass(view, &mut plan);
        }
        plan
    }
}
