//! Parts of accelerators that jobs hold, as a snapshot tells them.

use std::collections::BTreeSet;

use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;
use goodput_env::placement::{CardShare, Placement, ShareRequest};

use super::ClusterObserver;
use crate::engine::{Attempt, ClusterSnapshot, JobSeen, OnNode};

/// Accelerators of which jobs hold parts, or are to hold them by an order that is under way.
pub(super) struct SharedCardsSeen(BTreeSet<(NodeId, u16)>);

impl SharedCardsSeen {
    /// Accelerators of which a snapshot shows parts held.
    pub fn of(observer: &ClusterObserver, snapshot: &ClusterSnapshot) -> Self {
        let attempts = snapshot.jobs.iter().filter_map(|job| job.attempt.as_ref());
        let cards = attempts.filter_map(|attempt| {
            let node = observer.node_of(attempt.placement.first()?)?;
            Some(attempt.cards.iter().map(move |&card| (node, card)))
        });
        Self(cards.flatten().collect())
    }

    /// Counts a part of an accelerator. Returns whether it is the first one.
    pub fn open(&mut self, node: NodeId, card: u16) -> bool {
        self.0.insert((node, card))
    }
}

impl ClusterObserver {
    /// Placement of an attempt of a job: whole accelerators, or parts of those that the attempt names.
    pub(super) fn held_by(&self, seen: &JobSeen, attempt: &Attempt) -> Placement {
        let parts = || {
            let node = self.node_of(attempt.placement.first()?)?;
            self.share_of(node, &attempt.cards, seen.spec.request.share?)
        };
        parts().unwrap_or_else(|| self.placement_of(&attempt.placement))
    }

    /// Parts of the accelerators that an order names by their numbers.
    pub(super) fn parts_of(&self, job: JobId, placement: &[OnNode]) -> Placement {
        let parts = || {
            let on = placement.first()?;
            let cards = on.accelerators.iter().map(|card| card.parse::<u16>().ok());
            let asked = self.scenario.workload.jobs.get(job.index())?.request.share?;
            self.share_of(self.node_of(on)?, &cards.collect::<Option<Vec<u16>>>()?, asked)
        };
        parts().unwrap_or_else(|| self.placement_of(placement))
    }

    fn share_of(&self, node: NodeId, cards: &[u16], amount: ShareRequest) -> Option<Placement> {
        let cards = cards.iter().copied().collect();
        Some(Placement::shared(node, CardShare { cards, amount })).filter(|placement| !placement.is_empty())
    }

    fn node_of(&self, on: &OnNode) -> Option<NodeId> {
        self.node_ids.get(&on.node).map(|&node| NodeId::at(node))
    }
}
