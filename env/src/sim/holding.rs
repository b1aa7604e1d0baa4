//! Allocation: jobs take accelerators and give them back, and the counts of free ones follow.

use super::events::{Event, EventKind};
use super::{SimError, Simulator};
use crate::job::JobId;
use crate::model::switching::Switch;
use crate::placement::Placement;
use crate::plan::Change;
use crate::state::{ClusterState, Phase};
use crate::time::SimTime;

impl ClusterState {
    pub(super) fn is_free_move(&self, change: &Change) -> bool {
        let state = &self.jobs.state(change.job);
        let held = &state.placement;
        self.scenario.options.free_moves
            && !held.is_empty()
            && state.partner.is_none()
            && change.partner.is_none()
            && held.share().is_none()
            && change.placement.share().is_none()
            && held.shape() == change.placement.shape()
            && self.scenario.kind_of(held) == self.scenario.kind_of(&change.placement)
    }
}

impl Simulator {
    /// Leaves what `job` shares to its partner, which goes on at its own speed; false where it
    /// shares nothing.
    pub(super) fn leave_partner(&mut self, job: JobId) -> Result<bool, SimError> {
        let Some(partner) = self.state.jobs.state_mut(job).partner.take() else { return Ok(false) };
        let now = self.state.now;
        if job < partner {
            // Shared accelerators are booked for the first of two jobs.
            let placement = self.state.jobs.state(partner).placement.clone();
            self.records.book(&self.state, job, &placement, -1);
            self.records.book(&self.state, partner, &placement, 1);
        }
        let state = self.state.jobs.state_mut(partner);
        state.partner = None;
        if state.phase == Phase::Running {
            state.settle(now);
            self.run_segment(partner)?;
        }
        Ok(true)
    }

    pub(super) fn release_holding(&mut self) {
        while let Some((job, placement)) = self.jobs.holding.pop() {
            self.give_back(job, &placement);
        }
        self.return_servers();
    }

    pub(super) fn give_back(&mut self, job: JobId, placement: &Placement) {
        self.free_up(job, placement);
        self.records.log(&self.state, job, &Placement::none());
    }

    pub(super) fn free_up(&mut self, job: JobId, placement: &Placement) {
        if let Some((node, share)) = placement.share() {
            return self.leave_cards(job, node, share);
        }
        self.records.book(&self.state, job, placement, -1);
        for slice in placement.slices() {
            let node = slice.node.index();
            self.add_free(slice.node, slice.gpus);
            self.jobs.distributed[node] =
                self.jobs.distributed[node].wrapping_sub(u32::from(placement.is_distributed()));
            self.state.loans.trained_on[node] = self.state.loans.trained_on[node].wrapping_sub(slice.gpus);
        }
        self.records.held -= placement.gpus();
        self.requests.wake(&self.state);
    }

    pub(super) fn take(&mut self, job: JobId, placement: &Placement) {
        if let Some((node, share)) = placement.share() {
            return self.join_cards(job, node, share);
        }
        self.records.book(&self.state, job, placement, 1);
        let distributed = u32::from(placement.is_distributed());
        for slice in placement.slices() {
            self.take_free(slice.node, slice.gpus);
            self.jobs.distributed[slice.node.index()] += distributed;
            let trained = &mut self.state.loans.trained_on[slice.node.index()];
            *trained = trained.wrapping_add(slice.gpus);
        }
        self.records.held += placement.gpus();
    }

    /// Takes away what a job holds.
    pub(super) fn vacate(&mut self, job: JobId) -> Result<(), SimError> {
        let now = self.state.now;
        let state = self.state.jobs.state_mut(job);
        state.settle(now);
        // A job that is told to stop writes a last checkpoint; a fault has set it back before this.
        state.save_all();
        state.phase = Phase::Pending;
        state.changed = now;
        state.rate = 0.0;
        // What was queued for the old placement is void from now on.
        state.generation += 1;
        state.resize = None;
        state.shared_speed = 1.0;
        state.commands += 1;
        // The cost of the next start may depend on what was held before.
        state.previous_gpus = state.placement.gpus();
        let placement = self.state.jobs.place(job, Placement::none());
        if !placement.is_empty() {
            self.records.fragments.count_waiting(&self.state, job, 1);
        }
        if self.leave_partner(job)? {
            self.records.log(&self.state, job, &Placement::none());
        } else if !placement.is_empty() {
            self.give_back(job, &placement);
        }
        Ok(())
    }

    /// Puts a job on other nodes as if they were the same. Between two of these the books may be
    /// short of what others still hold, so they are kept in wrapping numbers.
    pub(super) fn relabel(&mut self, change: &Change) {
        let held = self.state.jobs.place(change.job, change.placement.clone());
        self.records.book(&self.state, change.job, &held, -1);
        self.records.book(&self.state, change.job, &change.placement, 1);
        let distributed = u32::from(held.is_distributed());
        for slice in held.slices() {
            let node = slice.node.index();
            self.add_free(slice.node, slice.gpus);
            self.jobs.distributed[node] = self.jobs.distributed[node].wrapping_sub(distributed);
            self.state.loans.trained_on[node] = self.state.loans.trained_on[node].wrapping_sub(slice.gpus);
        }
        for slice in change.placement.slices() {
            let node = slice.node.index();
            self.take_free(slice.node, slice.gpus);
            self.jobs.distributed[node] = self.jobs.distributed[node].wrapping_add(distributed);
            self.state.loans.trained_on[node] = self.state.loans.trained_on[node].wrapping_add(slice.gpus);
        }
    }

    pub(super) fn occupy(&mut self, change: &Change) -> Result<(), SimError> {
        if change.placement.is_empty() {
            return Ok(());
        }
        self.records.fragments.count_waiting(&self.state, change.job, -1);
        // What two jobs share is taken once, by the first of them.
        if change.counts() {
            self.take(change.job, &change.placement);
        }
        // Old owners may still be ending their iterations on these accelerators.
        let there = self.jobs.ready_for(&change.placement).max(self.state.now);
        let (job, now) = (change.job, self.state.now);
        let state = self.state.jobs.state(job);
        let switch = Switch {
            application: self.state.scenario.workload.application_name(job),
            from: state.previous_gpus,
            to: change.placement.gpus(),
            moved: true,
            started: state.started.is_some(),
        };
        let cost = self.state.scenario.options.switch_cost.drawn_millis(
            &switch,
            self.state.scenario.seed,
            job.0,
            state.restarts,
        );
        self.state.jobs.place(job, change.placement.clone());
        let state = self.state.jobs.state_mut(job);
        state.partner = change.partner;
        // The first start is no restart.
        state.restarts += u32::from(state.started.is_some());
        state.started.get_or_insert(now);
        let until = there + SimTime::from_millis(cost);
        state.phase = Phase::Starting { until };
        let event = Event::of_job(until, EventKind::Phase, job, state.generation);
        self.state.choose_batch(job);
        if until > now {
            self.queue.push(event)
        } else {
            self.begin(job)?
        }
        self.records.log(&self.state, job, &change.placement);
        Ok(())
    }
}
