//! Effects of faults on a run.
//!
//! A fault takes accelerators out of the books and stops every job on them. The job goes back to
//! its last checkpoint ([`super::saving`]) and loses what it did since. A rigid job waits for a new
//! place; an elastic one that can run on what is left of its placement starts again there at once.
//! Either start costs what the run's switch cost says. What is repaired is free again.
//!
//! A node's bad network stretches the time that distributed jobs on it take to synchronise; jobs
//! without a model of it are not touched. While the scheduler is away jobs run on and nothing is
//! decided.
//!
//! A fault looks at all active jobs to find those it hits: faults are hours apart, and an index by
//! node would cost every placement.

use std::sync::Arc;

use smallvec::SmallVec;

use super::events::{Event, EventKind};
use super::health::Hardware;
use super::{Departure, SimError, Simulator};
use crate::cluster::NodeId;
use crate::job::{JobId, Work};
use crate::model::fault::Cause;
use crate::placement::Placement;
use crate::plan::Change;
use crate::state::{ClusterState, NodeStore, Phase};
use crate::time::SimTime;

/// Holder of an accelerator.
enum Holder {
    /// A job, or all that share it.
    Jobs(SmallVec<[JobId; 2]>),
    /// No job; the index among the accelerators that jobs do not hold.
    Other(u32),
}

impl ClusterState {
    /// Active jobs that have to do with `node`: also those that still work on what they were told
    /// to leave.
    pub(super) fn on_node(&self, node: NodeId) -> impl Iterator<Item = JobId> + '_ {
        let on = move |placement: &Placement| placement.slices().iter().any(|slice| slice.node == node);
        let state = |job: &JobId| self.jobs.state(*job);
        self.jobs.active().filter(move |job| on(&state(job).placement) || on(state(job).share()))
    }

    /// Holder of the accelerator of `node` with this index, counted job by job, then those of
    /// inference, the free ones last.
    fn holder(&self, node: NodeId, index: u32) -> Holder {
        let mut below = 0;
        for job in self.on_node(node) {
            let state = self.jobs.state(job);
            // What two jobs share is counted once, for the first of them; shared cards come after.
            if state.partner.is_some_and(|partner| partner < job) || state.placement.share().is_some() {
                continue;
            }
            below += gpus_on(&state.placement, node);
            if index < below {
                return Holder::Jobs(std::iter::once(job).chain(state.partner).collect());
            }
        }
        match self.cards.on(node).get((index - below) as usize) {
            // A completed job may hold its part until the next round, and nothing can happen to it.
            Some(card) => {
                let jobs = card.jobs.iter().map(|(job, _)| *job);
                Holder::Jobs(jobs.filter(|job| self.jobs.get(*job).is_some()).collect())
            }
            None => Holder::Other(index - below - self.cards.on(node).len() as u32),
        }
    }

    /// Whether a job can run on what a fault has left it.
    fn can_go_on(&self, job: JobId, left: &Placement) -> bool {
        let Work::Application { index, .. } = self.scenario.workload.jobs[job.index()].work else { return false };
        if left.is_empty() || !self.scenario.accepts(job, self.jobs.state(job).epoch, left) {
            return false;
        }
        // On several types it is accepted only where its speed is known.
        if self.scenario.is_mixed(left) {
            return true;
        }
        let shape = left.shape();
        let pace = self.scenario.speeds.pace(index, self.scenario.kind_of(left));
        pace.is_some_and(|pace| pace.step_time(&shape, pace.limits_on(&shape).min_local).is_ok())
    }
}

impl Simulator {
    /// Moment of the next change of the hardware, as long as a job or a request can still meet it.
    pub(super) fn next_fault(&self, arrival: SimTime) -> SimTime {
        let Some(health) = &self.health else { return SimTime::NEVER };
        let unanswered = (self.awaits_repair() || self.is_headless()) && !self.state.waiting.is_empty();
        let requests = self.requests.next(&self.state.scenario) < SimTime::NEVER
            || self.state.instances.running() > 0
            || unanswered;
        // Faults alone must not keep a run going for ever.
        let nobody = !self.has_active() && !requests && arrival == SimTime::NEVER;
        if nobody || self.has_stalled(arrival) { SimTime::NEVER } else { health.next() }
    }

