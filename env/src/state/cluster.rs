//! State of a whole cluster.

use std::sync::Arc;

use super::{FreeNodes, InstanceTable, JobTable, Loans, ServiceState, SharedCards, Trigger};
use crate::cluster::Cluster;
use crate::request::RequestId;
use crate::scenario::Scenario;
use crate::service::ServiceId;
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
    /// By node: reasons why it is out of service, which are failures that are not repaired, and that it is not rented;
    /// empty where nodes are there all the time.
    pub(crate) down: Vec<u32>,
    /// By node: accelerators that no job, no replica, and no instance that runs or is protected
    /// holds.
    pub(crate) idle: FreeNodes,
    /// Cards that jobs have shares of; they are not idle.
    pub(crate) cards: SharedCards,
    /// By node: accelerators that replicas hold; empty where there are no services.
    pub(crate) served: Vec<u32>,
    pub(crate) services: Vec<ServiceState>,
    pub(crate) loans: Loans,
    pub(crate) instances: InstanceTable,
    /// Inference requests that no instance answers yet, in order of (submission, id).
    pub(crate) waiting: Vec<RequestId>,
}

impl ClusterState {
    /// State at time zero, before anything has happened.
    pub(crate) fn new(scenario: Arc<Scenario>) -> Self {
        let (cluster, workload) = (&scenario.cluster, &scenario.workload);
        let nodes = cluster.nodes.len();
        let comes_and_goes = scenario.options.faults.is_some() || scenario.options.rental.is_some();
        let services = workload.services.iter().enumerate();
        let services: Vec<_> =
            services.map(|(index, service)| ServiceState::new(ServiceId(index as u32), service)).collect();
        Self {
            now: SimTime::ZERO,
            trigger: Trigger::default(),
            jobs: JobTable::new(workload.jobs.len()),
            cluster: cluster.clone(),
            down: vec![0; if comes_and_goes { nodes } else { 0 }],
            idle: FreeNodes::new(cluster, &cluster.nodes.iter().map(|node| node.gpus).collect::<Vec<_>>()),
            cards: SharedCards::default(),
            served: vec![0; if services.is_empty() { 0 } else { nodes }],
            services,
            loans: Loans::new(cluster),
            instances: InstanceTable::new(workload.served.len(), nodes),
            waiting: Vec::new(),
            scenario,
        }
    }

    /// The cluster with every node that it has, whether in service or not.
    pub fn installed(&self) -> &Cluster {
        &self.scenario.cluster
    }
}
