//! Cards that several jobs share: jobs join and leave, and run at the speed that the others leave them.
//!
//! A card is taken from its node by the first job and free again after the last. Speeds follow at once, because a job
//! beside others is slower from the moment they start to that at which they leave.

use smallvec::SmallVec;

use super::{SimError, Simulator};
use crate::cluster::NodeId;
use crate::job::{JobId, Work};
use crate::placement::{CardShare, Placement, ShareRequest};
use crate::state::{ClusterState, Phase};

impl ClusterState {
    /// Speed of a job on its shares, relative to the speed that its work is measured at: on the share that it asks for
    /// where only its duration is known, else on whole accelerators. The slowest of its cards sets the pace.
    fn speed_on_cards(&self, job: JobId) -> f64 {
        let Some((node, share)) = self.jobs.state(job).placement.share() else { return 1.0 };
        let isolation = self.scenario.options.sharing.isolation;
        let on_share = matches!(self.scenario.workload.jobs[job.index()].work, Work::Fixed { .. });
        let speed = |(number, part): (u16, ShareRequest)| {
            let there = self.cards.get(node, number).map(|card| card.jobs.as_slice()).unwrap_or_default();
            let others = there.iter().filter(|(other, _)| *other != job).map(|(_, part)| part.compute_percent);
            let others: SmallVec<[u32; 8]> = others.collect();
            let alone = if on_share { isolation.speed(part.compute_percent, &[]) } else { 1.0 };
            isolation.speed(part.compute_percent, &others) / alone
        };
        share.parts().map(speed).fold(f64::INFINITY, f64::min)
    }
}

impl Simulator {
    pub(super) fn join_cards(&mut self, job: JobId, node: NodeId, share: &CardShare) {
        let blank = self.state.scenario.options.sharing.blank(&self.state.cluster, node);
        for (number, part) in share.parts() {
            let card = self.state.cards.join(node, number, job, part, blank);
            self.records.shared.joined(card, part);
            if card.jobs.len() == 1 {
                self.count_card(job, node, 1);
            }
        }
        self.jobs.reshared.push(node);
    }

    pub(super) fn leave_cards(&mut self, job: JobId, node: NodeId, share: &CardShare) {
        for &number in &share.cards {
            let Some((part, jobs, opener)) = self.state.cards.leave(node, number, job) else { continue };
            self.records.shared.left(jobs, part);
            if jobs == 0 {
                self.count_card(opener, node, -1);
            }
        }
        self.jobs.reshared.push(node);
        self.requests.wake(&self.state);
    }

    /// Books a card as taken (1) or free again (-1), for the job that opened it.
    fn count_card(&mut self, opener: JobId, node: NodeId, sign: i32) {
        self.records.book(&self.state, opener, &Placement::on(node, 1), sign);
        if sign > 0 {
            self.take_free(node, 1)
        } else {
            self.add_free(node, 1)
        }
        self.records.held = self.records.held.wrapping_add_signed(sign);
        let trained = &mut self.state.loans.trained_on[node.index()];
        *trained = trained.wrapping_add_signed(sign);
    }

    /// Sets the speeds of jobs on cards that others joined or left.
    pub(super) fn update_sharing(&mut self) -> Result<(), SimError> {
        while let Some(node) = self.jobs.reshared.pop() {
            let there = self.state.cards.on(node).iter().flat_map(|card| card.jobs.iter().map(|(job, _)| *job));
            let mut jobs: SmallVec<[JobId; 16]> = there.collect();
            jobs.sort_unstable();
            jobs.dedup();
            for job in jobs {
                // A completed job may hold its share until the next round.
                if self.state.jobs.get(job).is_some() {
                    self.set_shared_speed(job)?;
                }
            }
        }
        Ok(())
    }

    fn set_shared_speed(&mut self, job: JobId) -> Result<(), SimError> {
        let (speed, now) = (self.state.speed_on_cards(job), self.state.now);
        if speed == self.state.jobs.state(job).shared_speed {
            return Ok(());
        }
        let state = self.state.jobs.state_mut(job);
        state.settle(now);
        state.shared_speed = speed;
        if state.phase == Phase::Running { self.run_segment(job) } else { Ok(()) }
    }
}
