//! Placement by the tensor sizes of the model (Tiresias, NSDI'19, section 3.3: "profile-based
//! placement").
//!
//! A parameter server that holds one tensor larger than all others together is a bottleneck when
//! gradients cross the network. So a model with such a tensor suffers, and a balanced one does
//! not. The *skew* of a model is its largest tensor over its size. Jobs above a threshold are placed on as few
//! nodes as an idle cluster would allow, or not at all. The paper lets other jobs go anywhere,
//! because they do not suffer. Where too few accelerators are free together, such jobs take the smallest
//! fragments first, which keeps whole nodes for the jobs that need them. No job is spread while it
//! would fit together: that helps no other job, and even a balanced model is seldom faster apart.
//! A model of unknown sizes may suffer, so its jobs are placed on the fewest nodes that are free.
//!
//! The public simulator has the tensor sizes but not the rule: the definition of skew and the
//! threshold are ours.

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::model::TensorSizes;
use goodput_env::placement::Placement;
use goodput_env::view::JobView;

use super::{Free, Packer};

/// Model of a trace, by its name, and the sizes of its tensors above 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelTensors {
    /// Name, as traces write it.
    pub name: &'static str,
    /// Sizes of the tensors.
    pub sizes: TensorSizes,
}

impl ModelTensors {
    const fn new(name: &'static str, largest_mib: f64, total_mib: f64) -> Self {
        Self { name, sizes: TensorSizes { largest_mib, total_mib } }
    }
}

/// The models of the Tiresias simulator, with the sums of its lists of tensors. For VGG, AlexNet
/// and ResNet they follow from the layer shapes (`agents/tests/tiresias.rs` works them out); the
/// Inception lists are taken as they are.
pub const TENSORS: [ModelTensors; 9] = [
    ModelTensors::new("vgg19", 392.0, 547.1),
    ModelTensors::new("vgg16", 392.0, 526.8),
    ModelTensors::new("vgg11", 392.0, 506.5),
    ModelTensors::new("alexnet", 144.0, 235.8),
    ModelTensors::new("resnet152", 9.0, 149.6),
    ModelTensors::new("resnet101", 9.0, 119.7),
    ModelTensors::new("resnet50", 9.0, 80.6),
    ModelTensors::new("inception4", 5.9, 132.8),
    ModelTensors::new("inception3", 7.8, 56.6),
];

/// Rule of Tiresias for placement by tensor skew.
#[derive(Clone, Debug, PartialEq)]
pub struct Skew {
    /// Models above this are kept together.
    pub threshold: f64,
    /// Models that are known by name alone.
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
    /// Jobs of the model run on as few nodes as the free accelerators allow.
    Preferred,
    /// Jobs of the model that do not fit together run on the smallest fragments.
    Optional,
}

impl Skew {
    /// Requirement of a job, by the model that its trace names, else by the application it trains.
    pub fn consolidation(&self, job: &JobView<'_>) -> Consolidation {
        self.of_model(job.model_name(), job.application().and_then(|application| application.tensors))
    }

    /// Requirement of the model of this name, or of one with these `sizes` where the name is unknown.
    pub fn of_model(&self, name: &str, sizes: Option<TensorSizes>) -> Consolidation {
        let by_name = self.tensors.iter().find(|known| known.name == name).map(|known| known.sizes);
        match by_name.or(sizes) {
            Some(sizes) if sizes.skew() > self.threshold => Consolidation::Required,
            Some(_) => Consolidation::Optional,
            None => Consolidation::Preferred,
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
        let placement = Packer::FewestNodes.place(cluster, free, gpus)?;
        if consolidation == Consolidation::Preferred || placement.nodes() <= fewest_nodes(cluster, &placement) {
            return Some(placement);
        }
        free.release(&placement);
        match consolidation {
            Consolidation::Optional => fragments_first(cluster, free, gpus),
            _ => None,
        }
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
        let mut working = Free::listed(&cluster, free);
        let rule = Skew::default();
        let placement = rule.place(&cluster, &mut working, gpus, rule.of_model(model, None));
        let taken = placement.as_ref().map_or(0, |placement| placement.gpus());
        assert_eq!(working.total() + taken, free.iter().sum::<u32>());
        Some(placement?.slices().iter().map(|slice| (slice.node.0, slice.gpus)).collect())
    }

    #[test]
    fn skewed_models_are_kept_together_and_others_fill_holes() {
        assert_eq!(placed(&[2, 1, 3, 4], 4, "vgg16"), Some(vec![(3, 4)]));
        assert_eq!(placed(&[2, 1, 3, 3], 4, "vgg16"), None, "nine are free, but no node has four");
        assert_eq!(placed(&[2, 1, 3, 3], 4, "resnet50"), Some(vec![(1, 1), (0, 2), (2, 1)]));
        assert_eq!(placed(&[2, 4, 1, 4], 6, "alexnet"), Some(vec![(1, 4), (0, 2)]));
        assert_eq!(placed(&[2, 3, 1, 3], 6, "alexnet"), Some(vec![(1, 3), (3, 3)]), "two nodes, as when idle");
        assert_eq!(placed(&[2, 2, 1, 3], 6, "alexnet"), None, "three nodes, and two would do when idle");
        assert_eq!(placed(&[2, 3, 1, 3], 10, "inception3"), None);
    }

    #[test]
    fn no_model_is_spread_while_it_fits_together() {
        // Smallest holes first, the wide job would hold three nodes while a whole one is idle.
        assert_eq!(placed(&[2, 1, 3, 4], 4, "resnet50"), Some(vec![(3, 4)]));
        assert_eq!(placed(&[3, 4], 4, "resnet50"), Some(vec![(1, 4)]));
    }

    #[test]
    fn an_unknown_model_is_kept_on_the_fewest_nodes_that_are_free() {
        assert_eq!(placed(&[3, 4], 4, "a model nobody knows"), Some(vec![(1, 4)]));
        assert_eq!(placed(&[2, 1, 3, 3], 4, "a model nobody knows"), Some(vec![(2, 3), (1, 1)]));
        let rule = Skew::default();
        let skewed = TensorSizes { largest_mib: 6.0, total_mib: 8.0 };
        assert_eq!(rule.of_model("a model nobody knows", Some(skewed)), Consolidation::Required);
        let balanced = TensorSizes { largest_mib: 2.0, total_mib: 8.0 };
        assert_eq!(rule.of_model("", Some(balanced)), Consolidation::Optional);
        assert_eq!(rule.of_model("vgg16", Some(balanced)), Consolidation::Required, "a trace names its own model");
    }
}
