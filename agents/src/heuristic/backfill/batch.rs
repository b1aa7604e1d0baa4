//! Batch scheduling by the rule: a queue in an order, with reservations for jobs that have to wait.

use goodput_env::cluster::TypeId;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::order::{JobOrder, OrderedJob, QueueMoment, QueueOrder};
use crate::allocation::free_profile::FreeProfile;
use crate::placement::Free;

/// Jobs that get a reservation where they cannot start at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backfill {
    /// No job passes one that waits.
    None,
    /// The first job of the queue alone (EASY).
    First,
    /// Every job (conservative).
    Every,
}

/// A batch system over a cluster: rigid jobs at the size that they ask for, on accelerators of one type, never stopped.
#[derive(Clone, Debug)]
pub struct BatchQueue<O = JobOrder> {
    order: O,
    backfill: Backfill,
    free: Free,
}

impl<O: QueueOrder> BatchQueue<O> {
    /// A policy with the given order and reservations.
    pub fn new(order: O, backfill: Backfill) -> Self {
        Self { order, backfill, free: Free::default() }
    }

    /// The order of the queue, with what it has kept.
    pub fn into_order(self) -> O {
        self.order
    }

    /// Waiting jobs by number, then by submission, with the time that each is expected to run.
    fn queue<'v>(&mut self, view: &ClusterView<'v>, running: &[(SimTime, u32)]) -> Vec<(f64, JobView<'v>, SimTime)> {
        let ordered = |job: &JobView<'v>| OrderedJob {
            request: job.request(),
            planned: planned(job),
            waited_secs: job.age().as_secs_f64(),
        };
        let waiting: Vec<JobView<'v>> = view.waiting().collect();
        let jobs: Vec<OrderedJob<'_>> = waiting.iter().map(ordered).collect();
        let (gpus, free) = (view.cluster().total_gpus(), self.free.total());
        let numbers = self.order.numbers(&QueueMoment { now: view.now, gpus, free, running }, &jobs);
        let spans = jobs.iter().map(|job| job.planned);
        let mut queue: Vec<_> =
            numbers.into_iter().zip(&waiting).zip(spans).map(|((number, job), span)| (number, *job, span)).collect();
        queue.sort_by(|(a, one, _), (b, other, _)| a.total_cmp(b).then_with(|| one.id().cmp(&other.id())));
        queue
    }
}

/// Time that a job is expected to run on from now: what is left of the time that its user asks for, or else what the
/// information of the run says. A job of unknown length is expected never to end.
pub(super) fn planned(job: &JobView<'_>) -> SimTime {
    match job.request().limit {
        Some(limit) => (limit - job.executed()).max(SimTime::ZERO),
        None => job.remaining_secs(job.request().gpus).map_or(SimTime::NEVER, SimTime::from_secs_f64),
    }
}

/// Accelerators of each type that jobs hold, with the time at which they are expected to be free, by type.
fn ends(view: &ClusterView<'_>) -> Vec<Vec<(SimTime, u32)>> {
    let mut ends: Vec<Vec<(SimTime, u32)>> = vec![Vec::new(); view.cluster().types.len()];
    for job in view.jobs().filter(|job| job.state.is_allocated()) {
        let end = view.now.saturating_add(planned(&job));
        for slice in job.state.placement.slices() {
            ends[view.cluster().type_of(slice.node).index()].push((end, slice.gpus));
        }
    }
    ends
}

impl<O: QueueOrder> Policy for BatchQueue<O> {
    fn information(&self) -> Information {
        self.needs()
    }

    fn needs(&self) -> Information {
        match self.backfill {
            Backfill::None if !self.order.needs_run_times() => Information::Profiled,
            _ => Information::Estimate { sigma: 0.0 },
        }
    }

    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        if view.total_free() == 0 {
            return plan;
        }
        self.free.reset(view);
        let ends = ends(view);
        let queue = self.queue(view, &ends.concat());
        let of_type = |(kind, ends): (TypeId, Vec<_>)| FreeProfile::new(view.now, self.free.of_type(kind), ends);
        let mut profiles: Vec<FreeProfile> = view.cluster().type_ids().zip(ends).map(of_type).collect();
        let (mut reserved, mut turns) = (false, 0);
        for (_, job, span) in queue {
            let gpus = job.request().gpus;
            let fits_somewhere = self.free.most_of_one_type(view.cluster()) >= gpus;
            if reserved && self.backfill == Backfill::First && !fits_somewhere {
                continue;
            }
            let kinds = view.cluster().type_ids().filter(|kind| job.runs_on(*kind));
            let starts = kinds.filter_map(|kind| Some((profiles[kind.index()].earliest(gpus, span)?, kind)));
            turns += usize::from(!reserved);
            let Some((start, kind)) = starts.min_by_key(|(start, _)| *start) else {
                // When the job starts is not foreseen, so nothing is known to leave it alone.
                break;
            };
            let placement = if start == view.now { self.free.pack(kind, gpus) } else { None };
            match placement {
                Some(placement) => plan.set(job.id(), placement),
                None if self.backfill == Backfill::None => break,
                None if reserved && self.backfill == Backfill::First => continue,
                None => reserved = true,
            }
            profiles[kind.index()].reserve(start, span, gpus);
            if self.free.total() == 0 {
                break;
            }
        }
        self.order.took_turns(turns);
        plan
    }
}
