//! Time slicing after Gandiva (Xiao et al., OSDI'18): jobs take turns of a quantum on their nodes,
//! at the size they asked for.
//!
//! Every job is bound to a set of nodes and suspended and resumed there. While accelerators are
//! idle a waiting job starts on them, wherever it is bound, and is bound there from then on; that
//! is Gandiva's migration.
//!
//! A quantum after the last rotation, if jobs wait, the queue rotates. Jobs that held accelerators
//! for all of the quantum go to the end of the queue in their old order. Then the queue is walked
//! from the front: a job that fits on its own nodes runs there, and a job that never ran runs
//! anywhere; afterwards the jobs that fit anywhere else. A job that is passed over keeps its place
//! in the queue, so that the front one is served next time from all accelerators, and no job
//! starves. Between rotations no job is suspended.
//!
//! Only the time slicing is here: no packing of several jobs on one accelerator, no growing and
//! shrinking, no introspection of profiles. Suspending costs as much as a restart costs in the run.
//! Gandiva suspends in under a second of a turn of 60 s, so at most a sixtieth is lost. With restarts
//! of 30 s the default turn of 1,800 s loses as much. The `gandiva` of the public Tiresias simulator
//! shares only the name: on its own trace it never ends, and is not copied.

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::parameters::{Parameterised, secs};
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::{Free, Packer};

/// Entries of Gandiva in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "gandiva",
    about: "turns on the job's own nodes at the requested size; no packing of jobs, no growing",
    source: "Xiao et al., OSDI 2018; its time slicing alone",
    traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
    constructor: &Parameterised {
        defaults: GandivaParameters::default,
        build: |parameters, _| Box::new(Gandiva::new(parameters.quantum)),
    },
    replica: None,
}];

/// Parameters of [`Gandiva`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GandivaParameters {
    /// Length of a turn. The paper's turns of 60 s lose at most a sixtieth to a suspension in under a second; 1800 s
    /// keep that fraction with restarts of 30 s. With a switching cost of a second, 60 s are the paper's.
    #[serde(rename = "quantum_secs", with = "secs")]
    #[schemars(with = "f64", range(min = 1.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "OSDI 2018: about a minute; scaled to restarts of 30 s"))]
    pub quantum: SimTime,
}

impl Default for GandivaParameters {
    fn default() -> Self {
        Self { quantum: SimTime::from_secs(1800) }
    }
}

/// Gandiva's time slicing over a cluster. Jobs enter the queue in order of (submission, id).
#[derive(Clone, Debug)]
pub struct Gandiva {
    quantum: SimTime,
    rotated: SimTime,
    queue: Vec<GandivaEntry>,
    /// Smallest id that has not been seen.
    unseen: JobId,
    wake: Option<SimTime>,
    free: Free,
}

#[derive(Clone, Debug)]
struct GandivaEntry {
    job: JobId,
    /// Nodes of the last run; empty before the first start.
    bound: Placement,
    running: bool,
    /// Whether the job has run since the last rotation.
    whole: bool,
}

impl Gandiva {
    /// A policy with turns of `quantum`.
    pub fn new(quantum: SimTime) -> Self {
        Self { quantum, rotated: SimTime::ZERO, queue: Vec::new(), unseen: JobId(0), wake: None, free: Free::default() }
    }

    fn update(&mut self, view: &ClusterView<'_>) {
        self.queue.retain_mut(|entry| {
            let job = view.job(entry.job);
            entry.running = job.is_some_and(|job| job.state.is_allocated());
            // A fault may have left the job a part of its placement.
            if let Some(job) = job.filter(|job| entry.running && job.state.placement != entry.bound) {
                entry.bound = job.state.placement.clone();
            }
            entry.whole &= entry.running;
            job.is_some()
        });
        let first = self.queue.len();
        for job in view.jobs().rev().take_while(|job| job.id() >= self.unseen) {
            let running = job.state.is_allocated();
            self.queue.push(GandivaEntry { job: job.id(), bound: job.state.placement.clone(), running, whole: false });
        }
        self.queue[first..].reverse();
        if self.queue.len() < view.active() {
            self.readmit(view);
        }
        self.unseen = self.queue.iter().map(|entry| JobId(entry.job.0 + 1)).fold(self.unseen, JobId::max);
    }

