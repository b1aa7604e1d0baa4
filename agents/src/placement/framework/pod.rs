//! Snapshot for the framework: pods, and nodes with the pods that run on them.

use std::collections::BTreeMap;

use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::model::sharing::{Card, ShareRequest};
use goodput_env::time::SimTime;

/// A pod of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodId {
    /// Job of the pod.
    pub job: JobId,
    /// Index among the pods of the job.
    pub index: u32,
}

/// Required and preferred nodes of a pod, by label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// For each key, one of these values.
    pub required: BTreeMap<String, Vec<String>>,
    /// Worth this much each: (key, value, weight).
    pub preferred: Vec<(String, String, i64)>,
}

/// Unit of scheduling: the part of a job that runs on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Name of the pod.
    pub id: PodId,
    /// Pods of its job, itself included; they run all together or not at all.
    pub members: u32,
    /// Tenant that owns the pod.
    pub tenant: u32,
    /// The higher the earlier.
    pub priority: i32,
    /// Time of creation.
    pub created: SimTime,
    /// Number of whole accelerators.
    pub gpus: u32,
    /// Parts of accelerators.
    pub share: Option<ShareRequest>,
    /// Required and preferred nodes.
    pub affinity: Affinity,
}

/// A job, or the part of it on one node, that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Job of the pod.
    pub job: JobId,
    /// Tenant that owns the pod.
    pub tenant: u32,
    /// Accelerators on this node.
    pub gpus: u32,
    /// Priority of the job.
    pub priority: i32,
    /// Since when it runs.
    pub since: SimTime,
}

/// Node of the snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeInfo {
    /// Name of the accelerator type.
    pub kind: TypeId,
    /// Labels, `accelerator` among them.
    pub labels: BTreeMap<String, String>,
    /// Number of accelerators.
    pub gpus: u32,
    /// Of those, free and not reserved.
    pub free: u32,
    /// Pods that run on the node and can be evicted.
    pub residents: Vec<Resident>,
    /// Accelerators that are given in parts.
    pub cards: Vec<Card>,
}

/// The nodes as they are while pods are scheduled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Time of the snapshot.
    pub now: SimTime,
    /// Nodes, indexed by [`NodeId`].
    pub nodes: Vec<NodeInfo>,
}

impl Snapshot {
    /// Nodes of a cluster with these free accelerators, labelled by the name of their type, without
    /// any pod yet.
    pub fn new(cluster: &Cluster, free: &[u32], now: SimTime) -> Self {
        let node = |(node, &free): (&goodput_env::cluster::Node, &u32)| {
            let kind = &cluster.types[node.accelerator.index()].name;
            let labels = BTreeMap::from([("accelerator".to_string(), kind.clone())]);
            NodeInfo { kind: node.accelerator, labels, gpus: node.gpus, free, ..NodeInfo::default() }
        };
        Self { now, nodes: cluster.nodes.iter().zip(free).map(node).collect() }
    }

    /// Node of the snapshot.
    pub fn node(&self, node: NodeId) -> &NodeInfo {
        &self.nodes[node.index()]
    }

    /// Free accelerators of type `kind`.
    pub fn free_of(&self, kind: TypeId) -> u32 {
        self.nodes.iter().filter(|node| node.kind == kind).map(|node| node.free).sum()
    }

    /// Types of accelerators, ascending.
    pub fn kinds(&self) -> Vec<TypeId> {
        let mut kinds: Vec<TypeId> = self.nodes.iter().map(|node| node.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}
