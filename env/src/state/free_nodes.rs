//! Free accelerators by node, and nodes by the number of their free accelerators.

use std::sync::Arc;

use smallvec::SmallVec;

use super::change_log::{Bookmark, ChangeLog};
use super::id_set::IdSet;
use crate::cluster::{Cluster, NodeId, TypeId};
use crate::placement::Placement;

/// Free accelerators by node. Nodes are kept in order of (type, free accelerators, id) as well, so a packer finds the
/// best node without a look at the others.
#[derive(Clone, Debug, Default)]
pub struct FreeNodes {
    by_node: Vec<u32>,
    /// Accelerator type by node.
    kinds: Arc<[TypeId]>,
    /// Free accelerators by type.
    by_kind: SmallVec<[u32; 4]>,
    /// Most accelerators of a node.
    most: u32,
    /// Nodes of which something is free, each under the number that [`Self::place`] gives it.
    order: IdSet,
    changes: ChangeLog<NodeId>,
}

/// Place of a reader in the changes of two lists: the one that it copies, and its copy.
#[derive(Clone, Debug, Default)]
pub struct Copied {
    original: Bookmark,
    copy: Bookmark,
}

/// Lists are equal where as much is free on equal nodes.
impl PartialEq for FreeNodes {
    fn eq(&self, other: &Self) -> bool {
        (&self.by_node, &self.kinds) == (&other.by_node, &other.kinds)
    }
}

impl FreeNodes {
    /// Nodes of a cluster with `free` accelerators each.
    pub fn new(cluster: &Cluster, free: &[u32]) -> Self {
        let most = cluster.nodes.iter().map(|node| node.gpus).chain(free.iter().copied()).max().unwrap_or(0);
        let (types, nodes) = (cluster.types.len(), cluster.nodes.len());
        let mut list = Self {
            by_node: vec![0; nodes],
            kinds: cluster.nodes.iter().map(|node| node.accelerator).collect(),
            by_kind: SmallVec::from_elem(0, types),
            most,
            order: IdSet::below(types * most as usize * nodes),
            changes: ChangeLog::with_room(nodes.max(64)),
        };
        list.set_all(free);
        list
    }

