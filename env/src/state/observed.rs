//! A cluster as something other than a simulation saw it: what is needed, and no more, to show a
//! policy the same view.
//!
//! Everything that grows with time is settled at the moment of observation, so a view of
//! [`ClusterState`] answers every question with the same bits as the simulator that
//! [`Simulator::observed`] was asked of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    ClusterState, FreeNodes, InstanceTable, JobState, JobTable, Loan, Loans, Phase, Profile, Replica, ReplicaPhase,
    ServiceState, SharedCards, Trigger,
};
use crate::cluster::{Cluster, NodeId};
use crate::job::JobId;
use crate::model::BatchConfig;
use crate::placement::Placement;
use crate::scenario::Scenario;
use crate::service::ServiceId;
use crate::time::SimTime;

/// An active job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedJob {
    /// Id of the job in its workload.
    pub id: JobId,
    /// Phase of the job.
    pub phase: Phase,
    /// Accelerators that the job holds.
    pub placement: Placement,
    /// The job it shares its accelerators with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<JobId>,
    /// Batch size per replica and accumulation steps.
    pub batch: BatchConfig,
    /// Number of epochs that are complete.
    pub epoch: u32,
    /// Changes of placement after the first start.
    pub restarts: u32,
    /// First time it held accelerators.
    pub started: Option<SimTime>,
    /// Moment of the last change of the placement; the submission before that.
    pub changed: SimTime,
    /// Accelerator time held so far, GPU-milliseconds.
    pub attained_gpu_millis: i64,
    /// Wall time with accelerators so far.
    pub executed: SimTime,
    /// Wall time spent restarting so far.
    pub restarting: SimTime,
    /// Work done so far, in the job's unit.
    pub done: f64,
    /// Number of attempts that failed by themselves.
    pub failures: u32,
    /// Error of estimates of remaining work; 1 is exact.
    pub estimate_factor: f64,
    /// Measurements of the job's own agent.
    pub profile: Profile,
}

impl ObservedJob {
    /// A job that has just been submitted.
    pub fn submitted(id: JobId, now: SimTime) -> Self {
        Self {
            id,
            phase: Phase::Pending,
            placement: Placement::none(),
            partner: None,
            batch: BatchConfig::default(),
            epoch: 0,
            restarts: 0,
            started: None,
            changed: now,
            attained_gpu_millis: 0,
            executed: SimTime::ZERO,
            restarting: SimTime::ZERO,
            done: 0.0,
            failures: 0,
            estimate_factor: 1.0,
            profile: Profile::default(),
        }
    }
}

/// Inference service of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedService {
    /// Number of the service in the workload.
    pub id: ServiceId,
    /// Requests per second now, in thousandths.
    pub rate_milli: u32,
    /// Requests that wait because the replicas cannot keep up, micro-requests.
    pub backlog: u64,
    /// Replicas, oldest first.
    pub replicas: Vec<Replica>,
}

/// A cluster at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Moment of the observation.
    pub now: SimTime,
    /// Reasons why a decision is due.
    pub trigger: Trigger,
    /// The machines as they are now: what has failed is missing.
    pub cluster: Cluster,
    /// By node: failures that are not repaired; empty where no node ever fails.
    pub down: Vec<u32>,
    /// By node: accelerators that are free.
    pub idle: Vec<u32>,
    /// By node: where servers of the inference pool are; empty on a cluster without pools.
    pub loans: Vec<Loan>,
    /// Active jobs in ascending order of id.
    pub jobs: Vec<ObservedJob>,
    /// Services in ascending order of id. A service of the workload that is missing here has no
    /// replicas and no requests.
    pub services: Vec<ObservedService>,
}

