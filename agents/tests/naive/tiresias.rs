//! Tiresias by a walk over all jobs at every decision, for comparison.

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use goodput_agents::heuristic::tiresias::{
    DemotionTiming, QueueOrder, ServiceMeasure, TiresiasConfig, TiresiasPlacement,
};
use goodput_agents::placement::{Consolidation, Free};

/// Tiresias over a cluster. Ties are broken by order of entry into the queue, and among jobs that
/// enter at once by job id.
#[derive(Clone, Debug)]
pub struct NaiveTiresias {
    config: TiresiasConfig,
    queues: Vec<Vec<QueuedJob>>,
    /// Smallest id that has not been seen.
    unseen: JobId,
    free: Free,
    moved: Vec<(QueuedJob, usize)>,
    /// Accelerators held by running jobs.
    held: u32,
    wake: Option<SimTime>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedJob {
    job: JobId,
    gpus: u32,
    submit: SimTime,
    /// Requirement of the model on the number of nodes.
    consolidation: Consolidation,
    /// Whether the job held accelerators until now; from [`NaiveTiresias::settle`] on: whether it is to
    /// hold them.
    running: bool,
    chosen: bool,
    /// Whether the job found no nodes in this decision.
    barred: bool,
    /// Wall time with accelerators, as of the last decision.
    executed: SimTime,
    /// Time in `executed` from before the last promotion.
    forgiven: SimTime,
    /// Time spent waiting after a run, since the last promotion.
    waited: SimTime,
    checked: SimTime,
    /// Index of the job's service, where the queue is ordered by one; NaN: out of date.
    rank: f64,
}

/// Indices that are to be computed anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutdatedRanks {
    /// Indices that are marked by NaN.
    Marked,
    /// Every index, since the sample of completed jobs has changed.
    All,
}

/// Walk over the queues within one decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueueWalk {
    First,
    /// A further walk, without the jobs that found no nodes.
    Repeated,
}

impl QueuedJob {
    fn counted(&self) -> SimTime {
        self.executed - self.forgiven
    }
}

impl NaiveTiresias {
    /// A policy with the given settings.
    pub fn new(config: TiresiasConfig) -> Self {
        let queues = vec![Vec::new(); config.limits.len() + 1];
        Self { config, queues, unseen: JobId(0), free: Free::default(), moved: Vec::new(), held: 0, wake: None }
    }

    fn admit(&mut self, view: &ClusterView<'_>) {
        let first = self.queues[0].len();
        for job in view.jobs().rev().take_while(|job| job.id() >= self.unseen) {
            let entry = self.entry(view, &job);
            self.queues[0].push(entry);
        }
        // The view was walked from its newest job back.
        self.queues[0][first..].reverse();
        self.unseen = self.queues[0].last().map_or(self.unseen, |last| self.unseen.max(JobId(last.job.0 + 1)));
    }

    fn entry(&self, view: &ClusterView<'_>, job: &JobView<'_>) -> QueuedJob {
        QueuedJob {
            job: job.id(),
            gpus: job.request().gpus,
            submit: job.request().submit,
            consolidation: match &self.config.placing {
                TiresiasPlacement::Packer(_) => Consolidation::Optional,
                TiresiasPlacement::Skew(skew) => skew.consolidation(job),
            },
            running: job.state.is_allocated(),
            chosen: false,
            barred: false,
            executed: job.state.executed(view.now),
            forgiven: SimTime::ZERO,
            waited: SimTime::ZERO,
            checked: view.now,
            rank: f64::NAN,
        }
    }

    /// Takes in jobs that an earlier view did not have though they are older than others in it, as a guarantee around
    /// the policy hides them for a while. Each enters the queue of its service.
    fn readmit(&mut self, view: &ClusterView<'_>) {
        if self.queues.iter().map(Vec::len).sum::<usize>() >= view.active() {
            return;
        }
        let mut known: Vec<JobId> = self.queues.iter().flatten().map(|entry| entry.job).collect();
        known.sort_unstable();
        for job in view.jobs().filter(|job| known.binary_search(&job.id()).is_err()) {
            let entry = self.entry(view, &job);
            let TiresiasConfig { limits, service, .. } = &self.config;
            let served = attained(*service, &entry);
            let queue = limits.iter().take_while(|limit| served >= i64::from(**limit) * 1000).count();
            self.held += if entry.running { entry.gpus } else { 0 };
            self.queues[queue].push(entry);
        }
        self.reorder(OutdatedRanks::Marked);
    }

