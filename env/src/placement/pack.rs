//! The deterministic packer: from how many accelerators to exactly which.

use crate::cluster::{Cluster, NodeId, TypeId};
use crate::placement::Placement;

/// Takes `gpus` accelerators of type `accelerator` from `free`, on as few nodes as possible: best
/// fit where one node holds them, otherwise the emptiest nodes first; lower node ids win ties.
/// Returns `None`, taking nothing, where they do not fit.
pub fn pack(cluster: &Cluster, free: &mut [u32], accelerator: TypeId, gpus: u32) -> Option<Placement> {
    let of_type = |node: usize| cluster.nodes[node].accelerator == accelerator;
    let mut best: Option<usize> = None;
    let mut total = 0;
    for node in (0..free.len()).filter(|&node| of_type(node)) {
        total += free[node];
        if free[node] >= gpus && best.is_none_or(|best| free[node] < free[best]) {
            best = Some(node);
        }
    }
    if let Some(node) = best {
        free[node] -= gpus;
        return Some(Placement::on(NodeId::at(node), gpus));
    }
    if total < gpus {
        return None;
    }
    let mut placement = Placement::none();
    let mut left = gpus;
    while left > 0 {
        // The last piece goes where it leaves the least behind.
        let fitting =
            (0..free.len()).filter(|&node| of_type(node) && free[node] >= left).min_by_key(|&node| free[node]);
        let emptiest =
            (0..free.len()).filter(|&node| of_type(node)).max_by_key(|&node| (free[node], std::cmp::Reverse(node)));
        let node = fitting.or(emptiest)?;
        let here = free[node].min(left);
        free[node] -= here;
        left -= here;
        placement.push(NodeId::at(node), here);
    }
    Some(placement)
}
