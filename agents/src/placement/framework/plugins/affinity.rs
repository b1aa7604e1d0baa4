//! Node affinity: required labels filter, preferred ones score.

use goodput_env::cluster::NodeId;

use crate::placement::framework::{Filtered, MAX_SCORE, Plugin, Pod, Snapshot};

/// Plugin of node affinity.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeAffinity;

impl Plugin for NodeAffinity {
    fn filter(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Filtered {
        let labels = &snapshot.node(node).labels;
        let has = |(key, values): (&String, &Vec<String>)| labels.get(key).is_some_and(|value| values.contains(value));
        if pod.affinity.required.iter().all(has) { Filtered::Fits } else { Filtered::Unresolvable }
    }

    /// The weights of the preferences that the node meets.
    fn score(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Option<i64> {
        let labels = &snapshot.node(node).labels;
        let met = pod.affinity.preferred.iter().filter(|(key, value, _)| labels.get(key) == Some(value));
        Some(met.map(|(_, _, weight)| weight).sum())
    }

    fn normalise(&self, scores: &mut [i64]) {
        let most = scores.iter().copied().max().unwrap_or(0);
        if most > 0 {
            scores.iter_mut().for_each(|score| *score = *score * MAX_SCORE / most);
        }
    }
}
