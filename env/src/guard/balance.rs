//! Accelerators by node that a plan frees and takes.

use crate::cluster::NodeId;
use crate::view::ClusterView;

/// Accelerators by node that a plan leaves more or fewer than are idle now. Nodes that the plan does not name cost no
/// time.
#[derive(Clone, Debug, Default)]
pub(super) struct Balance {
    /// By node; zero between two plans.
    change: Vec<i64>,
    /// Nodes that the plan names, some more than once.
    named: Vec<NodeId>,
}

impl Balance {
    /// A balance with room for `nodes` nodes.
    pub fn with_capacity(nodes: usize) -> Self {
        Self { change: vec![0; nodes], named: Vec::with_capacity(nodes) }
    }

    /// Begins with a plan for a cluster of `nodes` nodes.
    pub fn reset(&mut self, nodes: usize) {
        for node in self.named.drain(..) {
            self.change[node.index()] = 0;
        }
        self.change.resize(nodes, 0);
    }

    /// Whether there is such a node.
    pub fn knows(&self, node: NodeId) -> bool {
        node.index() < self.change.len()
    }

    /// Enters accelerators of `node` that come free, or are taken where `by` is negative.
    pub fn add(&mut self, node: NodeId, by: i64) {
        self.change[node.index()] += by;
        self.named.push(node);
    }

    /// Accelerators of `node` that the plan frees beyond those that it takes.
    pub fn change(&self, node: NodeId) -> i64 {
        self.change[node.index()]
    }

    /// Nodes that the plan takes too much of, ascending, with the number of accelerators that are missing.
    pub fn short<'a>(&'a mut self, view: &'a ClusterView<'_>) -> impl Iterator<Item = (NodeId, u32)> + 'a {
        self.named.sort_unstable();
        self.named.dedup();
        let Self { change, named } = &*self;
        named.iter().filter_map(move |&node| {
            let left = i64::from(view.idle_on(node)) + change[node.index()];
            (left < 0).then(|| (node, left.unsigned_abs() as u32))
        })
    }
}
