//! Tiresias (Gu et al., NSDI'19): discretised two-dimensional least attained service.
//!
//! Jobs whose length nobody knows share queues by the accelerator time they have had so far: a new job enters the first queue and
//! falls to the next one when its attained service reaches the queue's limit. Few queues instead of a continuous priority keep
//! two long jobs from preempting each other for ever.
//!
//! Inside a queue the order is that of entry. Queues are walked from first to last and every job that fits into what is left runs;
//! the rest is preempted or waits. There is no head-of-line blocking, so a wide job may wait behind narrower ones of a lower
//! queue: that is the published behaviour. Jobs that keep running keep their nodes.
//!
//! Attained service is wall time with accelerators, restarts included, as of the decision. A decision that comes late therefore
//! demotes late. Where the run lets a policy choose its moments ([`Policy::wake_at`]), demotions and promotions are decided
//! exactly when they fall due; where decisions fall at rounds only, they wait for the next round, as in the Pollux artifact.

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use crate::heuristic::{Listed, Traits};
use crate::placement::{Free, Packer};

/// In the list of policies.
pub const LISTED: &[Listed] = &[Listed {
    name: "tiresias",
    about: "least attained accelerator time first, in two queues of 16 GPU-hours",
    source: "Gu et al., NSDI 2019; settings of the Pollux artifact",
    traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
    build: |_| Box::new(Tiresias::pollux_artifact()),
    replica: None,
}];

/// What a job's attained service counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Accelerators times seconds: two-dimensional (2D-LAS).
    GpuTime,
    /// Seconds alone (LAS).
    Time,
}

/// Settings of [`Tiresias`].
#[derive(Clone, Debug, PartialEq)]
pub struct TiresiasConfig {
    /// Attained service at which a job leaves each queue but the last, GPU-seconds (or seconds, by `service`); ascending.
    pub limits: Vec<u32>,
    /// What counts as service.
    pub service: Service,
    /// A waiting job returns to the first queue, its service forgiven, once it has waited this many times the seconds it ran;
    /// 0 never.
    pub starvation_knob: f64,
    /// After each decision running jobs move ahead of waiting ones inside their queue (Tiresias simulator; the Pollux artifact does
    /// not).
    pub running_first: bool,
}

/// The policy; ties are broken by order of entry into the queue, and among jobs that enter at once by job id.
#[derive(Clone, Debug)]
pub struct Tiresias {
    config: TiresiasConfig,
    queues: Vec<Vec<Entry>>,
    /// Jobs of this id and above have not been seen.
    unseen: JobId,
    free: Free,
    moved: Vec<(Entry, usize)>,
    wake: Option<SimTime>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    job: JobId,
    gpus: u32,
    /// Held accelerators until now; from [`Tiresias::schedule`] on: is to hold them.
    running: bool,
    chosen: bool,
    /// Wall time with accelerators, as of the last decision.
    executed: SimTime,
    /// Part of it from before the last promotion.
    forgiven: SimTime,
    /// Time spent waiting after having run, since the last promotion.
    waited: SimTime,
    checked: SimTime,
}

impl Entry {
    fn counted(&self) -> SimTime {
        self.executed - self.forgiven
    }
}

impl Tiresias {
    /// With the given settings.
    pub fn new(config: TiresiasConfig) -> Self {
        let queues = vec![Vec::new(); config.limits.len() + 1];
        Self { config, queues, unseen: JobId(0), free: Free::default(), moved: Vec::new(), wake: None }
    }

    /// The settings of the Pollux OSDI'21 artifact: two queues, demotion after 16 GPU-hours, no promotion.
    pub fn pollux_artifact() -> Self {
        Self::new(TiresiasConfig {
            limits: vec![57_600],
            service: Service::GpuTime,
            starvation_knob: 0.0,
            running_first: false,
        })
    }

    fn admit(&mut self, view: &ClusterView<'_>) {
        let first = self.queues[0].len();
        for job in view.jobs().rev().take_while(|job| job.id() >= self.unseen) {
            self.queues[0].push(Entry {
                job: job.id(),
                gpus: job.request().gpus,
                running: job.state.is_allocated(),
                chosen: false,
                executed: job.state.executed(view.now),
                forgiven: SimTime::ZERO,
                waited: SimTime::ZERO,
                checked: view.now,
            });
        }
        self.queues[0][first..].reverse();
        self.unseen = self.queues[0].last().map_or(self.unseen, |last| self.unseen.max(JobId(last.job.0 + 1)));
    }

