//! Quotas of tenants, as ElasticQuota of kubernetes-sigs/scheduler-plugins: a tenant that has used
//! up its loans gets nothing more.

use goodput_env::cluster::NodeId;
use goodput_env::tenant::{QuotaTree, Usage};

use crate::placement::framework::{Filtered, Plugin, Pod, Resident, Snapshot};

/// Plugin of tenants' quotas.
#[derive(Clone, Debug)]
pub struct QuotaFit {
    tree: QuotaTree,
    usage: Usage,
}

impl QuotaFit {
    /// Over the quotas that hold now, with what runs on the snapshot's nodes counted.
    pub fn new(tree: QuotaTree, snapshot: &Snapshot) -> Self {
        let mut usage = Usage::default();
        usage.reset(&tree);
        for node in &snapshot.nodes {
            for of in node.residents.iter().filter(|of| (of.tenant as usize) < tree.tenants()) {
                tree.add(&mut usage, of.tenant as usize, node.kind, u64::from(of.gpus));
            }
        }
        Self { tree, usage }
    }

    fn knows(&self, tenant: u32) -> bool {
        (tenant as usize) < self.tree.tenants()
    }
}

impl Plugin for QuotaFit {
    fn filter(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Filtered {
        let (tenant, kind) = (pod.tenant as usize, snapshot.node(node).kind);
        let fits = self.knows(pod.tenant) && self.tree.available(&self.usage, tenant, kind) >= i64::from(pod.gpus);
        if fits { Filtered::Fits } else { Filtered::Unresolvable }
    }

    fn reserve(&mut self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> bool {
        let kind = snapshot.node(node).kind;
        self.tree.add(&mut self.usage, pod.tenant as usize, kind, u64::from(pod.gpus));
        true
    }

    fn unreserve(&mut self, snapshot: &Snapshot, pod: &Pod, node: NodeId) {
        let kind = snapshot.node(node).kind;
        self.tree.remove(&mut self.usage, pod.tenant as usize, kind, u64::from(pod.gpus));
    }

    fn evicted(&mut self, snapshot: &Snapshot, resident: &Resident, node: NodeId) {
        if self.knows(resident.tenant) {
            let kind = snapshot.node(node).kind;
            self.tree.remove(&mut self.usage, resident.tenant as usize, kind, u64::from(resident.gpus));
        }
    }
}
