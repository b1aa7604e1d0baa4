//! Exactly where a job runs: how many accelerators on which nodes.

mod pack;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::cluster::NodeId;

pub use pack::pack;

/// Accelerators held on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Node of the slice.
    pub node: NodeId,
    /// Accelerators on it, at least 1.
    pub gpus: u32,
}

/// Accelerators of one job, node by node in the order they were given. Empty: the job holds nothing.
///
/// The order matters: ring all-reduce follows it, and the published profiles are keyed by it (up to
/// rotation).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Placement(SmallVec<[Slice; 16]>);

impl Placement {
    /// Placement without any accelerator.
    pub fn none() -> Self {
        Self::default()
    }

    /// All on one node.
    pub fn on(node: NodeId, gpus: u32) -> Self {
        let mut placement = Self::none();
        placement.push(node, gpus);
        placement
    }

    /// Adds `gpus` on `node`, merging with the last slice where it is the same node. Nothing
    /// happens for zero.
    pub fn push(&mut self, node: NodeId, gpus: u32) {
        match self.0.last_mut() {
            _ if gpus == 0 => {}
            Some(last) if last.node == node => last.gpus += gpus,
            _ => self.0.push(Slice { node, gpus }),
        }
    }

    /// The slices in order.
    pub fn slices(&self) -> &[Slice] {
        &self.0
    }

    /// Number of nodes used.
    pub fn nodes(&self) -> u32 {
        self.0.len() as u32
    }

    /// Number of accelerators held.
    pub fn gpus(&self) -> u32 {
        self.0.iter().map(|slice| slice.gpus).sum()
    }

    /// Whether nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether more than one node is used, so that gradients cross the network.
    pub fn is_distributed(&self) -> bool {
        self.0.len() > 1
    }

    /// Replicas per node, in order, written into a small buffer.
    pub fn shape(&self) -> SmallVec<[u32; 16]> {
        self.0.iter().map(|slice| slice.gpus).collect()
    }
}

impl FromIterator<(NodeId, u32)> for Placement {
    fn from_iter<I: IntoIterator<Item = (NodeId, u32)>>(slices: I) -> Self {
        let mut placement = Self::none();
        for (node, gpus) in slices {
            placement.push(node, gpus);
        }
        placement
    }
}

/// Replicas per node for `gpus` accelerators on as few nodes of `per_node` as possible: full nodes first.
pub fn packed_shape(gpus: u32, per_node: u32) -> SmallVec<[u32; 16]> {
    let mut left = gpus;
    std::iter::from_fn(|| {
        let here = left.min(per_node);
        left -= here;
        (here > 0).then_some(here)
    })
    .collect()
}
