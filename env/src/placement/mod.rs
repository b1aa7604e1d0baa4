//! Exactly where a job runs: how many accelerators on which nodes.

mod pack;
mod share;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::cluster::NodeId;

pub use pack::pack;
pub use share::{CardShare, ShareRequest};

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
///
/// A placement holds whole accelerators, or shares of numbered cards of one node; its slice then counts the cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Placement {
    slices: SmallVec<[Slice; 16]>,
    share: Option<Box<CardShare>>,
}

/// Form in which a placement is written: whole accelerators are a list of slices.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Whole(SmallVec<[Slice; 16]>),
    Shared { node: NodeId, share: CardShare },
}

impl From<Written> for Placement {
    fn from(written: Written) -> Self {
        match written {
            Written::Whole(slices) => Self { slices, share: None },
            Written::Shared { node, share } => Self::shared(node, share),
        }
    }
}

impl From<Placement> for Written {
    fn from(placement: Placement) -> Self {
        match (placement.share, placement.slices.first()) {
            (Some(share), Some(slice)) => Self::Shared { node: slice.node, share: *share },
            _ => Self::Whole(placement.slices),
        }
    }
}

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

    /// Shares of cards of one node; without a card, nothing.
    pub fn shared(node: NodeId, share: CardShare) -> Self {
        let mut placement = Self::on(node, share.cards.len() as u32);
        placement.share = (!placement.is_empty()).then(|| Box::new(share));
        placement
    }

    /// Node and cards of which shares are held; `None` where whole accelerators are, or nothing.
    #[inline]
    pub fn share(&self) -> Option<(NodeId, &CardShare)> {
        let share = self.share.as_deref()?;
        Some((self.slices.first()?.node, share))
    }

    /// Compute held, in percent of one accelerator.
    #[inline]
    pub fn compute_percent(&self) -> u32 {
        self.share.as_ref().map_or(100 * self.gpus(), |share| share.amount.compute_percent)
    }

    /// Adds `gpus` whole accelerators on `node`, merging with the last slice where that slice is on `node`. Nothing
    /// happens for zero.
    pub fn push(&mut self, node: NodeId, gpus: u32) {
        match self.slices.last_mut() {
            _ if gpus == 0 => {}
            Some(last) if last.node == node => last.gpus += gpus,
            _ => self.slices.push(Slice { node, gpus }),
        }
    }

    /// The slices in order.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Number of nodes used.
    pub fn nodes(&self) -> u32 {
        self.slices.len() as u32
    }

    /// Number of accelerators held.
    pub fn gpus(&self) -> u32 {
        self.slices.iter().map(|slice| slice.gpus).sum()
    }

    /// Whether nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// Whether more than one node is used, so that gradients cross the network.
    pub fn is_distributed(&self) -> bool {
        self.slices.len() > 1
    }

    /// Replicas per node, in order, written into a small buffer.
    pub fn shape(&self) -> SmallVec<[u32; 16]> {
        self.slices.iter().map(|slice| slice.gpus).collect()
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