    /// Whether the scheduler is away.
    pub(super) fn is_headless(&self) -> bool {
        self.health.as_ref().is_some_and(|health| health.scheduler_back > self.state.now)
    }

    /// Whether accelerators will come back.
    pub(super) fn awaits_repair(&self) -> bool {
        self.health.as_ref().is_some_and(|health| health.repairs > 0)
    }

    /// The next thing happens to the hardware.
    pub(super) fn hardware_due(&mut self) -> Result<(), SimError> {
        self.records.events += 1;
        let scenario = self.state.scenario.clone();
        let (Some(health), Some(model)) = (self.health.as_mut(), &scenario.options.faults) else { return Ok(()) };
        let Some((what, node)) = health.pop() else { return Ok(()) };
        let at = node.index();
        match what {
            Hardware::SchedulerBack => self.state.trigger.fault = true,
            Hardware::AcceleratorBack => {
                health.broken[at] -= 1;
                self.restore(node);
            }
            Hardware::NodeBack => {
                self.state.down[at] -= 1;
                self.restore(node);
            }
            Hardware::NetworkBack => {
                health.slow[at] -= 1;
                self.retime(node)?;
            }
            Hardware::Scripted(index) => {
                let fault = model.script[index as usize];
                let lasts = fault.lasts_secs.map_or(SimTime::NEVER, SimTime::from_secs_f64);
                self.strike(node, fault.cause, 0.0, lasts)?;
            }
            Hardware::Random(number) => {
                let gpus = scenario.cluster.nodes[at].gpus;
                let draw = |number| model.strike(scenario.seed, node, number, gpus);
                let (Some(fault), Some(next)) = (draw(number), draw(number + 1)) else { return Ok(()) };
                // A node that is down cannot break again, so its next fault is counted from the
                // repair on.
                let whole_again = if fault.cause == Cause::Node { fault.lasts } else { SimTime::ZERO };
                let at = self.state.now.saturating_add(whole_again).saturating_add(next.gap);
                health.push(at, Hardware::Random(number + 1), node);
                self.strike(node, fault.cause, fault.victim, fault.lasts)?;
            }
        }
        Ok(())
    }

    fn strike(&mut self, node: NodeId, cause: Cause, victim: f64, lasts: SimTime) -> Result<(), SimError> {
        let until = self.state.now.saturating_add(lasts);
        let at = node.index();
        let Some(health) = self.health.as_mut() else { return Ok(()) };
        if cause == Cause::Scheduler {
            health.record.schedulers += 1;
            // Outages may overlap, and the scheduler is back after the last of them.
            health.scheduler_back = health.scheduler_back.max(until);
            health.push(until, Hardware::SchedulerBack, node);
            return Ok(());
        }
        // A machine that is not rented does not break.
        let there = self.state.cluster.nodes.get(at).filter(|_| self.is_there(node));
        let Some(in_service) = there.map(|node| node.gpus) else { return Ok(()) };
        let Some(health) = self.health.as_mut() else { return Ok(()) };
        match cause {
            Cause::Network => {
                health.record.networks += 1;
                health.slow[at] += 1;
                health.push(until, Hardware::NetworkBack, node);
                self.retime(node)
            }
            Cause::Accelerator if in_service > 0 => {
                health.record.accelerators += 1;
                health.broken[at] += 1;
                health.push(until, Hardware::AcceleratorBack, node);
                match self.state.holder(node, (victim * f64::from(in_service)) as u32) {
                    Holder::Jobs(hit) => self.lose(node, &hit, 1),
                    Holder::Other(index) => {
                        self.lose_holder(node, index);
                        self.lose(node, &[], 1)
                    }
                }
            }
            Cause::Node => {
                health.record.nodes += 1;
                self.state.down[at] += 1;
                health.push(until, Hardware::NodeBack, node);
                let hit: SmallVec<[JobId; 8]> = self.state.on_node(node).collect();
                self.lose(node, &hit, u32::MAX)
            }
            Cause::Accelerator | Cause::Scheduler => Ok(()),
        }
    }

