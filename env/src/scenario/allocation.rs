//! Allocation of a cluster among its tenants: static or dynamic, with preemption or without.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, Pool};
use crate::job::Workload;

/// Way in which tenants share a cluster. Static: a tenant holds at most what it owns, which is its quota, or its
/// weighted part of the cluster where no tenant has a quota. Dynamic: idle quota is lent within cohorts, and all that
/// is idle where no tenant has a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// Static, and no running job is stopped for another.
    Static,
    /// Static, and a policy may stop running jobs for others by its own rules.
    StaticPreemptive,
    /// Dynamic, and no running job is stopped for another: what is lent comes back as jobs end.
    Dynamic,
    /// Dynamic, and a policy may stop running jobs for others by its own rules.
    DynamicPreemptive,
}

impl Allocation {
    /// All four, static before dynamic.
    pub const ALL: [Self; 4] = [Self::Static, Self::StaticPreemptive, Self::Dynamic, Self::DynamicPreemptive];

    /// Name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::StaticPreemptive => "static-preemptive",
            Self::Dynamic => "dynamic",
            Self::DynamicPreemptive => "dynamic-preemptive",
        }
    }

    /// Whether tenants use what others own and leave idle.
    pub fn lends(self) -> bool {
        matches!(self, Self::Dynamic | Self::DynamicPreemptive)
    }

    /// Whether a running job may lose all its accelerators to another job.
    pub fn preempts(self) -> bool {
        matches!(self, Self::StaticPreemptive | Self::DynamicPreemptive)
    }

    /// The workload with tenants that hold what this allocation lets them hold of `cluster`.
    pub(super) fn of_tenants(self, cluster: &Cluster, workload: Arc<Workload>) -> Arc<Workload> {
        if self.lends() || workload.tenants.is_empty() {
            return workload;
        }
        let mut capacity = vec![0; cluster.types.len()];
        for node in cluster.nodes.iter().filter(|node| node.pool != Pool::Inference) {
            capacity[node.accelerator.index()] += u64::from(node.gpus);
        }
        let mut divided = Workload::clone(&workload);
        divided.tenants = Arc::new(divided.tenants.partitioned(&capacity));
        Arc::new(divided)
    }
}
