//! What an engine saw at one moment. Plain data: recorded snapshots are JSON files that `goodput live replay` and tests read.

use goodput_env::cluster::Pool;
use goodput_env::job::JobSpec;
use goodput_env::model::BatchLimits;
use goodput_env::state::ObservedJob;
use serde::{Deserialize, Serialize};

use crate::job::Measured;

/// A moment of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Grows by at least one from snapshot to snapshot of one engine.
    pub version: u64,
    /// The engine's clock, milliseconds; the Unix epoch for engines that run real machines.
    pub at_ms: i64,
    /// All nodes, in an order that does not change.
    pub nodes: Vec<NodeSeen>,
    /// All jobs that are not over and some that ended lately.
    pub jobs: Vec<JobSeen>,
    /// What jobs have said of their speed since the snapshot before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Said>,
}

/// What a job said of its speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// Key of the job.
    pub job: String,
    /// Name of the type of the accelerators it ran on.
    pub accelerator: String,
    /// What it said.
    pub measured: Measured,
}

/// What a node is good for.
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
    /// Gone.
    Down,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSeen {
    /// Its name.
    pub name: String,
    /// Name of the type of its accelerators.
    pub accelerator: String,
    /// Accelerators in service.
    pub gpus: u32,
    /// Of those: held by nobody.
    pub free: u32,
    /// What it is for.
    #[serde(default)]
    pub pool: Pool,
    /// Whether it is lent to training.
    #[serde(default)]
    pub lent: bool,
    /// What it is good for.
    #[serde(default)]
    pub health: NodeHealth,
    /// The engine's own words about its health.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What a job is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobPhase {
    /// Waits, and starts only on an order.
    #[default]
    Held,
    /// An order was given; it starts as soon as the engine can.
    Released,
    /// Holds accelerators.
    Running,
    /// Holds accelerators and is told to leave them.
    Stopping,
    /// Holds accelerators and stands still.
    Suspended,
    /// Ended well.
    Done,
    /// Ended badly, and is not tried again.
    Failed,
    /// Taken back by its user or an administrator.
    Cancelled,
}

impl JobPhase {
    /// Whether it never runs again.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }

    /// Whether it holds accelerators.
    pub fn holds(self) -> bool {
        matches!(self, Self::Running | Self::Stopping | Self::Suspended)
    }
}

/// Accelerators of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnNode {
    /// Name of the node.
    pub node: String,
    /// How many.
    pub gpus: u32,
    /// Which, by UUID or index, where the engine tells or is to obey.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accelerators: Vec<String>,
}

/// One start of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// 0 for the first start, one more for each further one.
    pub number: u32,
    /// Where it is.
    pub placement: Vec<OnNode>,
    /// When it began, on the engine's clock, milliseconds.
    pub since_ms: i64,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSeen {
    /// Names the job for good: engines that use a number twice add the time of submission.
    pub key: String,
    /// What was asked for and what there is to do; `request.submit` is on the engine's clock.
    pub spec: JobSpec,
    /// Name of the application it trains, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Name of the tenant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// What it is doing.
    pub phase: JobPhase,
    /// Starts so far: the next attempt has this number. While it runs, the running one is `starts - 1`.
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
    /// What the job says of itself: work done in the unit of its kind of work, and epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// Completed epochs.
    #[serde(default)]
    pub epoch: u32,
    /// Batch sizes among which it chooses by itself; where `None`, it keeps to the one it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchLimits>,
    /// The past as the engine knows it; where `None`, the daemon keeps books.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Box<History>>,
    /// The engine's own words, for `explain`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// The past and present of a job in the terms of the environment.
pub type History = ObservedJob;
