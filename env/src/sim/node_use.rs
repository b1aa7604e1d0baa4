//! Accelerator time that jobs held, node by node, in whole GPU-milliseconds: over all nodes it adds up to that of the cluster exactly.

use crate::placement::Placement;
use crate::time::SimTime;

/// One node.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    held: i64,
    since: SimTime,
    gpu_millis: i64,
}

/// The books, settled for a node only when what is held on it changes.
#[derive(Clone, Debug)]
pub(super) struct NodeUse(Vec<Use>);

impl NodeUse {
    pub(super) fn new(nodes: usize) -> Self {
        Self(vec![Use::default(); nodes])
    }

    /// `placement` is taken (`sign` 1) or given back (-1).
    pub(super) fn change(&mut self, placement: &Placement, sign: i64, now: SimTime) {
        for slice in placement.slices() {
            let node = &mut self.0[slice.node as usize];
            node.gpu_millis += node.held * (now - node.since).as_millis();
            node.since = now;
            node.held += sign * i64::from(slice.gpus);
        }
    }

    /// By node, up to `now`.
    pub(super) fn gpu_millis(&self, now: SimTime) -> Vec<i64> {
        self.0.iter().map(|node| node.gpu_millis + node.held * (now - node.since).as_millis()).collect()
    }
}
