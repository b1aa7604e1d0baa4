//! Elastic resizing without a pause (CoDDL, the executor of AFS: Hwang et al., NSDI'21).
//!
//! A job that gets more accelerators goes on with its old share while workers start on the new
//! ones; when they are up it takes them in at the end of an iteration. A job that loses
//! accelerators leaves them at the end of its iteration and does not stop. New accelerators are
//! held, and idle, for as long as the run's switch cost says a restart takes. A change that keeps
//! nothing of the share that is running, or too little for the job to run on, is a restart as ever;
//! so are first starts.
//!
//! **Placements are exact and immediate.** From the decision on, a job's placement is what the plan
//! says: new accelerators count as the job's own, and accelerators taken away count as free. The
//! *share* of a job, the part that makes progress, follows. Until the iteration of the old owner
//! ends, a job that is given accelerators of that node waits; its start-up begins then. So no
//! accelerator works for two jobs. The rest of one iteration counts for the new owner, or for no
//! job.
//!
//! **Commands.** Each change is a command with a number that only grows. What a job scheduled for
//! an earlier number is void, so a worker that becomes ready late changes nothing.

use smallvec::SmallVec;

use super::events::{Event, EventKind};
use super::{SimError, Simulator};
use crate::job::{JobId, Work};
use crate::model::switching::Switch;
use crate::placement::{Placement, Slice};
use crate::plan::Change;
use crate::scenario::{Resize, Scenario};
use crate::state::{JobState, Phase, Reconfiguration};
use crate::time::SimTime;

/// The part of the share that no command has taken away yet.
fn lasting(state: &JobState) -> &Placement {
    match &state.resize {
        Some(resize) if resize.leave_at < SimTime::NEVER => &resize.stay,
        _ => state.share(),
    }
}

impl Simulator {
    /// Whether the change goes on without a pause: a part of the running share stays, and the job
    /// can run on it.
    pub(super) fn overlaps(&self, change: &Change) -> bool {
        if self.state.scenario.options.resize == Resize::StopRestart {
            return false;
        }
        let state = self.state.jobs.state(change.job);
        // Rigid jobs that share accelerators come and go together.
        if change.partner.is_some() || state.partner.is_some() {
            return false;
        }
        if change.placement.share().is_some() || state.placement.share().is_some() {
            return false;
        }
        let kept = common(lasting(state), &change.placement).gpus();
        let request = &self.state.scenario.workload.jobs[change.job.index()].request;
        state.phase == Phase::Running && kept > 0 && request.accepts(kept)
    }

    /// Accounts a running job's placement as free, and says until when it works on what it is to
    /// leave.
    pub(super) fn prepare(&mut self, change: &Change) -> Result<(), SimError> {
        let end = self.leaves_at(change.job)?;
        let state = self.state.jobs.state(change.job);
        let leaving = without(lasting(state), &change.placement);
        let placement = state.placement.clone();
        for slice in leaving.slices() {
            let drained = &mut self.jobs.drained[slice.node.index()];
            *drained = end.max(*drained);
        }
        self.free_up(change.job, &placement);
        Ok(())
    }

    /// The end of the iteration at which a job leaves what is taken from it now. Others may count
    /// on one that was set before.
    fn leaves_at(&self, job: JobId) -> Result<SimTime, SimError> {
        let set = self.state.jobs.state(job).resize.as_ref().map_or(SimTime::NEVER, |resize| resize.leave_at);
        Ok(self.end_of_iteration(job)?.min(set))
    }