/// Fault of an observation that does not fit its scenario.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ObservedError {
    /// A list by node does not have one entry per node.
    #[error("{what}: {found} entries for {nodes} nodes")]
    Nodes {
        /// Name of the list.
        what: &'static str,
        /// Number of entries of the list.
        found: usize,
        /// Nodes of the cluster.
        nodes: usize,
    },
    /// A job that the workload does not have, or not in ascending order.
    #[error("job {} is unknown to the workload, or out of order", .0.0)]
    Job(JobId),
    /// More accelerators are held on a node than it has, because a job has not left yet.
    #[error("more accelerators are held on node {node} than it has")]
    Overfull {
        /// Index of the node.
        node: NodeId,
    },
    /// A service that the workload does not have, or not in ascending order.
    #[error("service {} is unknown to the workload, or out of order", .0.0)]
    Service(ServiceId),
    /// A replica is on a node that does not exist.
    #[error("service {} has a replica on node {node}, which does not exist", .service.0)]
    Replica {
        /// Service of the replica.
        service: ServiceId,
        /// Number of the missing node.
        node: NodeId,
    },
    /// A job is on a node that does not exist.
    #[error("job {} is on node {node}, which does not exist", .job.0)]
    Node {
        /// Id of the job.
        job: JobId,
        /// Index of the node.
        node: NodeId,
    },
}

impl ClusterState {
    /// State of the cluster that `seen` was observed of. `generation` tells learned policies that
    /// what they remember of a job may be out of date: it differs from observation to observation.
    ///
    /// # Errors
    /// [`ObservedError`] where `seen` does not fit the scenario's workload.
    pub fn observed(scenario: Arc<Scenario>, seen: &Observed, generation: u32) -> Result<Self, ObservedError> {
        let nodes = seen.cluster.nodes.len();
        let lists =
            [("idle", seen.idle.len(), false), ("down", seen.down.len(), true), ("loans", seen.loans.len(), true)];
        for (what, found, may_be_empty) in lists {
            if found != nodes && !(may_be_empty && found == 0) {
                return Err(ObservedError::Nodes { what, found, nodes });
            }
        }
        let mut loans = Loans::new(&seen.cluster);
        if !seen.loans.is_empty() && !loans.by_node.is_empty() {
            loans.by_node.clone_from(&seen.loans);
        }
        let mut cards = SharedCards::default();
        let mut jobs = JobTable::new(scenario.workload.jobs.len());
        let mut last = None;
        for job in &seen.jobs {
            if job.id.index() >= scenario.workload.jobs.len() || last.is_some_and(|last| last >= job.id) {
                return Err(ObservedError::Job(job.id));
            }
            last = Some(job.id);
            let counts = job.partner.is_none_or(|partner| job.id < partner);
            for slice in job.placement.slices() {
                let held = loans.trained_on.get_mut(slice.node.index());
                let held = held.ok_or(ObservedError::Node { job: job.id, node: slice.node })?;
                *held += if counts { slice.gpus } else { 0 };
            }
            if let Some((node, share)) = job.placement.share() {
                let blank = scenario.options.sharing.blank(&seen.cluster, node);
                for (number, part) in share.parts() {
                    let opened = cards.join(node, number, job.id, part, blank).jobs.len() == 1;
                    // A card counts once, for the first of its jobs.
                    loans.trained_on[node.index()] -= u32::from(!opened);
                }
            }
            jobs.insert(JobState::observed(job, seen.now, generation));
        }
        let (services, served) = services(&scenario, seen)?;
        let instances = InstanceTable::new(scenario.workload.served.len(), nodes);
        let (cluster, down) = (seen.cluster.clone(), seen.down.clone());
        // A node may have lost what a job still holds there, and gets back what is being repaired.
        let given_back = seen.idle.iter().zip(&loans.trained_on).map(|(idle, held)| idle + held);
        let most = scenario.cluster.nodes.iter().map(|node| node.gpus).chain(given_back).max().unwrap_or(0);
        let idle = FreeNodes::with_room(&cluster, &seen.idle, most);
        if !loans.open.is_empty() {
            let free = |(node, &idle): (NodeId, &u32)| if loans.may_train(&cluster, node) { idle } else { 0 };
            let open: Vec<u32> = cluster.node_ids().zip(&seen.idle).map(free).collect();
            loans.open = FreeNodes::with_room(&cluster, &open, most);
        }
        Ok(Self {
            scenario,
            now: seen.now,
            trigger: seen.trigger,
            jobs,
            cluster: Arc::new(cluster),
            down,
            idle,
            cards,
            served,
            services,
            loans,
            instances,
            waiting: Vec::new(),
        })
    }
}