    /// Brings the accelerators of `node` that are in service up to date with its faults and its rental. Returns how
    /// many it had and has.
    fn refit(&mut self, node: NodeId) -> (u32, u32) {
        let at = node.index();
        let whole = self.state.scenario.cluster.nodes[at].gpus;
        let broken = self.health.as_ref().map_or(0, |health| health.broken[at]);
        let now = if self.state.down[at] > 0 { 0 } else { whole.saturating_sub(broken) };
        let before = std::mem::replace(&mut Arc::make_mut(&mut self.state.cluster).nodes[at].gpus, now);
        let installed = self.installed_gpus();
        if let Some(health) = &mut self.health {
            health.out = installed - self.state.cluster.total_gpus();
        }
        (before, now)
    }

    /// Accelerators of the nodes that are there, broken or not.
    fn installed_gpus(&self) -> u32 {
        let cluster = &self.state.scenario.cluster;
        cluster.node_ids().filter(|&node| self.is_there(node)).map(|node| cluster.nodes[node.index()].gpus).sum()
    }

    /// The jobs in `hit` lose up to `gpus` accelerators each on `node`, and the node what its
    /// faults say.
    pub(super) fn lose(&mut self, node: NodeId, hit: &[JobId], gpus: u32) -> Result<(), SimError> {
        let scenario = self.state.scenario.clone();
        let whole_node = gpus == u32::MAX;
        let lost = whole_node && scenario.options.checkpoint.is_some_and(|saved| !saved.store.survives_node());
        let store = if lost { NodeStore::Lost } else { NodeStore::Kept };
        let mut survivors: SmallVec<[Change; 2]> = SmallVec::new();
        for &job in hit {
            // The placement is read before the job is stopped, which empties it.
            let held = &self.state.jobs.state(job).placement;
            // A job does not go on without one of the cards that it shares.
            let placement = if held.share().is_some() { Placement::none() } else { without(held, node, gpus) };
            self.interrupt(job, store)?;
            self.state.jobs.state_mut(job).saving.hits += 1;
            if self.state.can_go_on(job, &placement) {
                survivors.push(Change { job, placement, partner: None });
            }
        }
        if whole_node {
            self.lose_inference(node);
        }
        let (before, after) = self.refit(node);
        let lost = before - after;
        // What free accelerators do not cover was held by jobs that have completed.
        self.take_from_completed(node, lost);
        self.take_free(node, lost);
        self.state.trim_instances(node, |_| {});
        // Survivors start again only now, on what is left in service.
        for change in &survivors {
            self.occupy(change)?;
        }
        self.return_servers();
        self.state.trigger.fault = true;
        self.update_sharing()?;
        self.update_interference()
    }

    /// Repaired accelerators, and those of a node that comes into service, are free.
    pub(super) fn restore(&mut self, node: NodeId) {
        let (before, after) = self.refit(node);
        self.add_free(node, after - before);
        // After a repair the policy gets all its chances anew before the run counts as stalled.
        self.decisions.idle = 0;
        self.state.trigger.fault = true;
    }

    /// Takes from what completed jobs hold until the next round, until `gpus` accelerators of `node` are free. A card
    /// that several of them share is free only after the last.
    fn take_from_completed(&mut self, node: NodeId, gpus: u32) {
        for at in 0..self.jobs.holding.len() {
            let short = gpus.saturating_sub(self.state.idle.on(node));
            let here = gpus_on(&self.jobs.holding[at].1, node).min(short);
            if here > 0 {
                let held = &self.jobs.holding[at].1;
                let rest = if held.share().is_some() { Placement::none() } else { without(held, node, here) };
                let job = self.jobs.holding[at].0;
                let held = std::mem::replace(&mut self.jobs.holding[at].1, rest.clone());
                self.free_up(job, &held);
                self.take(job, &rest);
            }
        }
    }