    /// Forgets completed jobs, brings service up to date, and moves jobs between queues.
    fn requeue(&mut self, view: &ClusterView<'_>) {
        let TiresiasConfig { limits, service, starvation_knob: knob, order, .. } = &mut self.config;
        self.moved.clear();
        let mut outdated = OutdatedRanks::Marked;
        let held = &mut self.held;
        *held = 0;
        for (at, queue) in self.queues.iter_mut().enumerate() {
            let limit = limits.get(at).map(|&limit| i64::from(limit) * 1000);
            let moved = &mut self.moved;
            queue.retain_mut(|entry| {
                let Some(job) = view.job(entry.job) else {
                    if let QueueOrder::Gittins(experience, _) = order {
                        // The view no longer has a completed job, so its last stretch is counted
                        // here.
                        let run = if entry.running { view.now - entry.checked } else { SimTime::ZERO };
                        if experience.learn(weighted(*service, entry, entry.executed + run) as f64 / 1000.0) {
                            outdated = OutdatedRanks::All;
                        }
                    }
                    return false;
                };
                if entry.running {
                    // A running job attains service, which puts its index out of date.
                    entry.rank = f64::NAN;
                    entry.executed = job.state.executed(view.now);
                    entry.running = job.state.is_allocated();
                    *held += if entry.running { entry.gpus } else { 0 };
                    if limit.is_some_and(|limit| attained(*service, entry) >= limit) {
                        moved.push((*entry, at + 1));
                        return false;
                    }
                } else if *knob > 0.0 && entry.counted() > SimTime::ZERO {
                    entry.waited += view.now - entry.checked;
                    if at > 0 && entry.waited >= patience(*knob, entry) {
                        // A promoted job starts over: neither its service nor its wait counts any
                        // more.
                        (entry.forgiven, entry.waited, entry.rank) = (entry.executed, SimTime::ZERO, f64::NAN);
                        moved.push((*entry, 0));
                        return false;
                    }
                }
                true
            });
        }
        // Jobs that enter a queue at once enter by id, whatever queues they come from.
        self.moved.sort_unstable_by_key(|(entry, _)| entry.job);
        for (entry, to) in self.moved.drain(..) {
            self.queues[to].push(entry);
        }
        self.reorder(outdated);
    }

    /// Sorts each queue by index, where it is ordered by one, and computes the indices that are out of date.
    fn reorder(&mut self, outdated: OutdatedRanks) {
        let service = self.config.service;
        let index = |entry: &QueuedJob| match &self.config.order {
            QueueOrder::Entry => 0.0,
            QueueOrder::Gittins(experience, horizon) => {
                let secs = weighted(service, entry, entry.executed) as f64 / 1000.0;
                experience.sample().index(secs, *horizon)
            }
            QueueOrder::Artifact(table) => table.index(attained(service, entry) / 1000),
        };
        let in_order = match &self.config.order {
            QueueOrder::Entry => return,
            QueueOrder::Gittins(..) => |a: &QueuedJob, b: &QueuedJob| b.rank.total_cmp(&a.rank).then(a.job.cmp(&b.job)),
            QueueOrder::Artifact(_) => {
                |a: &QueuedJob, b: &QueuedJob| b.rank.total_cmp(&a.rank).then(a.submit.cmp(&b.submit))
            }
        };
        for queue in &mut self.queues {
            let all = outdated == OutdatedRanks::All;
            for entry in queue.iter_mut().filter(|entry| all || entry.rank.is_nan()) {
                entry.rank = index(entry);
            }
            queue.sort_by(in_order);
        }
    }

    /// Chooses the jobs that run, and finds nodes for those that start.
    fn schedule(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut walk = QueueWalk::First;
        // Each further walk bars at least one more job, so the loop ends.
        while self.choose(view, &mut plan, walk) && !self.start(view, &mut plan) {
            plan.changes.clear();
            walk = QueueWalk::Repeated;
        }
        plan
    }