    /// Whether the list is one of the nodes of `cluster`, with room for all that they have.
    pub(crate) fn is_of(&self, cluster: &Cluster) -> bool {
        let alike =
            |(node, kind): (&crate::cluster::Node, &TypeId)| node.accelerator == *kind && node.gpus <= self.most;
        self.kinds.len() == cluster.nodes.len()
            && self.by_kind.len() == cluster.types.len()
            && cluster.nodes.iter().zip(&*self.kinds).all(alike)
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    /// Free accelerators by node.
    pub fn by_node(&self) -> &[u32] {
        &self.by_node
    }

    /// Free accelerators on `node`.
    #[inline]
    pub fn on(&self, node: NodeId) -> u32 {
        self.by_node[node.index()]
    }

    /// Free accelerators of type `kind`.
    pub fn of_type(&self, kind: TypeId) -> u32 {
        self.by_kind.get(kind.index()).copied().unwrap_or(0)
    }

    /// Free accelerators.
    pub fn total(&self) -> u32 {
        self.by_kind.iter().fold(0, |sum, free| sum.wrapping_add(*free))
    }

    /// Sets the number of free accelerators of `node`. A number above that of any node's accelerators, as wrapping
    /// numbers have for a moment, is kept but not found by a search.
    pub fn set(&mut self, node: NodeId, free: u32) {
        let before = std::mem::replace(&mut self.by_node[node.index()], free);
        if before == free {
            return;
        }
        let of_kind = &mut self.by_kind[self.kinds[node.index()].index()];
        *of_kind = of_kind.wrapping_sub(before).wrapping_add(free);
        if let Some(place) = self.place(node, before) {
            self.order.remove(place);
        }
        if let Some(place) = self.place(node, free) {
            self.order.insert(place);
        }
        self.changes.note(node);
    }

    /// Sets the numbers of free accelerators of all nodes.
    pub fn set_all(&mut self, free: &[u32]) {
        NodeId::first(self.by_node.len()).zip(free).for_each(|(node, &free)| self.set(node, free));
    }

    /// Takes `gpus` of the free accelerators of `node`.
    pub fn take(&mut self, node: NodeId, gpus: u32) {
        self.set(node, self.on(node).wrapping_sub(gpus));
    }

    /// Frees `gpus` accelerators of `node`.
    pub fn release(&mut self, node: NodeId, gpus: u32) {
        self.set(node, self.on(node).wrapping_add(gpus));
    }

    /// Makes this list equal to `original`. Only the nodes that have changed in either since the last time are looked
    /// at, where that is known.
    pub fn copy_from(&mut self, original: &Self, copied: &mut Copied) {
        let own: Option<SmallVec<[NodeId; 16]>> = self.changes.since(&mut copied.copy).map(SmallVec::from_slice);
        match (original.changes.since(&mut copied.original), own) {
            (Some(there), Some(here)) => {
                there.iter().chain(&here).for_each(|&node| self.set(node, original.on(node)));
            }
            _ => self.clone_from(original),
        }
        // What was set just now is no difference.
        self.changes.since(&mut copied.copy);
    }

    /// Number of a node in the order of (type, free accelerators, id); `None` where nothing is free.
    fn place(&self, node: NodeId, free: u32) -> Option<usize> {
        let kind = self.kinds[node.index()];
        (1..=self.most).contains(&free).then(|| self.first_place(kind, free) + node.index())
    }

    fn first_place(&self, kind: TypeId, free: u32) -> usize {
        (kind.index() * self.most as usize + free as usize - 1) * self.by_node.len()
    }

    fn node_at(&self, place: usize) -> NodeId {
        NodeId::at(place % self.by_node.len())
    }

    /// The node of type `kind` with the fewest free accelerators that are at least `gpus`, which is not zero; the
    /// lowest id of those.
    pub fn tightest(&self, kind: TypeId, gpus: u32) -> Option<NodeId> {
        if gpus > self.most {
            return None;
        }
        let place = self.order.next(self.first_place(kind, gpus))?;
        (place < self.first_place(kind, self.most + 1)).then(|| self.node_at(place))
    }

    /// The node of type `kind` with most free accelerators, the lowest id of those; `None` where nothing is free.
    pub fn emptiest(&self, kind: TypeId) -> Option<NodeId> {
        let last = self.order.prev(self.first_place(kind, self.most + 1))?;
        let first = last - last % self.by_node.len();
        (first >= self.first_place(kind, 1)).then(|| self.order.next(first)).flatten().map(|place| self.node_at(place))
    }

    /// Takes `gpus` accelerators of type `kind`, on as few nodes as possible, as
    /// [`pack`](crate::placement::pack()) takes them. Returns `None`, taking nothing, where they do not fit.
    pub fn pack(&mut self, kind: TypeId, gpus: u32) -> Option<Placement> {
        if self.of_type(kind) < gpus {
            return None;
        }
        let mut placement = Placement::none();
        let mut left = gpus;
        while left > 0 {
            // The last piece goes where it leaves the least behind.
            let node = self.tightest(kind, left).or_else(|| self.emptiest(kind))?;
            let here = self.on(node).min(left);
            self.take(node, here);
            placement.push(node, here);
            left -= here;
        }
        Some(placement)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::{AcceleratorType, Node};
    use crate::placement::pack;

    /// A step of a run: a node gets other free accelerators, or a number of a type is taken.
    #[derive(Clone, Debug)]
    enum Step {
        Set(usize, u32),
        Pack(u16, u32),
        Copy,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (any::<usize>(), 0_u32..9).prop_map(|(node, free)| Step::Set(node, free)),
            (0_u16..2, 0_u32..20).prop_map(|(kind, gpus)| Step::Pack(kind, gpus)),
            Just(Step::Copy),
        ];
        prop::collection::vec(step, 1..120)
    }

    proptest! {
        /// Every search equals a walk over all nodes, and a copy that follows equals its original.
        #[test]
        fn equals_a_walk_over_all_nodes(kinds in prop::collection::vec(0_u16..2, 1..90), walk in steps()) {
            let nodes = kinds.iter().map(|&kind| Node::new(TypeId(kind), 8)).collect();
            let cluster = Cluster { types: ["a", "b"].map(AcceleratorType::named).into(), nodes };
            let mut plain = vec![8; kinds.len()];
            let mut list = FreeNodes::new(&cluster, &plain);
            let (mut copy, mut copied) = (FreeNodes::default(), Copied::default());
            for step in walk {
                match step {
                    Step::Set(node, free) => {
                        let node = node % plain.len();
                        plain[node] = free;
                        list.set(NodeId::at(node), free);
                    }
                    Step::Pack(kind, gpus) => {
                        copy.copy_from(&list, &mut copied);
                        let expected = pack(&cluster, &mut plain, TypeId(kind), gpus);
                        // The copy goes its own way for once.
                        prop_assert_eq!(copy.pack(TypeId(kind), gpus), expected.clone());
                        prop_assert_eq!(copy.by_node(), &*plain);
                        prop_assert_eq!(list.pack(TypeId(kind), gpus), expected);
                    }
                    Step::Copy => {
                        copy.copy_from(&list, &mut copied);
                        prop_assert_eq!(copy.by_node(), &*plain);
                    }
                }
                prop_assert_eq!(list.by_node(), &*plain);
                prop_assert_eq!(list.total(), plain.iter().sum::<u32>());
                for kind in cluster.type_ids() {
                    let of_kind = || (0..plain.len()).filter(|&node| kinds[node] == kind.0);
                    prop_assert_eq!(list.of_type(kind), of_kind().map(|node| plain[node]).sum::<u32>());
                    let most = of_kind().max_by_key(|&node| (plain[node], std::cmp::Reverse(node)));
                    prop_assert_eq!(list.emptiest(kind), most.filter(|&node| plain[node] > 0).map(NodeId::at));
                }
            }
        }
    }
}
