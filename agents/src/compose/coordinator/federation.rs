//! Clusters side by side: each has its own simulator and schedulers, and they meet at the
//! coordinator's decisions.
//!
//! The servers that can move are the inference pools. Each cluster lists all of them as nodes, with
//! the same ids, and those it does not own are elsewhere. A server moves in two steps, so that
//! nothing is ever in two places: at one decision its owner is told how many it owes and empties
//! them, at the next the empty ones change hands.

use std::sync::Arc;

use goodput_env::cluster::{NodeId, Pool};
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::sim::{Outcome, SimError, Simulator, Status};
use goodput_env::time::SimTime;

use super::Coordinator;
use crate::compose::loaning::Composite;

/// A server that changed hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Time of the transfer.
    pub at: SimTime,
    /// Server that changes owner.
    pub node: NodeId,
    /// Cluster that owned the server before.
    pub from: usize,
    /// Cluster that owns the server afterwards.
    pub to: usize,
}

struct Member {
    simulator: Simulator,
    policy: Composite,
    /// A decision is due that lies beyond the last meeting.
    pending: bool,
    done: bool,
    /// Servers that the cluster is to give, and to get.
    owed: u32,
    short: u32,
}

/// Clusters of the federation.
pub struct Federation {
    members: Vec<Member>,
    movable: Vec<NodeId>,
    coordinator: Option<Coordinator>,
    period: SimTime,
    /// From when on the coordinator is gone.
    outage: SimTime,
    transfers: Vec<Transfer>,
}

impl Federation {
    /// Clusters with equal lists of movable servers. Each starts with a run of them in order of id,
    /// as many as `owned` says; servers that are left over belong to no cluster. Without a
    /// coordinator they stay isolated.
    pub fn new(members: Vec<(Arc<Scenario>, Composite)>, owned: &[u32], coordinator: Option<Coordinator>) -> Self {
        let movable: Vec<NodeId> = members.first().map_or_else(Vec::new, |(scenario, _)| movable(scenario));
        let owners: Vec<usize> =
            owned.iter().enumerate().flat_map(|(index, &count)| std::iter::repeat_n(index, count as usize)).collect();
        let owner = |at: usize| owners.get(at).copied().unwrap_or(usize::MAX);
        let member = |(index, (scenario, policy)): (usize, (Arc<Scenario>, Composite))| {
            let mut simulator = Simulator::new(scenario);
            for (at, &node) in movable.iter().enumerate().filter(|(at, _)| owner(*at) != index) {
                let gone = simulator.hand_over(node);
                debug_assert!(gone, "server {at} is empty before the start");
            }
            Member { simulator, policy, pending: false, done: false, owed: 0, short: 0 }
        };
        let members = members.into_iter().enumerate().map(member).collect();
        let period = coordinator.as_ref().map_or(SimTime::from_secs(600), |coordinator| coordinator.period);
        Self { members, movable, coordinator, period, outage: SimTime::NEVER, transfers: Vec::new() }
    }

    /// Lets the coordinator crash at `at`.
    #[must_use]
    pub fn outage_at(self, at: SimTime) -> Self {
        Self { outage: at, ..self }
    }

    /// Runs every cluster to its end. `met` is told how many movable servers each cluster owns
    /// after each meeting.
    ///
    /// # Errors
    /// The first [`SimError`] of a cluster.
    pub fn run(mut self, mut met: impl FnMut(SimTime, &[u32])) -> Result<(Vec<Outcome>, Vec<Transfer>), SimError> {
        let mut meeting = SimTime::ZERO;
        while self.members.iter().any(|member| !member.done) {
            // All clusters reach the same moment before servers change hands.
            meeting += self.period;
            for member in &mut self.members {
                member.advance(meeting)?;
            }
            self.hand_over_owed(meeting);
            // Servers that were owed before the crash still change hands at this meeting.
            if meeting >= self.outage {
                self.coordinator = None;
            }
            self.coordinate();
            met(meeting, &self.owned());
        }
        let outcomes = self.members.into_iter().map(|member| member.simulator.outcome()).collect();
        Ok((outcomes, self.transfers))
    }

    fn owned(&self) -> Vec<u32> {
        let of = |member: &Member| {
            let view = member.simulator.view();
            self.movable.iter().filter(|&&node| view.owned(node)).count() as u32
        };
        self.members.iter().map(of).collect()
    }

    /// Tells every cluster how many servers it owes.
    fn coordinate(&mut self) {
        let Some(coordinator) = &mut self.coordinator else {
            self.members.iter_mut().for_each(|member| member.owe(0));
            return;
        };
        let claims: Vec<_> = self
            .members
            .iter()
            .enumerate()
            .map(|(index, member)| coordinator.claim(index, &member.simulator.view()))
            .collect();
        let target = coordinator.decide(&claims);
        for ((member, claim), target) in self.members.iter_mut().zip(&claims).zip(target) {
            member.owed = claim.owned.saturating_sub(target);
            member.short = target.saturating_sub(claim.owned);
            member.owe(member.owed);
        }
    }

    /// Empty servers that are owed go to the clusters that they were promised to.
    fn hand_over_owed(&mut self, at: SimTime) {
        if self.coordinator.is_none() {
            return;
        }
        for from in 0..self.members.len() {
            // Services are packed on low ids, so the high ones are empty first.
            for &node in self.movable.iter().rev() {
                let Some(to) = self.members.iter().position(|member| member.short > 0) else { return };
                if self.members[from].owed == 0 {
                    break;
                }
                if self.members[from].simulator.hand_over(node) {
                    self.members[from].owed -= 1;
                    self.members[to].short -= 1;
                    self.members[to].simulator.take_over(node);
                    self.transfers.push(Transfer { at, node, from, to });
                }
            }
        }
    }
}

impl Member {
    /// Decides everything up to `meeting`.
    fn advance(&mut self, meeting: SimTime) -> Result<(), SimError> {
        while !self.done {
            if !self.pending {
                self.done = self.simulator.run_until_decision()? != Status::Decision;
                self.pending = !self.done;
            }
            // The clock is past the meeting, so this decision waits until the others have met.
            if self.done || self.simulator.now() > meeting {
                return Ok(());
            }
            let plan = self.policy.decide(&self.simulator.view());
            self.simulator.apply(&plan)?;
            self.pending = false;
            let here = self.simulator.now() >= meeting;
            let soonest = [self.policy.wake_at(), (!here).then_some(meeting)].into_iter().flatten().min();
            self.simulator.wake_at(soonest);
            if here {
                return Ok(());
            }
        }
        Ok(())
    }

    fn owe(&mut self, servers: u32) {
        if let Some(orchestrator) = self.policy.orchestrator() {
            orchestrator.owe(servers);
        }
    }
}

fn movable(scenario: &Scenario) -> Vec<NodeId> {
    let nodes = scenario.cluster.nodes.iter().zip(scenario.cluster.node_ids());
    nodes.filter(|(node, _)| node.pool == Pool::Inference).map(|(_, id)| id).collect()
}
