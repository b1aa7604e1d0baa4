//! State of a whole cluster.

use std::sync::Arc;

use super::{InstanceTable, JobTable, Loans, ServiceState, Trigger};
use crate::cluster::Cluster;
use crate::request::RequestId;
use crate::scenario::Scenario;
use crate::time::SimTime;

/// State of a cluster at one moment: all that a view of the cluster is made from.
#[derive(Clone, Debug)]
pub struct ClusterState {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) now: SimTime,
    /// Reasons why a decision is due.
    pub(crate) trigger: Trigger,
    pub(crate) jobs: JobTable,
    /// The machines as they are now: accelerators that have failed are missing.
    pub(crate) cluster: Arc<Cluster>,
    /// By node: failures that are not repaired; empty where no node ever fails.
    pub(crate) down: Vec<u32>,
    /// By node: accelerators that no job, no replica, and no instance that runs or is protected holds.
    pub(crate) idle: Vec<u32>,
    /// By node: accelerators that replicas hold; empty where there are no services.
    pub(crate) served: Vec<u32>,
    pub(crate) services: Vec<ServiceState>,
    pub(crate) loans: Loans,
    pub(crate) instances: InstanceTable,
    /// Inference requests that no instance answers yet, in order of (submission, id).
    pub(crate) waiting: Vec<RequestId>,
}