/// States of all services of the workload, and by node the accelerators that their replicas hold.
///
/// # Errors
/// [`ObservedError::Service`] and [`ObservedError::Replica`] where the observation does not fit
/// workload and cluster.
fn services(scenario: &Scenario, seen: &Observed) -> Result<(Vec<ServiceState>, Vec<u32>), ObservedError> {
    let known = &scenario.workload.services;
    let nodes = if known.is_empty() { 0 } else { seen.cluster.nodes.len() };
    let mut served = vec![0; nodes];
    let blank = |(index, service)| ServiceState::new(ServiceId(index as u32), service);
    let mut states: Vec<ServiceState> = known.iter().map(|service| &**service).enumerate().map(blank).collect();
    let mut last = None;
    for service in &seen.services {
        let Some(spec) = known.get(service.id.index()).filter(|_| last.is_none_or(|last| last < service.id)) else {
            return Err(ObservedError::Service(service.id));
        };
        last = Some(service.id);
        for replica in &service.replicas {
            let Some(held) = served.get_mut(replica.node.index()) else {
                return Err(ObservedError::Replica { service: service.id, node: replica.node });
            };
            *held += spec.gpus_per_replica;
        }
        states[service.id.index()] = ServiceState::observed(service, scenario, seen.now);
    }
    Ok((states, served))
}

impl ServiceState {
    /// State of a service as an observer reports it. Its counts of requests begin now.
    fn observed(seen: &ObservedService, scenario: &Scenario, now: SimTime) -> Self {
        let service = &scenario.workload.services[seen.id.index()];
        let mut state = Self::new(seen.id, service);
        (state.rate_milli, state.backlog, state.since) = (seen.rate_milli, seen.backlog, now);
        state.next_rate = service.rates.next_change(now);
        state.replicas.clone_from(&seen.replicas);
        for replica in &seen.replicas {
            let at = state.node_at(replica.node);
            state.held[at] += service.gpus_per_replica;
            if replica.phase == ReplicaPhase::Ready {
                state.add_ready(scenario, replica.node);
            }
        }
        state
    }

    /// Service as an observer of the state reports it.
    pub(crate) fn observe(&self) -> ObservedService {
        ObservedService {
            id: self.id,
            rate_milli: self.rate_milli,
            backlog: self.backlog,
            replicas: self.replicas.clone(),
        }
    }
}

impl JobState {
    pub(crate) fn observed(job: &ObservedJob, now: SimTime, generation: u32) -> Self {
        let mut state = Self::new(job.id, now, job.estimate_factor);
        state.phase = job.phase;
        state.placement = job.placement.clone();
        state.partner = job.partner;
        state.batch = job.batch;
        state.epoch = job.epoch;
        state.restarts = job.restarts;
        state.started = job.started;
        state.changed = job.changed;
        state.profile = job.profile.clone();
        state.attained = 100 * job.attained_gpu_millis;
        state.executed = job.executed;
        state.restarting = job.restarting;
        state.progress = job.done;
        state.generation = generation;
        state.saving.failures = job.failures;
        state
    }

    pub(crate) fn observe(&self, now: SimTime) -> ObservedJob {
        ObservedJob {
            id: self.id,
            phase: self.phase,
            placement: self.placement.clone(),
            partner: self.partner,
            batch: self.batch,
            epoch: self.epoch,
            restarts: self.restarts,
            started: self.started,
            changed: self.changed,
            attained_gpu_millis: self.attained_gpu_millis(now),
            executed: self.executed(now),
            restarting: self.restarting(now),
            done: self.done(now),
            failures: self.saving.failures,
            estimate_factor: self.estimate_factor,
            profile: self.profile.clone(),
        }
    }
}