    /// Takes in jobs that an earlier view did not have though they are older than others in it, as a guarantee around
    /// the policy hides them for a while.
    fn readmit(&mut self, view: &ClusterView<'_>) {
        let mut known: Vec<JobId> = self.queue.iter().map(|entry| entry.job).collect();
        known.sort_unstable();
        for job in view.jobs().filter(|job| known.binary_search(&job.id()).is_err()) {
            let running = job.state.is_allocated();
            self.queue.push(GandivaEntry { job: job.id(), bound: job.state.placement.clone(), running, whole: false });
        }
    }

    /// Ends the turns of all jobs and walks the queue anew.
    fn rotate(&mut self, view: &ClusterView<'_>, plan: &mut Plan) {
        self.rotated = view.now;
        self.queue.sort_by_key(|entry| entry.whole);
        self.free.reset(view);
        for entry in self.queue.iter().filter(|entry| entry.running) {
            self.free.release(&entry.bound);
        }
        let mut next: Vec<Option<Placement>> = Vec::with_capacity(self.queue.len());
        let mut unplaced = Vec::new();
        for (at, entry) in self.queue.iter().enumerate() {
            // The first in the queue sees all accelerators free and has to be served, on its own
            // nodes or not. A job that never ran has no nodes of its own.
            let gpus = view.job(entry.job).map_or(0, |job| job.request().gpus);
            let own = fits(&self.free, &entry.bound, gpus).then(|| entry.bound.clone());
            let anywhere = at == 0 || entry.bound.gpus() != gpus;
            let placed = match own {
                Some(bound) => Some(bound).inspect(|bound| take(&mut self.free, bound)),
                None if anywhere => Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus),
                None => None,
            };
            if placed.is_none() {
                unplaced.push((at, gpus));
            }
            next.push(placed);
        }
        for (at, gpus) in unplaced {
            next[at] = Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus);
        }
        for (entry, placed) in self.queue.iter_mut().zip(next) {
            let held = if entry.running { entry.bound.clone() } else { Placement::none() };
            let to = placed.unwrap_or_else(Placement::none);
            if to != held {
                plan.set(entry.job, to.clone());
            }
            entry.running = !to.is_empty();
            entry.whole = entry.running;
            if entry.running {
                entry.bound = to;
            }
        }
    }

    /// Starts waiting jobs that fit on idle accelerators, on their own nodes first.
    fn fill(&mut self, view: &ClusterView<'_>, plan: &mut Plan) {
        self.free.reset(view);
        for own in [true, false] {
            for entry in self.queue.iter_mut().filter(|entry| !entry.running) {
                if self.free.total() == 0 {
                    return;
                }
                let gpus = view.job(entry.job).map_or(0, |job| job.request().gpus);
                let placed = match own {
                    true if !fits(&self.free, &entry.bound, gpus) => None,
                    true => Some(entry.bound.clone()).inspect(|bound| take(&mut self.free, bound)),
                    false => Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus),
                };
                if let Some(placement) = placed {
                    plan.set(entry.job, placement.clone());
                    (entry.bound, entry.running) = (placement, true);
                    entry.whole = view.now == self.rotated;
                }
            }
        }
    }
}

impl Policy for Gandiva {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.update(view);
        let mut plan = Plan::keep();
        let due = view.now >= self.rotated + self.quantum;
        match due && self.queue.iter().any(|entry| !entry.running) {
            true => self.rotate(view, &mut plan),
            false => self.fill(view, &mut plan),
        }
        let waits = self.queue.iter().any(|entry| !entry.running);
        // A wake at the present moment would not let time go on.
        self.wake = waits.then(|| (self.rotated + self.quantum).max(view.now + SimTime::from_millis(1)));
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }
}

/// Whether `bound` is free and has as many accelerators as the job wants.
fn fits(free: &Free, bound: &Placement, gpus: u32) -> bool {
    bound.gpus() == gpus && free.holds(bound)
}

fn take(free: &mut Free, placement: &Placement) {
    for slice in placement.slices() {
        free.take(slice.node, slice.gpus);
    }
}
