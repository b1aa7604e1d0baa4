//! From how many accelerators to exactly which: the packers that policies share.
//!
//! Published schedulers differ in their packer as much as in their order of jobs, and a profile
//! keyed by placement tells one from the other. So a policy names its packer, and a comparison can
//! hold it fixed.

mod elastic;
pub mod fractional;
pub mod framework;
mod free;
mod skew;
pub mod whole_nodes;
mod yarn;

pub use elastic::resize;
pub use free::Free;
pub use skew::{Consolidation, ModelTensors, Skew, TENSORS};
pub use yarn::Yarn;

use goodput_env::cluster::{Cluster, TypeId};
use goodput_env::placement::Placement;

/// Choice of nodes for a job. Lower node ids win ties. All accelerators of a job are of one type:
/// the one with most free accelerators, the first of those on ties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packer {
    /// Repeatedly everything needed from the node with most free accelerators (Pollux artifact,
    /// `tiresias.py` and `optimus.py`): a balanced cluster, at the price of a small job taking the
    /// place of a large one.
    #[default]
    MostFreeFirst,
    /// Best fit: the node with the fewest sufficient free accelerators; where there is none,
    /// everything from the emptiest node and again for the rest (DeepBoot, figure 7). No placement
    /// uses fewer nodes.
    FewestNodes,
}

impl Packer {
    /// Takes `gpus` accelerators out of `free`; `None`, and nothing taken, where no type has that
    /// many left.
    pub fn place(self, cluster: &Cluster, free: &mut Free, gpus: u32) -> Option<Placement> {
        let kind = free.roomiest_type(cluster, gpus)?;
        match self {
            Self::MostFreeFirst => most_free_first(free, kind, gpus),
            Self::FewestNodes => free.pack(kind, gpus),
        }
    }
}

impl Packer {
    /// Takes `most` accelerators, or as many of one type as there are; `None`, and nothing taken,
    /// where those are fewer than `least`. A job that can get no more than the `held` accelerators
    /// it had stays on them, where they are free: moving would gain nothing.
    pub fn place_most(
        self,
        cluster: &Cluster,
        free: &mut Free,
        held: &Placement,
        most: u32,
        least: u32,
    ) -> Option<Placement> {
        let gpus = most.min(free.most_of_one_type(cluster));
        if gpus < most && gpus <= held.gpus() && held.gpus() <= most && free.holds(held) {
            held.slices().iter().for_each(|slice| free.take(slice.node, slice.gpus));
            return Some(held.clone());
        }
        (gpus >= least.max(1)).then(|| self.place(cluster, free, gpus)).flatten()
    }
}

/// `gpus` must fit.
fn most_free_first(free: &mut Free, kind: TypeId, gpus: u32) -> Option<Placement> {
    let mut placement = Placement::none();
    let mut left = gpus;
    while left > 0 {
        let node = free.emptiest(kind)?;
        let here = free.on(node).min(left);
        free.take(node, here);
        placement.push(node, here);
        left -= here;
    }
    Some(placement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::cluster::{AcceleratorType, Node, NodeId};

    fn placed(packer: Packer, free: &[u32], gpus: u32) -> Option<Vec<(u32, u32)>> {
        let cluster = Cluster::homogeneous(free.len() as u32, 8);
        let mut working = Free::listed(&cluster, free);
        let placement = packer.place(&cluster, &mut working, gpus)?;
        assert_eq!(working.total() + gpus, free.iter().sum::<u32>());
        Some(placement.slices().iter().map(|slice| (slice.node.0, slice.gpus)).collect())
    }

    #[test]
    fn most_free_first_spreads_and_the_lowest_id_wins_ties() {
        assert_eq!(placed(Packer::MostFreeFirst, &[2, 4, 4], 1), Some(vec![(1, 1)]));
        assert_eq!(placed(Packer::MostFreeFirst, &[2, 4, 4], 9), Some(vec![(1, 4), (2, 4), (0, 1)]));
        assert_eq!(placed(Packer::MostFreeFirst, &[2, 4, 4], 11), None);
    }

    #[test]
    fn fewest_nodes_leaves_large_holes_alone() {
        assert_eq!(placed(Packer::FewestNodes, &[1, 2, 4], 1), Some(vec![(0, 1)]));
        assert_eq!(placed(Packer::FewestNodes, &[1, 2, 4], 2), Some(vec![(1, 2)]));
        assert_eq!(placed(Packer::FewestNodes, &[1, 2, 4], 5), Some(vec![(2, 4), (0, 1)]));
        assert_eq!(placed(Packer::FewestNodes, &[1, 2, 4], 8), None);
    }

    #[test]
    fn a_job_never_gets_two_types() {
        let types = ["a", "b"].map(AcceleratorType::named);
        let nodes = [(0, 4), (1, 4), (1, 4)].map(|(accelerator, gpus)| Node::new(TypeId(accelerator), gpus));
        let cluster = Cluster { types: types.into(), nodes: nodes.into() };
        for packer in [Packer::MostFreeFirst, Packer::FewestNodes] {
            let mut free = Free::listed(&cluster, &[4, 3, 2]);
            let first = packer.place(&cluster, &mut free, 5).unwrap();
            assert_eq!(first.slices().iter().map(|slice| slice.node.0).collect::<Vec<_>>(), [1, 2]);
            assert_eq!(packer.place(&cluster, &mut free, 5), None);
            assert_eq!(packer.place(&cluster, &mut free, 4), Some(Placement::on(NodeId(0), 4)));
            assert_eq!(free.total(), 0);
        }
    }
}
