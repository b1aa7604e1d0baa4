//! The quotas that a fair policy goes by: those of the run, and where it has none, what the
//! tenants' weights make of the cluster.

use std::collections::BTreeMap;

use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::tenant::{Group, Quota, QuotaTree};
use goodput_env::view::ClusterView;

/// Kept by a policy across decisions, so that a tree is made only when another tenant shows up.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    partitioned: bool,
    /// Made for this capacity by type.
    tree: Option<(Vec<u64>, QuotaTree)>,
}

impl Quotas {
    /// Without quotas, all tenants borrow from one cohort that owns the cluster.
    pub fn shared() -> Self {
        Self::default()
    }

    /// Without quotas, every declared tenant owns a part of each type in proportion to its weight
    /// and borrows nothing. Where none is declared, as [`Self::shared`].
    pub fn partitioned() -> Self {
        Self { partitioned: true, tree: None }
    }

    /// The quotas to go by now.
    pub fn tree<'a>(&'a mut self, view: &ClusterView<'a>) -> &'a QuotaTree {
        if let Some(tree) = view.quotas() {
            return tree;
        }
        let declared = view.tenants().len();
        // A job may belong to a tenant that the workload does not declare.
        let seen = view.jobs().map(|job| job.request().tenant as usize + 1).max().unwrap_or(0);
        let tenants = seen.max(declared).max(1);
        let capacity = capacity(view);
        // A tree of more tenants than there are jobs for serves as well.
        let known = self.tree.take().filter(|(of, tree)| *of == capacity && tree.tenants() >= tenants);
        let weights: Vec<u32> = (0..tenants as u32).map(|tenant| view.tenants().weight_milli(tenant)).collect();
        let (_, tree) = self.tree.insert(known.unwrap_or_else(|| {
            let owned =
                (self.partitioned && declared > 0).then(|| parts(view.cluster(), &weights, &capacity)).flatten();
            let tree = owned.unwrap_or_else(|| QuotaTree::shared(weights, &capacity));
            (capacity, tree)
        }));
        tree
    }
}

/// Accelerators that training may take, by type.
pub(crate) fn capacity(view: &ClusterView<'_>) -> Vec<u64> {
    let cluster = view.cluster();
    let mut capacity = vec![0; cluster.types.len()];
    for (id, node) in cluster.nodes.iter().enumerate() {
        if node.pool != Pool::Inference || view.lent(NodeId::at(id)) {
            capacity[node.accelerator.index()] += u64::from(node.gpus);
        }
    }
    capacity
}

/// Each tenant owns its part of every type.
fn parts(cluster: &Cluster, weights: &[u32], capacity: &[u64]) -> Option<QuotaTree> {
    let types: Vec<&str> = cluster.types.iter().map(|of| &*of.name).collect();
    let owned: Vec<Vec<u64>> = capacity.iter().map(|&whole| largest_remainder(weights, whole)).collect();
    let group = |tenant: usize| {
        let quota = |kind: usize| Quota { nominal: owned[kind][tenant], ..Quota::default() };
        let quotas: BTreeMap<String, Quota> =
            types.iter().enumerate().map(|(kind, name)| (name.to_string(), quota(kind))).collect();
        Group { quotas, ..Group::named(tenant.to_string()) }
    };
    let groups: Vec<Group> = (0..weights.len()).map(group).collect();
    QuotaTree::new(&groups, groups.len(), &types).ok()
}

/// `whole` in proportion to `weights`, in whole numbers that add up to it (Hamilton's method; lower
/// indices first on ties).
fn largest_remainder(weights: &[u32], whole: u64) -> Vec<u64> {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum::<u64>().max(1);
    let exact = |weight: u32| u64::from(weight) * whole;
    let mut parts: Vec<u64> = weights.iter().map(|&weight| exact(weight) / total).collect();
    let mut order: Vec<usize> = (0..weights.len()).filter(|&at| weights[at] > 0).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(exact(weights[at]) % total), at));
    let left = whole - parts.iter().sum::<u64>();
    for &at in order.iter().take(left as usize) {
        parts[at] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::largest_remainder;

    #[test]
    fn parts_add_up() {
        assert_eq!(largest_remainder(&[1000, 1000], 8), [4, 4]);
        assert_eq!(largest_remainder(&[1000, 1000, 1000], 8), [3, 3, 2]);
        assert_eq!(largest_remainder(&[3000, 1000, 0], 6), [5, 1, 0]);
        assert_eq!(largest_remainder(&[0, 0], 6), [0, 0]);
    }
}
