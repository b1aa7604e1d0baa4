//! Placement by the tensor sizes of the model (Tiresias, NSDI'19, section 3.3: "profile-based
//! placement").
//!
//! A parameter server that holds one tensor larger than all others together is a bottleneck when
//! gradients cross the network, so a model with such a tensor suffers where a balanced one does
//! not. Its *skew* is its largest tensor over its size. Jobs above a threshold are placed on as few
//! nodes as any cluster state allows, or not at all; others take any free accelerators, the
//! smallest fragments first, which keeps whole nodes for those that need them. The public simulator
//! has the tensor sizes but not the rule: the definition of skew and the threshold are ours.

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::placement::Placement;

use super::{Free, Packer};

/// Tensor sizes of a model in 32-bit floats, those above 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelTensors {
    /// Name, as traces write it.
    pub name: &'static str,
    /// Largest tensor, MiB.
    pub largest_mib: f64,
    /// Sum over all, MiB.
    pub total_mib: f64,
}

impl ModelTensors {
    /// Largest tensor over all, in (0, 1].
    pub fn skew(&self) -> f64 {
        self.largest_mib / self.total_mib
    }
}

/// The models of the Tiresias simulator, with the sums of its lists of tensors. For VGG, AlexNet
/// and ResNet they follow from the layer shapes (`agents/tests/tiresias.rs` works them out); the
/// Inception lists are taken as they are.
pub const TENSORS: [ModelTensors; 9] = [
    ModelTensors { name: "vgg19", largest_mib: 392.0, total_mib: 547.1 },
    ModelTensors { name: "vgg16", largest_mib: 392.0, total_mib: 526.8 },
    ModelTensors { name: "vgg11", largest_mib: 392.0, total_mib: 506.5 },
    ModelTensors { name: "alexnet", largest_mib: 144.0, total_mib: 235.8 },
    ModelTensors { name: "resnet152", largest_mib: 9.0, total_mib: 149.6 },
    ModelTensors { name: "resnet101", largest_mib: 9.0, total_mib: 119.7 },
    ModelTensors { name: "resnet50", largest_mib: 9.0, total_mib: 80.6 },
    ModelTensors { name: "inception4", largest_mib: 5.9, total_mib: 132.8 },
    ModelTensors { name: "inception3", largest_mib: 7.8, total_mib: 56.6 },
];

/// Rule of Tiresias for placement by tensor skew.
#[derive(Clone, Debug, PartialEq)]
pub struct Skew {
    /// Models above this are kept together.
    pub threshold: f64,
    /// Known models; others count as balanced.
    pub tensors: Vec<ModelTensors>,
}

impl Default for Skew {
    /// The table above and one half, between the families: VGG and AlexNet are above 0.6, the
    /// others below 0.14.
    fn default() -> Self {
        Self { threshold: 0.5, tensors: TENSORS.to_vec() }
    }
}

/// Requirement of a model on the number of nodes of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consolidation {
    /// Jobs of the model run on as few nodes as an idle cluster would allow, or not at all.
    Required,
    /// Jobs of the model run on any free accelerators.
    Optional,
}

impl Skew {
    /// Requirement of this model: consolidation where one tensor outweighs the others.
    pub fn consolidation(&self, model: &str) -> Consolidation {
        match self.tensors.iter().any(|known| known.name == model && known.skew() > self.threshold) {
            true => Consolidation::Required,
            false => Consolidation::Optional,
        }
    }

    /// Takes `gpus` accelerators out of `free`; `None`, and nothing taken, where there are too few,
    /// or too scattered for a job that needs consolidation.
    pub fn place(
        &self,
        cluster: &Cluster,
        free: &mut Free,
        gpus: u32,
        consolidation: Consolidation,
    ) -> Option<Placement> {
        if consolidation == Consolidation::Optional {
            return fragments_first(cluster, free, gpus);
        }
        let placement = Packer::FewestNodes.place(cluster, free, gpus)?;
        if placement.nodes() <= fewest_nodes(cluster, &placement) {
            return Some(placement);
        }
        free.release(&placement);
        None
    }
}

/// Nodes that this many accelerators of that type take on an idle cluster.
fn fewest_nodes(cluster: &Cluster, placement: &Placement) -> u32 {
    let kind = placement.slices().first().map(|slice| cluster.type_of(slice.node));
    let mut sizes: Vec<u32> =
        cluster.nodes.iter().filter(|node| Some(node.accelerator) == kind).map(|node| node.gpus).collect();
    // The largest nodes first gives the fewest.
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut left = placement.gpus();
    let full = sizes.into_iter().take_while(|size| {
        let needed = left > 0;
        left = left.saturating_sub(*size);
        needed
    });
    full.count() as u32
}

fn fragments_first(cluster: &Cluster, free: &mut Free, gpus: u32) -> Option<Placement> {
    let kind = free.roomiest_type(cluster, gpus)?;
    let of_kind = |node: &NodeId| cluster.type_of(*node) == kind && free.on(*node) > 0;
    let mut nodes: Vec<NodeId> = cluster.node_ids().filter(of_kind).collect();
    // The sort is stable, so lower ids come first among equal fragments.
    nodes.sort_by_key(|&node| free.on(node));
    let mut left = gpus;
    let mut placement = Placement::none();
    for node in nodes {
        let here = free.on(node).min(left);
        if here > 0 {
            free.take(node, here);
            placement.push(node, here);
            left -= here;
        }
    }
    Some(placement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(free: &[u32], gpus: u32, model: &str) -> Option<Vec<(u32, u32)>> {
        let cluster = Cluster::homogeneous(free.len() as u32, 4);
        let mut working = Free::default();
        working.reset(free);
        let rule = Skew::default();
        let placement = rule.place(&cluster, &mut working, gpus, rule.consolidation(model));
        let taken = placement.as_ref().map_or(0, |placement| placement.gpus());
        assert_eq!(working.total() + taken, free.iter().sum::<u32>());
        Some(placement?.slices().iter().map(|slice| (slice.node.0, slice.gpus)).collect())
    }

    #[test]
    fn skewed_models_are_kept_together_and_others_fill_holes() {
        assert_eq!(placed(&[2, 1, 3, 4], 4, "vgg16"), Some(vec![(3, 4)]));
        assert_eq!(placed(&[2, 1, 3, 3], 4, "vgg16"), None, "nine are free, but no node has four");
        assert_eq!(placed(&[2, 1, 3, 3], 4, "resnet50"), Some(vec![(1, 1), (0, 2), (2, 1)]));
        assert_eq!(placed(&[2, 1, 3, 4], 4, "resnet50"), Some(vec![(1, 1), (0, 2), (2, 1)]));
        assert_eq!(placed(&[2, 4, 1, 4], 6, "alexnet"), Some(vec![(1, 4), (0, 2)]));
        assert_eq!(placed(&[2, 3, 1, 3], 6, "alexnet"), Some(vec![(1, 3), (3, 3)]), "two nodes, as when idle");
        assert_eq!(placed(&[2, 2, 1, 3], 6, "alexnet"), None, "three nodes, and two would do when idle");
        assert_eq!(placed(&[2, 3, 1, 3], 10, "inception3"), None);
        assert_eq!(Skew::default().consolidation("a model nobody knows"), Consolidation::Optional);
    }
}
