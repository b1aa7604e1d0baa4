//! What the framework sees: pods, and nodes with who runs on them.

use std::collections::BTreeMap;

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::JobId;
use goodput_env::model::sharing::{Card, ShareRequest};
use goodput_env::time::SimTime;

/// A pod of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodId {
    /// The job.
    pub job: JobId,
    /// Which of its pods.
    pub index: u32,
}

/// Where a pod may and would like to run, by labels of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// For each key, one of these values.
    pub required: BTreeMap<String, Vec<String>>,
    /// Worth this much each: (key, value, weight).
    pub preferred: Vec<(String, String, i64)>,
}

/// What is scheduled at once: a part of a job that runs on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub id: PodId,
    /// Pods of its job, itself included; they run all together or not at all.
    pub members: u32,
    /// Whose it is.
    pub tenant: u32,
    /// The higher the earlier.
    pub priority: i32,
    /// When it was created.
    pub created: SimTime,
    /// Whole accelerators.
    pub gpus: u32,
    /// Parts of accelerators.
    pub share: Option<ShareRequest>,
    /// Which nodes.
    pub affinity: Affinity,
}

/// A job, or the part of it on one node, that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The job.
    pub job: JobId,
    /// Whose it is.
    pub tenant: u32,
    /// Accelerators on this node.
    pub gpus: u32,
    /// Priority of the job.
    pub priority: i32,
    /// Since when it runs.
    pub since: SimTime,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeInfo {
    /// Accelerator type.
    pub kind: u16,
    /// Labels, `accelerator` among them.
    pub labels: BTreeMap<String, String>,
    /// Accelerators.
    pub gpus: u32,
    /// Of those, free and not reserved.
    pub free: u32,
    /// What runs here and can be evicted.
    pub residents: Vec<Resident>,
    /// Accelerators that are given in parts.
    pub cards: Vec<Card>,
}

/// The nodes as they are while pods are scheduled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Now.
    pub now: SimTime,
    /// By [`NodeId`].
    pub nodes: Vec<NodeInfo>,
}

impl Snapshot {
    /// Nodes of a cluster with these free accelerators, labelled by the name of their type, nobody on them yet.
    pub fn new(cluster: &Cluster, free: &[u32], now: SimTime) -> Self {
        let node = |(node, &free): (&goodput_env::cluster::Node, &u32)| {
            let kind = &cluster.types[usize::from(node.accelerator)].name;
            let labels = BTreeMap::from([("accelerator".to_string(), kind.clone())]);
            NodeInfo { kind: node.accelerator, labels, gpus: node.gpus, free, ..NodeInfo::default() }
        };
        Self { now, nodes: cluster.nodes.iter().zip(free).map(node).collect() }
    }

    /// One node.
    pub fn node(&self, node: NodeId) -> &NodeInfo {
        &self.nodes[node as usize]
    }

    /// Free accelerators of type `kind`.
    pub fn free_of(&self, kind: u16) -> u32 {
        self.nodes.iter().filter(|node| node.kind == kind).map(|node| node.free).sum()
    }

    /// Types of accelerators, ascending.
    pub fn kinds(&self) -> Vec<u16> {
        let mut kinds: Vec<u16> = self.nodes.iter().map(|node| node.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}
