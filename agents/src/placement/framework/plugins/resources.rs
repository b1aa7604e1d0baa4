//! Accelerators: enough of them free (Filter), and which nodes to fill first (Score), as
//! `NodeResourcesFit` does.

use goodput_env::cluster::NodeId;

use crate::placement::framework::{Filtered, MAX_SCORE, Plugin, Pod, Snapshot};

/// Scoring rule for nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocated {
    /// Much is free: spread, the default of Kubernetes.
    Least,
    /// Little is free: binpack, which keeps whole nodes for wide pods.
    Most,
}

/// Plugin of resources: fit and score.
#[derive(Clone, Copy, Debug)]
pub struct ResourcesFit(pub Allocated);

impl Plugin for ResourcesFit {
    fn filter(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Filtered {
        let node = snapshot.node(node);
        match (pod.gpus <= node.free, pod.gpus <= node.gpus) {
            (true, _) => Filtered::Fits,
            (false, true) => Filtered::Unschedulable,
            (false, false) => Filtered::Unresolvable,
        }
    }

    /// Part of the node that is free, or taken, with the pod on it.
    fn score(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Option<i64> {
        let node = snapshot.node(node);
        let (whole, left) = (i64::from(node.gpus.max(1)), i64::from(node.free.saturating_sub(pod.gpus)));
        Some(match self.0 {
            Allocated::Least => left * MAX_SCORE / whole,
            Allocated::Most => (whole - left) * MAX_SCORE / whole,
        })
    }
}
