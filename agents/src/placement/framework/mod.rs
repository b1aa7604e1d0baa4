//! The scheduling framework of kube-scheduler (KEP-624): one pod at a time through fixed extension
//! points, at which plugins decide.
//!
//! A pod is sorted into a queue ([`QueueSort`]), then passes PreFilter, Filter, Score (with
//! normalisation and weights), Reserve, Permit, PreBind, Bind and PostBind; PostFilter is asked
//! where no node is left, and Unreserve takes back what fails after Reserve. A [`Plugin`]
//! implements the points it cares about. A pod that Permit holds back keeps what is reserved for it
//! until it is allowed or its time is up.
//!
//! The pods of one job form a gang: [`plugins::Gang`] binds all of them or none.

pub mod plugins;
mod pod;
mod queue;
mod scheduler;

use std::cmp::Ordering;

use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;
use goodput_env::time::SimTime;

pub use pod::{Affinity, NodeInfo, Pod, PodId, Resident, Snapshot};
pub use queue::Queue;
pub use scheduler::{Framework, Scheduled};

/// The largest score of a plugin after normalisation.
pub const MAX_SCORE: i64 = 100;

/// The order in which pods are scheduled. There is exactly one.
pub trait QueueSort: Send {
    /// Less: `one` goes before `other`. Pods that are different must not be equal, so that the
    /// order never depends on the heap.
    fn compare(&self, one: &Pod, other: &Pod) -> Ordering;
}

/// Whether a pod can run on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filtered {
    /// The pod can run on the node.
    Fits,
    /// Not now; eviction might help.
    Unschedulable,
    /// Eviction would not help.
    Unresolvable,
}

/// Remedy of PostFilter for a pod that fits nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing can be done.
    None,
    /// Evicts these jobs; the pod is tried once more.
    Evict(Vec<JobId>),
    /// Gives up the pod's whole job: its waiting pods release what is reserved for them.
    RejectJob,
}

/// Verdict of Permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Go on to bind.
    Allow,
    /// Go on to bind, with every waiting pod of the same job.
    AllowJob,
    /// Hold what is reserved, for at most this long.
    Wait(SimTime),
    /// Give back what is reserved; the pod waits for another attempt.
    Reject,
}

/// A plugin: what it does at each extension point. The defaults do nothing.
#[expect(unused_variables, reason = "the defaults do nothing")]
pub trait Plugin: Send {
    /// Before any node is looked at; false: the pod fits nowhere now.
    fn pre_filter(&mut self, snapshot: &Snapshot, pod: &Pod) -> bool {
        true
    }

    /// Whether the pod can run on a node.
    fn filter(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Filtered {
        Filtered::Fits
    }

    /// Remedy for a pod that fits nowhere; `resolvable` are nodes on which eviction might help.
    fn post_filter(&mut self, snapshot: &Snapshot, pod: &Pod, resolvable: &[NodeId]) -> Remedy {
        Remedy::None
    }

    /// Score of a node: greater is better; `None`: this plugin does not score.
    fn score(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Option<i64> {
        None
    }

    /// Brings this plugin's scores of all feasible nodes to 0 to [`MAX_SCORE`].
    fn normalise(&self, scores: &mut [i64]) {}

    /// The pod is about to be put on the node; false: it must not.
    fn reserve(&mut self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> bool {
        true
    }

    /// Takes back a reservation, in reverse order of plugins.
    fn unreserve(&mut self, snapshot: &Snapshot, pod: &Pod, node: NodeId) {}

    /// Whether a reserved pod may be bound now.
    fn permit(&mut self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Permit {
        Permit::Allow
    }

    /// Just before binding; false: it must not be bound.
    fn pre_bind(&mut self, pod: &Pod, node: NodeId) -> bool {
        true
    }

    /// Binds the pod; true: it is bound and no other plugin is asked. Where no plugin binds the
    /// pod, the framework binds it.
    fn bind(&mut self, pod: &Pod, node: NodeId) -> bool {
        false
    }

    /// The pod is bound.
    fn post_bind(&mut self, pod: &Pod, node: NodeId) {}

    /// A job that ran was evicted from `node`.
    fn evicted(&mut self, snapshot: &Snapshot, resident: &Resident, node: NodeId) {}
}
