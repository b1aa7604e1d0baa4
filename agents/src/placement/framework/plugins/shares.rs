//! Parts of accelerators, as HAMi gives them: compute in percent and memory in MiB, on as many
//! cards of one node as the request needs.

use std::collections::BTreeMap;

use goodput_env::cluster::NodeId;
use goodput_env::model::sharing::{Grant, Spread, place};

use crate::placement::framework::{Filtered, Plugin, Pod, PodId, Snapshot};

/// The plugin. Pods that ask for no share are not its business. What it gives is kept here until
/// the pod is let go.
#[derive(Clone, Debug)]
pub struct Shares {
    spread: Spread,
    grants: BTreeMap<PodId, (NodeId, Vec<Grant>)>,
}

impl Shares {
    /// Fills the fullest cards first, or the emptiest.
    pub fn new(spread: Spread) -> Self {
        Self { spread, grants: BTreeMap::new() }
    }

    /// Accelerators granted to `pod` on its node.
    pub fn grants(&self, pod: PodId) -> &[Grant] {
        self.grants.get(&pod).map_or(&[], |(_, grants)| grants)
    }

    /// The cards of `node` as they are with what was given.
    fn cards(&self, snapshot: &Snapshot, node: NodeId) -> Vec<goodput_env::model::sharing::Card> {
        let mut cards = snapshot.node(node).cards.clone();
        for (_, grants) in self.grants.values().filter(|(of, _)| *of == node) {
            grants.iter().for_each(|grant| cards[grant.card].take(&grant.part));
        }
        cards
    }
}

impl Plugin for Shares {
    fn filter(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Filtered {
        match &pod.share {
            Some(request) if place(&self.cards(snapshot, node), request, self.spread).is_none() => {
                Filtered::Unschedulable
            }
            _ => Filtered::Fits,
        }
    }

    /// Mean fill of the node's cards with the pod, or the mean of what would stay free.
    fn score(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Option<i64> {
        let request = pod.share.as_ref()?;
        let cards = self.cards(snapshot, node);
        let compute: u64 = cards.iter().map(|card| u64::from(card.compute_percent)).sum();
        let whole = 100 * cards.len().max(1) as u64;
        let full = ((compute + u64::from(request.compute_percent)) * 100 / whole) as i64;
        Some(if self.spread == Spread::Fullest { full } else { 100 - full })
    }

    fn reserve(&mut self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> bool {
        let Some(request) = &pod.share else { return true };
        match place(&self.cards(snapshot, node), request, self.spread) {
            Some(grants) => self.grants.insert(pod.id, (node, grants)).is_none(),
            None => false,
        }
    }

    fn unreserve(&mut self, _snapshot: &Snapshot, pod: &Pod, _node: NodeId) {
        self.grants.remove(&pod.id);
    }
}
