//! A working copy of the free accelerators, which a policy spends while it plans.

use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::placement::Placement;
use goodput_env::state::{Copied, FreeNodes};
use goodput_env::view::ClusterView;

/// Free accelerators by node. Kept by a policy across decisions, so that planning allocates
/// nothing, and a decision copies only what has changed since the last one.
#[derive(Clone, Debug, Default)]
pub struct Free {
    nodes: FreeNodes,
    copied: Copied,
}

impl Free {
    /// Starts from what is free in a view.
    pub fn reset(&mut self, view: &ClusterView<'_>) {
        self.nodes.copy_from(view.free_nodes(), &mut self.copied);
    }

    /// Free accelerators by node, as `free` lists them.
    pub fn listed(cluster: &Cluster, free: &[u32]) -> Self {
        Self { nodes: FreeNodes::new(cluster, free), copied: Copied::default() }
    }

    /// Free accelerators in all nodes.
    pub fn total(&self) -> u32 {
        self.nodes.total()
    }

    /// Free accelerators on `node`.
    pub fn on(&self, node: NodeId) -> u32 {
        self.nodes.on(node)
    }

    /// Whether all of `placement` is free; it names each node once. Parts of cards are not: only whole ones count here.
    pub fn holds(&self, placement: &Placement) -> bool {
        placement.share().is_none() && placement.slices().iter().all(|slice| self.on(slice.node) >= slice.gpus)
    }

    /// Takes `gpus` of the free accelerators of `node`.
    pub fn take(&mut self, node: NodeId, gpus: u32) {
        self.nodes.take(node, gpus);
    }

    /// Frees what a job holds. A part of a card frees nothing, because other jobs may hold the rest of the card.
    pub fn release(&mut self, placement: &Placement) {
        if placement.share().is_none() {
            placement.slices().iter().for_each(|slice| self.nodes.release(slice.node, slice.gpus));
        }
    }

    /// Free accelerators of type `kind`.
    pub fn of_type(&self, kind: TypeId) -> u32 {
        self.nodes.of_type(kind)
    }

    /// Takes `gpus` of type `kind` on as few nodes as possible; `None`, and nothing taken, where
    /// there are not so many.
    pub fn pack(&mut self, kind: TypeId, gpus: u32) -> Option<Placement> {
        self.nodes.pack(kind, gpus)
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
        let types = cluster.type_ids().map(|kind| (self.of_type(kind), kind));
        types.reduce(first_largest).unwrap_or((0, TypeId(0)))
    }

    /// The node of type `kind` with most free accelerators, the lowest id of those; `None` where nothing is free.
    pub(super) fn emptiest(&self, kind: TypeId) -> Option<NodeId> {
        self.nodes.emptiest(kind)
    }
}

fn first_largest<T>(best: (u32, T), next: (u32, T)) -> (u32, T) {
    if next.0 > best.0 { next } else { best }
}
