//! The `yarn` placement scheme of the Tiresias simulator: all accelerators of a job below one
//! switch, and in the most consolidated shape or not at all.
//!
//! A job that fits into a node takes the first node with room. A wider one takes as many idle nodes
//! as it fills and the rest from one more, each the first there is. The scheme also counts
//! processor cores (2 for a job of one accelerator, else 6 an accelerator) and memory (5 GB for a
//! job within a node, else 11 GB and 0.1 GB a worker for each accelerator). On the published
//! clusters, with 40 to 128 cores and 254 GB or more a node of 4 or 8, neither runs out before the
//! accelerators do for jobs of up to 200, so they are left out here.

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::placement::Placement;

use super::Free;

/// The scheme; nodes are numbered switch by switch, and the first switch that has room is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yarn {
    /// Nodes below each switch.
    pub nodes_per_switch: u32,
}

impl Yarn {
    /// Takes `gpus` accelerators out of `free`; `None`, and nothing taken, where no switch has them
    /// in that shape.
    pub fn place(self, cluster: &Cluster, free: &mut Free, gpus: u32) -> Option<Placement> {
        let nodes = cluster.nodes.len() as u32;
        let mut switches = (0..nodes).step_by(self.nodes_per_switch.max(1) as usize);
        let placement = switches.find_map(|first| {
            let below = (first..(first + self.nodes_per_switch.max(1)).min(nodes)).map(NodeId);
            shape(below, cluster.gpus_per_node(), free, gpus)
        })?;
        for slice in placement.slices() {
            free.take(slice.node, slice.gpus);
        }
        Some(placement)
    }
}

fn shape(mut nodes: impl Iterator<Item = NodeId> + Clone, per_node: u32, free: &Free, gpus: u32) -> Option<Placement> {
    if gpus <= per_node {
        return nodes.find(|&node| free.on(node) >= gpus).map(|node| Placement::on(node, gpus));
    }
    let (full, rest) = ((gpus / per_node) as usize, gpus % per_node);
    let mut placement: Placement =
        nodes.clone().filter(|&node| free.on(node) == per_node).take(full).map(|node| (node, per_node)).collect();
    if placement.nodes() < full as u32 {
        return None;
    }
    if rest > 0 {
        let taken = |node| placement.slices().iter().any(|slice| slice.node == node);
        let last = nodes.find(|&node| !taken(node) && free.on(node) >= rest)?;
        placement.push(last, rest);
    }
    Some(placement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(free: &[u32], nodes_per_switch: u32, gpus: u32) -> Option<Vec<(u32, u32)>> {
        let cluster = Cluster::homogeneous(free.len() as u32, 4);
        let mut working = Free::listed(&cluster, free);
        let placement = Yarn { nodes_per_switch }.place(&cluster, &mut working, gpus)?;
        Some(placement.slices().iter().map(|slice| (slice.node.0, slice.gpus)).collect())
    }

    #[test]
    fn the_first_node_below_the_first_switch_with_room() {
        assert_eq!(placed(&[1, 2, 4], 3, 2), Some(vec![(1, 2)]));
        assert_eq!(placed(&[3, 3, 3], 3, 4), None, "nine are free, but no node has four");
        assert_eq!(placed(&[4, 3, 4, 2], 4, 10), Some(vec![(0, 4), (2, 4), (1, 2)]));
        assert_eq!(placed(&[4, 3, 4, 1], 2, 8), None, "two idle nodes, but not below one switch");
        assert_eq!(placed(&[4, 1, 4, 2], 2, 6), Some(vec![(2, 4), (3, 2)]));
        assert_eq!(placed(&[4, 3, 3], 3, 8), None);
    }
}
