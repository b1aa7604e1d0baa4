//! Snapshot of a cluster by an engine. Plain data: recorded snapshots are JSON files that `goodput
//! live replay` and tests read.

use goodput_env::cluster::Pool;
use goodput_env::job::JobSpec;
use goodput_env::model::BatchLimits;
use goodput_env::state::ObservedJob;
use serde::{Deserialize, Serialize};

use super::service::ServiceSeen;
use crate::job::SpeedMeasurement;

/// A moment of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterSnapshot {
    /// Grows by at least one from snapshot to snapshot of one engine.
    pub version: u64,
    /// The engine's clock, milliseconds; the Unix epoch for engines that run real machines.
    pub at_ms: i64,
    /// All nodes, in an order that does not change.
    pub nodes: Vec<NodeSeen>,
    /// All jobs that are not over and some that ended lately.
    pub jobs: Vec<JobSeen>,
    /// Inference services that the engine runs, with their replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceSeen>,
    /// Reports of jobs on their speed since the snapshot before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<SpeedReport>,
}

impl ClusterSnapshot {
    /// The snapshot with its nodes and services, and no jobs.
    #[must_use]
    pub fn without_jobs(&self) -> Self {
        let Self { version, at_ms, nodes, services, .. } = self;
        let (nodes, services) = (nodes.clone(), services.clone());
        Self { version: *version, at_ms: *at_ms, nodes, services, ..Self::default() }
    }
}

/// Report of a job on its speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeedReport {
    /// Key of the job.
    pub job: String,
    /// Name of the type of the accelerators it ran on.
    pub accelerator: String,
    /// Measurement of the report.
    pub measured: SpeedMeasurement,
}

/// Health of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeHealth {
    /// Jobs may start.
    #[default]
    Up,
    /// Running jobs stay, none starts.
    Drained,
    /// Not heard of for a while; its jobs may or may not run. None starts, none is given up.
    Suspect,
    /// The node is gone.
    Down,
}

/// Node of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSeen {
    /// Name of the node.
    pub name: String,
    /// Name of the type of its accelerators.
    pub accelerator: String,
    /// Accelerators in service.
    pub gpus: u32,
    /// Accelerators in service that are held by no job and no replica.
    pub free: u32,
    /// Pool of the node.
    #[serde(default)]
    pub pool: Pool,
    /// Whether the node is lent to training, or called back and not home yet.
    #[serde(default)]
    pub lent: bool,
    /// Times of the loan, where the engine knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loan: Option<LoanSeen>,
    /// Device memory of one accelerator, MiB, where the engine gives parts of accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Health of the node.
    #[serde(default)]
    pub health: NodeHealth,
    /// The engine's own words about its health.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Loan of a node of the inference pool to training. Times are milliseconds of the engine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoanSeen {
    /// Start of the loan.
    pub since_ms: i64,
    /// Side that lent the node, and that alone can call the node back.
    #[serde(default)]
    pub by: Lender,
    /// Call to come back, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<RecallSeen>,
}

/// Side that lent a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lender {
    /// The daemon, by an order to lend.
    #[default]
    Daemon,
    /// The users of the cluster: they started training jobs on the node.
    Users,
}

/// Call to a lent node to come back. Times are milliseconds of the engine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecallSeen {
    /// Time of the call.
    pub called_ms: i64,
    /// Time at which training jobs that are left on the node are evicted.
    pub deadline_ms: i64,
}

/// Phase of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobPhase {
    /// Waits, and starts only on an order.
    #[default]
    Held,
    /// An order was given; it starts as soon as the engine can.
    Released,
    /// The job holds accelerators.
    Running,
    /// Holds accelerators and is told to leave them.
    Stopping,
    /// Holds accelerators and stands still.
    Suspended,
    /// The job ended well.
    Done,
    /// Ended badly, and is not tried again.
    Failed,
    /// Taken back by its user or an administrator.
    Cancelled,
}

impl JobPhase {
    /// Whether a job in this phase never runs again.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }

    /// Whether a job in this phase holds accelerators.
    pub fn holds(self) -> bool {
        matches!(self, Self::Running | Self::Stopping | Self::Suspended)
    }
}

/// Accelerators of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnNode {
    /// Name of the node.
    pub node: String,
    /// Number of accelerators.
    pub gpus: u32,
    /// UUIDs or indices of the accelerators, where the engine tells them or is to obey.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accelerators: Vec<String>,
}

/// One start of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// 0 for the first start, one more for each further one.
    pub number: u32,
    /// Accelerators of the attempt.
    pub placement: Vec<OnNode>,
    /// Accelerators of which the attempt holds parts, by their numbers on the node, in the order of the parts; empty
    /// where it holds whole accelerators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<u16>,
    /// Start of the attempt, on the engine's clock, milliseconds.
    pub since_ms: i64,
}

/// Members of an attempt that grows and shrinks while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembersSeen {
    /// All members train together.
    Settled,
    /// Members join or leave.
    Changing,
}

/// Job of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSeen {
    /// Names the job for good: engines that use a number twice add the time of submission.
    pub key: String,
    /// Request of the user and work of the job; `request.submit` is on the engine's clock.
    pub spec: JobSpec,
    /// Name of the application it trains, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Name of the tenant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Owner of the job: the name of a user; empty where the engine does not know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Phase of the job.
    pub phase: JobPhase,
    /// Starts so far: the next attempt has this number. While it runs, the running one is `starts -
    /// 1`.
    pub starts: u32,
    /// The attempt that holds accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// Attempts that failed by themselves.
    #[serde(default)]
    pub failures: u32,
    /// An administrator holds it, or works on it by hand.
    #[serde(default)]
    pub hands_off: bool,
    /// The last attempt ended by itself or with its machine: no order and no person took it off its accelerators.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_itself: bool,
    /// Members of the attempt, where it grows and shrinks while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<MembersSeen>,
    /// Work done by the job's own word, in the unit of its kind of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// Number of completed epochs.
    #[serde(default)]
    pub epoch: u32,
    /// Batch sizes among which it chooses by itself; where `None`, it keeps to the one it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchLimits>,
    /// The past as the engine knows it; where `None`, the daemon
    /// records it from snapshot to snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Box<ObservedJob>>,
    /// The engine's own words, for `explain`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl JobSeen {
    /// A job that waits and has never started.
    pub fn held(key: impl Into<String>, spec: JobSpec) -> Self {
        Self {
            key: key.into(),
            spec,
            application: None,
            tenant: String::new(),
            owner: String::new(),
            phase: JobPhase::Held,
            starts: 0,
            attempt: None,
            failures: 0,
            hands_off: false,
            ended_itself: false,
            members: None,
            done: None,
            epoch: 0,
            batch: None,
            history: None,
            note: String::new(),
        }
    }
}