    /// Gives a running job its new placement without stopping it. The old placement is accounted as
    /// free.
    pub(super) fn reconfigure(&mut self, change: &Change) -> Result<(), SimError> {
        let (job, now) = (change.job, self.state.now);
        let end = self.leaves_at(job)?;
        self.state.jobs.state_mut(job).settle(now);
        let share = self.state.jobs.state(job).share().clone();
        let kept = common(lasting(self.state.jobs.state(job)), &change.placement);
        let leaves = kept.gpus() < share.gpus();
        // What it keeps is there already.
        let there = self.jobs.ready_for(&without(&change.placement, &kept));
        self.take(job, &change.placement);
        self.records.log(&self.state, job, &change.placement);

        let boot = boot_time(
            &self.state.scenario,
            job,
            self.state.jobs.state(job).commands,
            kept.gpus(),
            change.placement.gpus(),
        );
        let mode = self.state.scenario.options.resize;
        self.state.jobs.place(job, change.placement.clone());
        let state = self.state.jobs.state_mut(job);
        let mut resize = state.resize.take().unwrap_or_else(|| {
            let (never, targets) = (SimTime::NEVER, SmallVec::new());
            let stay = share.clone();
            Box::new(Reconfiguration { share, leave_at: never, stay, targets, ready_at: never, aligned: false })
        });
        state.changed = now;
        state.commands += 1;
        resize.leave_at = if leaves { end } else { SimTime::NEVER };
        resize.stay = kept.clone();
        match mode {
            Resize::StopRestart | Resize::Overlapped => resize.targets.clear(),
            Resize::OverlappedMerge => resize.targets.truncate(1),
            Resize::OverlappedSerial => {}
        }
        // Another target is still being prepared, so this one waits for its turn.
        if !resize.targets.is_empty() {
            resize.targets.push(change.placement.clone());
        } else if kept.gpus() < change.placement.gpus() {
            resize.targets.push(change.placement.clone());
            (resize.ready_at, resize.aligned) = (there.max(now).saturating_add(boot), false);
        } else {
            resize.ready_at = SimTime::NEVER;
        }
        let settled = !leaves && resize.targets.is_empty();
        let reordered = settled && resize.share != change.placement;
        state.resize = Some(resize);
        if settled {
            // Back to what is running: nothing happens, unless the order of its nodes changed.
            self.state.jobs.state_mut(job).resize = None;
            if reordered {
                self.state.choose_batch(job);
                self.run_segment(job)?;
            }
            return Ok(());
        }
        if leaves && end <= now {
            // The iteration ends at this very moment, so the next holder may start at once.
            self.records.events += 1;
            return self.resize_due(job);
        }
        self.queue_next(job);
        Ok(())
    }

    /// A share is to be left, or new workers are up.
    pub(super) fn resize_due(&mut self, job: JobId) -> Result<(), SimError> {
        let now = self.state.now;
        let end = self.end_of_iteration(job)?;
        let scenario = self.state.scenario.clone();
        let state = self.state.jobs.state_mut(job);
        state.settle(now);
        let Some(mut resize) = state.resize.take() else {
            return Ok(());
        };
        let before = resize.share.clone();
        if resize.leave_at <= now {
            resize.share = common(&resize.share, &resize.stay);
            resize.leave_at = SimTime::NEVER;
        }
        // Workers that are up are taken in at the end of an iteration and not within it.
        if resize.ready_at <= now && !resize.aligned && end > now {
            (resize.ready_at, resize.aligned) = (end, true);
        } else if resize.ready_at <= now {
            // A target that waited may have lost accelerators since; the last one never has.
            let target = common(&resize.targets[0], &state.placement);
            let leaving = resize.leave_at < SimTime::NEVER;
            let there =
                last_left(&self.jobs.drained, &without(&target, if leaving { &resize.stay } else { &resize.share }));
            if there > now {
                // It lost them and got them back, and the owner in between has not left them yet.
                (resize.ready_at, resize.aligned) = (there, false);
            } else {
                // What is left of the target may be too little to run on; the job then goes on as
                // it is.
                if scenario.workload.jobs[job.index()].request.accepts(target.gpus()) {
                    (resize.share, resize.leave_at) = (target, SimTime::NEVER);
                }
                resize.targets.remove(0);
                let next = resize.targets.first().map(|next| next.gpus());
                let boot = next.map(|gpus| boot_time(&scenario, job, state.commands, resize.share.gpus(), gpus));
                resize.ready_at = boot.map_or(SimTime::NEVER, |boot| now.saturating_add(boot));
                resize.aligned = false;
            }
        }
        let changed = resize.share != before;
        let done = resize.leave_at == SimTime::NEVER && resize.targets.is_empty();
        state.resize = if done { None } else { Some(resize) };
        if changed {
            self.state.choose_batch(job);
            self.run_segment(job)?;
        }
        if !done {
            self.queue_next(job);
        }
        Ok(())
    }

