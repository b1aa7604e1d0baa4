//! Configurations: sizes that a job may get, powers of two within a node, then whole nodes (Sia,
//! section 3.3). They are few enough for one variable each, and jobs of these sizes always fit
//! their nodes without being split.

use goodput_env::cluster::{Cluster, TypeId};

/// Sizes on one type of accelerator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeSizes {
    /// Number of accelerators of a node.
    pub per_node: u32,
    /// Number of accelerators of all nodes.
    pub total: u32,
    /// Sizes that a job may get, ascending.
    pub sizes: Vec<u32>,
}

impl TypeSizes {
    /// Number of nodes that `gpus` accelerators take.
    pub fn nodes(&self, gpus: u32) -> u32 {
        gpus.div_ceil(self.per_node)
    }
}

/// Sizes by accelerator type of `cluster`.
pub fn sizes(cluster: &Cluster) -> Vec<TypeSizes> {
    TypeId::first(cluster.types.len().max(1)).map(|kind| sizes_of(cluster, kind)).collect()
}

fn sizes_of(cluster: &Cluster, kind: TypeId) -> TypeSizes {
    let per_node = cluster.gpus_per_node_of(kind);
    let of_type = || cluster.nodes.iter().filter(|node| node.accelerator == kind);
    let whole = of_type().filter(|node| node.gpus == per_node).count() as u32;
    let within = std::iter::successors(Some(1), |gpus| Some(gpus * 2)).take_while(|&gpus| gpus < per_node);
    let sizes = within.chain((1..=whole).map(|nodes| nodes * per_node)).collect();
    TypeSizes { per_node, total: of_type().map(|node| node.gpus).sum(), sizes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_in_a_node_then_whole_nodes() {
        assert_eq!(sizes(&Cluster::homogeneous(3, 4))[0].sizes, [1, 2, 4, 8, 12]);
        assert_eq!(sizes(&Cluster::homogeneous(3, 8))[0].sizes, [1, 2, 4, 8, 16, 24]);
        assert_eq!(sizes(&Cluster::homogeneous(2, 6))[0].sizes, [1, 2, 4, 6, 12]);
        assert_eq!(sizes(&Cluster::homogeneous(1, 1))[0].sizes, [1]);
    }
}
