//! Changes of the cluster, of the jobs and of their tenants.

use std::sync::Arc;

use goodput_env::cluster::{Cluster, TypeId};
use goodput_env::job::{Elasticity, Workload};
use goodput_env::tenant::{Group, Tenants};
use serde::Serialize;

/// Change of the cluster, of the jobs or of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterChange {
    /// All stays as it is.
    Nothing,
    /// One more node of an accelerator type, as large as the largest of it.
    OneMoreNode {
        /// Name of the type.
        accelerator: String,
    },
    /// Rigid jobs may run on half to twice the accelerators that they ask for, with a speed in proportion. This is an
    /// assumption: real jobs scale less well.
    ElasticJobs,
    /// A tenant has twice the weight.
    DoubleWeight {
        /// Name of the tenant.
        tenant: String,
    },
}

impl ClusterChange {
    /// Description for people.
    pub fn words(&self) -> String {
        match self {
            Self::Nothing => "as it is".into(),
            Self::OneMoreNode { accelerator } => format!("one more node of {accelerator}"),
            Self::ElasticJobs => "jobs on half to twice their accelerators, at a speed in proportion".into(),
            Self::DoubleWeight { tenant } => format!("twice the weight for {tenant}"),
        }
    }

    /// The cluster with the change.
    pub(super) fn cluster(&self, cluster: &Arc<Cluster>) -> Arc<Cluster> {
        let Self::OneMoreNode { accelerator } = self else { return cluster.clone() };
        let mut larger = Cluster::clone(cluster);
        let kind = larger.types.iter().position(|kind| kind.name == *accelerator).map(TypeId::at);
        let of_kind = larger.nodes.iter().filter(|node| Some(node.accelerator) == kind);
        if let Some(node) = of_kind.max_by_key(|node| node.gpus).cloned() {
            larger.nodes.push(node);
        }
        Arc::new(larger)
    }

    /// The jobs with the change.
    pub(super) fn workload(&self, workload: Arc<Workload>) -> Arc<Workload> {
        match self {
            Self::Nothing | Self::OneMoreNode { .. } => workload,
            Self::ElasticJobs => {
                let mut workload = Workload::clone(&workload);
                for job in &mut workload.jobs {
                    let gpus = job.request.gpus;
                    if job.request.elasticity == Elasticity::Rigid && job.request.share.is_none() {
                        job.request.elasticity = Elasticity::Elastic { min: gpus.div_ceil(2), max: 2 * gpus };
                    }
                }
                Arc::new(workload)
            }
            Self::DoubleWeight { tenant } => {
                let mut groups: Vec<Group> = workload.tenants.iter().cloned().collect();
                groups.iter_mut().filter(|group| group.name == *tenant).for_each(|group| group.weight_milli *= 2);
                match Tenants::new(groups, Vec::new(), Vec::new(), &[]) {
                    Ok(tenants) => Arc::new(Workload { tenants: Arc::new(tenants), ..(*workload).clone() }),
                    // The groups are those of a valid set with another weight.
                    Err(_) => workload,
                }
            }
        }
    }
}