    fn queue_next(&mut self, job: JobId) {
        let state = self.state.jobs.state(job);
        let Some(resize) = &state.resize else { return };
        let at = resize.leave_at.min(resize.ready_at).max(self.state.now);
        self.queue.push(Event::of_job(at, EventKind::Resize, job, state.commands));
    }

    /// The first end of an iteration of a running job that is not before now. Jobs without a model
    /// have no iterations and can leave at any time.
    fn end_of_iteration(&self, job: JobId) -> Result<SimTime, SimError> {
        let state = self.state.jobs.state(job);
        let secs = match self.state.scenario.workload.jobs[job.index()].work {
            Work::Fixed { .. } => 0.0,
            Work::Steps { .. } => state.rate.recip(),
            // An iteration of workers of several types is one of the job's unit.
            Work::Application { .. } if self.state.scenario.is_mixed(state.share()) => state.rate.recip(),
            Work::Application { index, .. } => {
                let kind = self.state.scenario.kind_of(&state.placement);
                let step = self.true_step(job, index, kind)?;
                let pass_secs = step.step_secs - step.sync_secs;
                (step.step_secs + f64::from(state.batch.accumulation) * pass_secs) / state.kept_speed
            }
        };
        let run = (self.state.now - state.segment).as_secs_f64();
        // Within a millisecond of an end, this is the end.
        let iterations = ((run - 1e-3) / secs).ceil().max(0.0);
        let end = state.segment.saturating_add(SimTime::from_secs_f64(iterations * secs));
        Ok(if secs > 0.0 && iterations.is_finite() { end.max(self.state.now) } else { self.state.now })
    }
}

/// Start-up time of the workers that bring a job from `from` to `to` accelerators.
fn boot_time(scenario: &Scenario, job: JobId, command: u32, from: u32, to: u32) -> SimTime {
    let application = scenario.workload.application_name(job);
    let switch = Switch { application, from, to, moved: true, started: true };
    SimTime::from_millis(scenario.options.switch_cost.drawn_millis(&switch, scenario.seed, job.0, command))
}

pub(super) fn last_left(drained: &[SimTime], placement: &Placement) -> SimTime {
    let drained = placement.slices().iter().filter_map(|slice| drained.get(slice.node.index()));
    drained.copied().max().unwrap_or(SimTime::ZERO)
}

/// Accelerators that `first` and `second` have in common, in the order of `first`.
fn common(first: &Placement, second: &Placement) -> Placement {
    let mut left: SmallVec<[Slice; 16]> = second.slices().iter().copied().collect();
    let slices = first.slices().iter().map(|slice| {
        let mut here = 0;
        for other in left.iter_mut().filter(|other| other.node == slice.node) {
            let gpus = other.gpus.min(slice.gpus - here);
            other.gpus -= gpus;
            here += gpus;
        }
        (slice.node, here)
    });
    slices.collect()
}

/// Accelerators that `first` has beyond `second`.
fn without(first: &Placement, second: &Placement) -> Placement {
    let mut left: SmallVec<[Slice; 16]> = second.slices().iter().copied().collect();
    let slices = first.slices().iter().map(|slice| {
        let mut here = slice.gpus;
        for other in left.iter_mut().filter(|other| other.node == slice.node) {
            let gpus = other.gpus.min(here);
            other.gpus -= gpus;
            here -= gpus;
        }
        (slice.node, here)
    });
    slices.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeId;

    #[test]
    fn common_parts_and_differences() {
        let first = Placement::from_iter([(NodeId(0), 2), (NodeId(3), 4), (NodeId(0), 1)]);
        let second = Placement::from_iter([(NodeId(3), 1), (NodeId(0), 2), (NodeId(5), 4)]);
        assert_eq!(common(&first, &second), Placement::from_iter([(NodeId(0), 2), (NodeId(3), 1)]));
        assert_eq!(without(&first, &second), Placement::from_iter([(NodeId(3), 3), (NodeId(0), 1)]));
        assert_eq!(without(&second, &first), Placement::on(NodeId(5), 4));
        assert!(common(&Placement::on(NodeId(1), 4), &Placement::on(NodeId(2), 4)).is_empty());
    }
}
