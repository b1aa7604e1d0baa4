//! Plan: the changes with which a policy answers a view.

use serde::{Deserialize, Serialize};

use crate::cluster::NodeId;
use crate::job::JobId;
use crate::placement::Placement;
use crate::request::Assign;
use crate::service::ServiceId;
use crate::time::SimTime;

/// A job's new placement; an empty one takes its accelerators away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Job that changes.
    pub job: JobId,
    /// Placement of the job from now on.
    pub placement: Placement,
    /// Another job that runs on the same accelerators at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<JobId>,
}

impl Change {
    /// Whether the placement is taken for this job: what two share is taken once, for the first of them.
    pub fn counts(&self) -> bool {
        self.partner.is_none_or(|partner| self.job < partner)
    }
}

/// Number of replicas of a service on one node from now on. New ones start cold; of those that are
/// too many, the newest finish what they work on and go. A replica that has begun to go does not
/// count and does not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Service that changes.
    pub service: ServiceId,
    /// Node of the replicas.
    pub node: NodeId,
    /// Number of replicas on the node from now on.
    pub replicas: u32,
}

/// A lent server is to come back to inference: at once where no training job is left on it after
/// the plan, else as soon as the last one leaves. Until then no job starts there; what still runs
/// there at the deadline is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reclaim {
    /// Server that is called back.
    pub node: NodeId,
    /// Time by which training jobs have to leave the server.
    pub deadline: SimTime,
}

/// The changes of one decision. Jobs, servers and services that are not named keep what they have.
/// All changes take effect at once: capacity is counted after every release, and a server lent or
/// given back by a plan is used by the same plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// At most one per job.
    pub changes: Vec<Change>,
    /// Whole servers of the inference pool that training may use from now on. No replica may be left on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lend: Vec<NodeId>,
    /// Lent servers that are to come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reclaim: Vec<Reclaim>,
    /// At most one per service and node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scale: Vec<Scale>,
    /// Inference requests that are answered from now on; each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assign: Vec<Assign>,
    /// Waiting jobs that are sent away; each once. A refused job leaves the system without having been done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refuse: Vec<JobId>,
}

impl Plan {
    /// Plan that changes nothing.
    pub fn keep() -> Self {
        Self::default()
    }

    /// Forgets all of it, and keeps the room.
    pub fn clear(&mut self) {
        let Self { changes, lend, reclaim, scale, assign, refuse } = self;
        changes.clear();
        lend.clear();
        reclaim.clear();
        scale.clear();
        assign.clear();
        refuse.clear();
    }

    /// Moves `job` to `placement`.
    pub fn set(&mut self, job: JobId, placement: Placement) {
        self.changes.push(Change { job, placement, partner: None });
    }

    /// Sends the waiting `job` away.
    pub fn refuse(&mut self, job: JobId) {
        self.refuse.push(job);
    }

    /// Gives `service` `replicas` replicas on `node`.
    pub fn scale(&mut self, service: ServiceId, node: NodeId, replicas: u32) {
        self.scale.push(Scale { service, node, replicas });
    }

    /// Lends `node` to training.
    pub fn lend(&mut self, node: NodeId) {
        self.lend.push(node);
    }

    /// Calls `node` back, at the latest by `deadline`.
    pub fn reclaim(&mut self, node: NodeId, deadline: SimTime) {
        self.reclaim.push(Reclaim { node, deadline });
    }

    /// Lets two jobs share `placement`: both run on all of it at once, which counts once. When one
    /// of them leaves, the other stays.
    pub fn share(&mut self, one: JobId, other: JobId, placement: Placement) {
        self.changes.push(Change { job: one, placement: placement.clone(), partner: Some(other) });
        self.changes.push(Change { job: other, placement, partner: Some(one) });
    }
}