    /// Stops a job without warning: it waits, at its last checkpoint.
    fn interrupt(&mut self, job: JobId, store: NodeStore) -> Result<(), SimError> {
        let now = self.state.now;
        let state = self.state.jobs.state_mut(job);
        state.settle(now);
        state.undo(store);
        let done = state.progress;
        self.state.jobs.state_mut(job).epoch = self.state.scenario.epoch_at(job, done);
        // Leaving marks all progress as safe, but what survives the loss of a node is no more than
        // before.
        let base = self.state.jobs.state(job).saving.base;
        self.vacate(job)?;
        self.state.jobs.state_mut(job).saving.base = base;
        Ok(())
    }

    /// Jobs that synchronise over a node's network run at the speed it now allows.
    fn retime(&mut self, node: NodeId) -> Result<(), SimError> {
        let now = self.state.now;
        let runs = |job: &JobId| {
            let state = self.state.jobs.state(*job);
            state.phase == Phase::Running && state.share().is_distributed()
        };
        let touched: SmallVec<[JobId; 8]> = self.state.on_node(node).filter(runs).collect();
        for job in touched {
            // Progress up to now was made at the old rate.
            self.state.jobs.state_mut(job).settle(now);
            self.run_segment(job)?;
        }
        Ok(())
    }

    /// Times as long that a job on `share` takes to synchronise.
    pub(super) fn sync_factor(&self, share: &Placement) -> f64 {
        let (Some(health), Some(model)) = (&self.health, &self.state.scenario.options.faults) else { return 1.0 };
        let slow = share.is_distributed() && share.slices().iter().any(|slice| health.slow[slice.node.index()] > 0);
        if slow { model.degradation.factor } else { 1.0 }
    }

    /// A job begins to make progress; a buggy one has only so long.
    pub(super) fn begin(&mut self, job: JobId) -> Result<(), SimError> {
        self.state.jobs.state_mut(job).phase = Phase::Running;
        self.begin_saving(job);
        let (now, seed) = (self.state.now, self.state.scenario.seed);
        let state = self.state.jobs.state(job);
        if let Some(model) = self.state.scenario.options.faults.as_ref().filter(|_| state.saving.buggy) {
            // An attempt that was interrupted goes on towards its failure from where it stood.
            let ran = state.executed(now) - state.restarting(now) - state.saving.attempt_from;
            let left = model.fails_after(seed, job, state.saving.failures) - ran;
            let at = now.saturating_add(left.max(SimTime::ZERO));
            self.queue.push(Event::of_job(at, EventKind::Bug, job, state.restarts));
        }
        self.run_segment(job)
    }

    /// An attempt fails by itself: the job is tried again, or given up.
    pub(super) fn fail(&mut self, job: JobId) -> Result<(), SimError> {
        let now = self.state.now;
        let retries =
            self.state.scenario.options.faults.as_ref().and_then(|model| model.bugs).map_or(0, |bugs| bugs.retries);
        let state = self.state.jobs.state_mut(job);
        state.settle(now);
        state.saving.failures += 1;
        state.saving.attempt_from = state.executed(now) - state.restarting(now);
        if state.saving.failures > retries {
            state.lose_all(now);
            return self.leave(job, Departure::GivenUp);
        }
        self.state.trigger.fault = true;
        self.interrupt(job, NodeStore::Kept)?;
        // Jobs on cards that the failed one leaves are faster at once.
        self.update_sharing()
    }
}

fn gpus_on(placement: &Placement, node: NodeId) -> u32 {
    placement.slices().iter().filter(|slice| slice.node == node).map(|slice| slice.gpus).sum()
}

/// `placement` with up to `gpus` fewer accelerators on `node`.
fn without(placement: &Placement, node: NodeId, gpus: u32) -> Placement {
    let mut left = gpus;
    let slices = placement.slices().iter().map(|slice| {
        let gone = if slice.node == node { slice.gpus.min(left) } else { 0 };
        left -= gone;
        (slice.node, slice.gpus - gone)
    });
    slices.collect()
}
