//! A working copy of the free accelerators, which a policy spends while it plans.

use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::placement::{Placement, pack};

/// Free accelerators by node. Kept by a policy across decisions, so that planning allocates
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Free {
    nodes: Vec<u32>,
    total: u32,
}

impl Free {
    /// Starts from `free` accelerators by node.
    pub fn reset(&mut self, free: &[u32]) {
        self.nodes.clear();
        self.nodes.extend_from_slice(free);
        self.total = free.iter().sum();
    }

    /// Free accelerators in all nodes.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Free accelerators on `node`.
    pub fn on(&self, node: NodeId) -> u32 {
        self.nodes[node.index()]
    }

    /// Free accelerators by node.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Whether all of `placement` is free; it names each node once. Parts of cards are not: only whole ones count here.
    pub fn holds(&self, placement: &Placement) -> bool {
        placement.share().is_none() && placement.slices().iter().all(|slice| self.on(slice.node) >= slice.gpus)
    }

    /// Takes `gpus` of the free accelerators of `node`.
    pub fn take(&mut self, node: NodeId, gpus: u32) {
        self.nodes[node.index()] -= gpus;
        self.total -= gpus;
    }

    /// Frees what a job holds. A part of a card frees nothing, because other jobs may hold the rest of the card.
    pub fn release(&mut self, placement: &Placement) {
        if placement.share().is_some() {
            return;
        }
        for slice in placement.slices() {
            self.nodes[slice.node.index()] += slice.gpus;
            self.total += slice.gpus;
        }
    }

    /// Free accelerators of type `kind`.
    pub fn of_type(&self, cluster: &Cluster, kind: TypeId) -> u32 {
        if cluster.types.len() <= 1 {
            return self.total;
        }
        let nodes = cluster.nodes.iter().zip(&self.nodes);
        nodes.filter(|(node, _)| node.accelerator == kind).map(|(_, free)| free).sum()
    }

    /// Takes `gpus` of type `kind` on as few nodes as possible; `None`, and nothing taken, where
    /// there are not so many.
    pub fn pack(&mut self, cluster: &Cluster, kind: TypeId, gpus: u32) -> Option<Placement> {
        self.with_nodes(gpus, |nodes| pack(cluster, nodes, kind, gpus))
    }

    /// The type with most free accelerators, the first of those on ties; `None` if it has fewer
    /// than `gpus`.
    pub(super) fn roomiest_type(&self, cluster: &Cluster, gpus: u32) -> Option<TypeId> {
        let (free, kind) = self.roomiest(cluster);
        (gpus <= free).then_some(kind)
    }

    /// Free accelerators of the type that has most of them.
    pub fn most_of_one_type(&self, cluster: &Cluster) -> u32 {
        self.roomiest(cluster).0
    }

    fn roomiest(&self, cluster: &Cluster) -> (u32, TypeId) {
        if cluster.types.len() <= 1 {
            return (self.total, TypeId(0));
        }
        let types = cluster.type_ids().map(|kind| (self.of_type(cluster, kind), kind));
        types.reduce(first_largest).unwrap_or((0, TypeId(0)))
    }

    /// The node of type `kind` with most free accelerators, the lowest id of those.
    pub(super) fn emptiest(&self, cluster: &Cluster, kind: TypeId) -> NodeId {
        if cluster.types.len() <= 1 {
            // Two passes without branches are several times faster than one that carries the
            // position along.
            let most = self.nodes.iter().copied().fold(0, u32::max);
            return NodeId::at(self.nodes.iter().position(|&free| free == most).unwrap_or(0));
        }
        let of_type = (0..self.nodes.len()).filter(|&node| cluster.nodes[node].accelerator == kind);
        of_type
            .map(|node| (self.nodes[node], node))
            .reduce(first_largest)
            .map_or(NodeId(0), |(_, node)| NodeId::at(node))
    }

    /// Lets a packer of plain slices take `gpus`.
    pub(super) fn with_nodes<T>(&mut self, gpus: u32, take: impl FnOnce(&mut [u32]) -> Option<T>) -> Option<T> {
        let taken = take(&mut self.nodes)?;
        self.total -= gpus;
        Some(taken)
    }
}

fn first_largest<T>(best: (u32, T), next: (u32, T)) -> (u32, T) {
    if next.0 > best.0 { next } else { best }
}
