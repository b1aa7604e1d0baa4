//! Allocation of a cluster among its tenants: static or dynamic, with preemption or without.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, Pool};
use crate::tenant::Tenants;

/// Way in which tenants share a cluster. Static: a tenant holds at most what it owns, which is its quota, or its
/// weighted part of the cluster where no tenant has a quota. Dynamic: idle quota is lent within cohorts, and all that
/// is idle where no tenant has a quota.
///
/// An allocation without preemption cannot be had beside what stops jobs by itself: a reserve for key jobs, loans of
/// servers, and instances of inference models that take accelerators back from training.
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

    /// The allocation called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|allocation| allocation.name() == name)
    }

    /// Tenants that may hold what this allocation lets `tenants` hold of `cluster`.
    #[must_use]
    pub fn of_tenants(self, cluster: &Cluster, tenants: &Tenants) -> Tenants {
        if self.lends() || tenants.is_empty() {
            return tenants.clone();
        }
        let mut capacity = vec![0; cluster.types.len()];
        for node in cluster.nodes.iter().filter(|node| node.pool != Pool::Inference) {
            capacity[node.accelerator.index()] += u64::from(node.gpus);
        }
        tenants.partitioned(&capacity)
    }
}