    /// Lets every job run that fits into what the jobs before it leave, and preempts the others;
    /// true where some job starts.
    fn choose(&mut self, view: &ClusterView<'_>, plan: &mut Plan, walk: QueueWalk) -> bool {
        let mut left = view.total_free() + self.held;
        let mut starts = false;
        for queue in &mut self.queues {
            for entry in queue {
                entry.checked = view.now;
                // A bar holds for the walks of one decision only.
                entry.barred &= walk == QueueWalk::Repeated;
                entry.chosen = entry.gpus <= left && !entry.barred;
                if entry.chosen {
                    left -= entry.gpus;
                    starts |= !entry.running;
                } else if entry.running {
                    plan.set(entry.job, Placement::none());
                }
            }
        }
        starts
    }

    /// Places jobs that start on what preempted and idle jobs leave; false where some found no
    /// nodes and are barred.
    fn start(&mut self, view: &ClusterView<'_>, plan: &mut Plan) -> bool {
        self.free.reset(view);
        // So far the plan only preempts, and preempted jobs make room for those that start.
        for change in &plan.changes {
            if let Some(job) = view.job(change.job) {
                self.free.release(&job.state.placement);
            }
        }
        let mut all = true;
        for entry in self.queues.iter_mut().flatten().filter(|entry| entry.chosen && !entry.running) {
            let placement = match &self.config.placing {
                TiresiasPlacement::Packer(packer) => packer.place(view.cluster(), &mut self.free, entry.gpus),
                TiresiasPlacement::Skew(skew) => {
                    skew.place(view.cluster(), &mut self.free, entry.gpus, entry.consolidation)
                }
            };
            match placement {
                Some(placement) => plan.set(entry.job, placement),
                None => (entry.barred, all) = (true, false),
            }
        }
        all
    }

    /// Notes which jobs run from now on and when the next job is to change its queue.
    fn settle(&mut self, now: SimTime) {
        let TiresiasConfig { limits, service, starvation_knob: knob, demotion, running_first, .. } = &self.config;
        let mut next = SimTime::NEVER;
        self.held = 0;
        for (at, queue) in self.queues.iter_mut().enumerate() {
            let limit = limits.get(at).map(|&limit| i64::from(limit) * 1000);
            let waits = at > 0 && *knob > 0.0;
            let (mut waiting, mut unsorted) = (false, false);
            for entry in queue.iter_mut() {
                entry.running = entry.chosen;
                unsorted |= waiting && entry.running;
                waiting |= !entry.running;
                if entry.running {
                    self.held += entry.gpus;
                    if let Some(limit) = limit {
                        next = next.min(until(limit, *service, *demotion, entry));
                    }
                } else if waits && entry.counted() > SimTime::ZERO {
                    next = next.min(patience(*knob, entry) - entry.waited);
                }
            }
            if *running_first && unsorted {
                // The sort is stable, so the order of entry is kept among jobs that run and among
                // those that wait.
                queue.sort_by_key(|entry| !entry.running);
            }
        }
        self.wake = (next < SimTime::NEVER).then(|| now.saturating_add(next));
    }
}

impl Policy for NaiveTiresias {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.admit(view);
        self.requeue(view);
        self.readmit(view);
        let plan = self.schedule(view);
        self.settle(view.now);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }
}

/// Service of a time on the accelerators of a job, GPU-milliseconds (or milliseconds).
fn weighted(service: ServiceMeasure, entry: &QueuedJob, time: SimTime) -> i64 {
    match service {
        ServiceMeasure::GpuTime => time.as_millis() * i64::from(entry.gpus),
        ServiceMeasure::Time => time.as_millis(),
    }
}

fn attained(service: ServiceMeasure, entry: &QueuedJob) -> i64 {
    weighted(service, entry, entry.counted())
}

/// Time until a running job is demoted.
fn until(limit: i64, service: ServiceMeasure, demotion: DemotionTiming, entry: &QueuedJob) -> SimTime {
    let width = match service {
        ServiceMeasure::GpuTime => i64::from(entry.gpus),
        ServiceMeasure::Time => 1,
    };
    SimTime::from_millis(match demotion {
        // Rounded up, so that the limit is reached when the policy wakes.
        DemotionTiming::Due => (limit - attained(service, entry) + width - 1) / width,
        DemotionTiming::Artifact => (limit - entry.counted().as_millis()) / 1000 / width * 1000,
    })
}

fn patience(knob: f64, entry: &QueuedJob) -> SimTime {
    SimTime::from_secs_f64(knob * entry.counted().as_secs_f64())
}