    /// Forgets completed jobs, brings service up to date, and moves jobs between queues.
    fn requeue(&mut self, view: &ClusterView<'_>) {
        let knob = self.config.starvation_knob;
        self.moved.clear();
        for at in 0..self.queues.len() {
            let limit = self.limit_millis(at);
            let (service, moved) = (self.config.service, &mut self.moved);
            self.queues[at].retain_mut(|entry| {
                let Some(job) = view.job(entry.job) else { return false };
                if entry.running {
                    entry.executed = job.state.executed(view.now);
                    entry.running = job.state.is_allocated();
                    if limit.is_some_and(|limit| attained(service, entry) >= limit) {
                        moved.push((*entry, at + 1));
                        return false;
                    }
                } else if knob > 0.0 && entry.counted() > SimTime::ZERO {
                    entry.waited += view.now - entry.checked;
                    if at > 0 && entry.waited >= patience(knob, entry) {
                        (entry.forgiven, entry.waited) = (entry.executed, SimTime::ZERO);
                        moved.push((*entry, 0));
                        return false;
                    }
                }
                true
            });
        }
        self.moved.sort_unstable_by_key(|(entry, _)| entry.job);
        for (entry, to) in self.moved.drain(..) {
            self.queues[to].push(entry);
        }
    }

    fn limit_millis(&self, queue: usize) -> Option<i64> {
        self.config.limits.get(queue).map(|&limit| i64::from(limit) * 1000)
    }

    /// Lets every job run that fits into what those before it leave.
    fn schedule(&mut self, view: &ClusterView<'_>) -> Plan {
        let entries = || self.queues.iter().flatten();
        let held: u32 = entries().filter(|entry| entry.running).map(|entry| entry.gpus).sum();
        let mut left = view.total_free() + held;
        let (mut starts, mut plan) = (false, Plan::keep());
        for entry in self.queues.iter_mut().flatten() {
            entry.checked = view.now;
            entry.chosen = entry.gpus <= left;
            left -= if entry.chosen { entry.gpus } else { 0 };
            starts |= entry.chosen && !entry.running;
            if entry.running && !entry.chosen {
                plan.set(entry.job, Placement::none());
            }
        }
        if starts {
            self.free.reset(view.free());
            for change in &plan.changes {
                self.free.release(&held_by(view, change.job));
            }
        }
        for entry in self.queues.iter_mut().flatten() {
            if entry.chosen && !entry.running {
                // Enough are free, but on a cluster of several types perhaps not of one.
                match Packer::MostFreeFirst.place(view.cluster(), &mut self.free, entry.gpus) {
                    Some(placement) => plan.set(entry.job, placement),
                    None => entry.chosen = false,
                }
            }
            entry.running = entry.chosen;
        }
        plan
    }

    fn next_move(&self, now: SimTime) -> Option<SimTime> {
        let due = |(at, entry): (usize, &Entry)| {
            if entry.running {
                let left = self.limit_millis(at)? - attained(self.config.service, entry);
                Some(SimTime::from_millis(
                    (left + weight(self.config.service, entry) - 1) / weight(self.config.service, entry),
                ))
            } else {
                let waits = at > 0 && self.config.starvation_knob > 0.0 && entry.counted() > SimTime::ZERO;
                waits.then(|| patience(self.config.starvation_knob, entry) - entry.waited)
            }
        };
        let entries = self.queues.iter().enumerate().flat_map(|(at, queue)| queue.iter().map(move |entry| (at, entry)));
        entries.filter_map(due).min().map(|due| now.saturating_add(due))
    }
}

impl Policy for Tiresias {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.admit(view);
        self.requeue(view);
        let plan = self.schedule(view);
        self.wake = self.next_move(view.now);
        if self.config.running_first {
            for queue in &mut self.queues {
                queue.sort_by_key(|entry| !entry.running);
            }
        }
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }
}

fn weight(service: Service, entry: &Entry) -> i64 {
    match service {
        Service::GpuTime => i64::from(entry.gpus),
        Service::Time => 1,
    }
}

fn attained(service: Service, entry: &Entry) -> i64 {
    entry.counted().as_millis() * weight(service, entry)
}

fn patience(knob: f64, entry: &Entry) -> SimTime {
    SimTime::from_secs_f64(knob * entry.counted().as_secs_f64())
}

fn held_by(view: &ClusterView<'_>, job: JobId) -> Placement {
    view.job(job).map_or_else(Placement::none, |job| job.state.placement.clone())
}
