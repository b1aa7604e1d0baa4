//! The quotas that a fair policy goes by: those of the run, and where it has none, what the
//! tenants' weights make of the cluster.

use goodput_env::cluster::{NodeId, Pool};
use goodput_env::tenant::QuotaTree;
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
            let tree = match self.partitioned && declared > 0 {
                true => QuotaTree::partitioned(&weights, &capacity),
                false => QuotaTree::shared(weights, &capacity),
            };
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
