//! Messages between the daemon and an agent: JSON over HTTP/1.1.
//!
//! | call | body | answer |
//! |---|---|---|
//! | `GET /v1/node` | | [`NodeStatus`] |
//! | `GET /v1/attempts/{id}` | | [`AttemptStatus`] |
//! | `GET /v1/reports?since=N` | | [`ReportPage`] |
//! | `POST /v1/lease` | [`LeaderLease`] | [`Done`] |
//! | `POST /v1/attempts` | [`Start`] | [`AttemptStatus`] |
//! | `POST /v1/attempts/{id}/stop` | [`Stop`] | [`AttemptStatus`] |
//! | `POST /v1/attempts/{id}/members` | [`TellMembers`] | [`AttemptStatus`] |
//! | `POST /v1/attempts/{id}/checkpoint` | [`Term`] | [`AttemptStatus`] |
//! | `POST /v1/attempts/{id}/forget` | [`Term`] | [`Done`] |
//! | `POST /v1/accelerators/{uuid}/restore` | [`Term`] | [`Done`] |
//!
//! All of it may be said twice: starting what runs, stopping what stops and forgetting what is
//! forgotten change nothing.

use goodput_configs::live::name::JobName;
use goodput_configs::live::node_agent::Fencing;
use serde::{Deserialize, Serialize};

use crate::devices::DeviceHealth;
use crate::job::{AcceleratorGrant, EndCause, Exit, ExitMeaning, Fence, JobReport, Launch, MembersPlan};

/// A node as its agent sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Name of the node.
    pub name: JobName,
    /// The agent's clock, milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Monotonic clock of the agent, milliseconds since the machine started.
    pub boot_ms: i64,
    /// Start of this agent, milliseconds since the Unix epoch.
    pub agent_since_ms: i64,
    /// Highest term seen.
    pub term: u64,
    /// Name of the leader of that term; empty where it has not said it.
    #[serde(default)]
    pub leader: String,
    /// Time since that leader spoke to this agent, or since the agent started, milliseconds.
    #[serde(default)]
    pub leader_silent_ms: u64,
    /// Fate of jobs while the daemon is not heard of.
    pub fencing: Fencing,
    /// Accelerators, by index.
    pub accelerators: Vec<NodeAccelerator>,
    /// Whether the readings of accelerators are old: the driver does not answer.
    pub stale: bool,
    /// Trouble with the driver, if there is any: `stuck for 12 s`.
    pub trouble: Option<String>,
    /// Trouble with the disk of the agent: nothing is started while it takes no writes.
    #[serde(default)]
    pub disk: Option<String>,
    /// Records on the disk of the agent that cannot be used, with a remedy each.
    #[serde(default)]
    pub damaged: Vec<String>,
    /// Reason why jobs have no control groups; `None` where they have.
    #[serde(default)]
    pub uncontained: Option<String>,
    /// Whether attempts are kept to processors and memory that they were given.
    #[serde(default)]
    pub keeps_limits: bool,
    /// Whether jobs can be given parts of accelerators: the control daemon of CUDA MPS runs.
    #[serde(default)]
    pub gives_parts: bool,
    /// Sentence about a certificate of the node that ends soon.
    #[serde(default)]
    pub certificate: Option<String>,
    /// Time at which accelerators were last read.
    pub read_ms: i64,
    /// Attempts not forgotten, by name.
    pub attempts: Vec<AttemptStatus>,
}

/// Accelerator of a node, as its agent reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeAccelerator {
    /// UUID of the device, as the driver reports it.
    pub uuid: String,
    /// Type, such as `a100`.
    pub kind: String,
    /// Product name, as the driver reports it.
    pub product: String,
    /// Device memory, MiB.
    pub memory_mib: Option<u64>,
    /// Memory in use, MiB.
    pub memory_used_mib: Option<u64>,
    /// Utilisation of its compute, percent.
    pub compute_percent: Option<u32>,
    /// Health of the device: whether jobs may be given to the device.
    pub health: DeviceHealth,
    /// Processes that use it, as the driver says.
    pub processes: Vec<u32>,
}

/// An attempt on a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptStatus {
    /// Name of the attempt: `job.attempt`.
    pub id: String,
    /// Name of the job.
    pub job: JobName,
    /// Number of the attempt.
    pub attempt: u32,
    /// Fence of the attempt.
    pub fence: Fence,
    /// Grants that the attempt holds, or held.
    pub grants: Vec<AcceleratorGrant>,
    /// State of the attempt.
    pub state: AttemptState,
    /// Start of the attempt, milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// Whether the attempt has been silent for too long.
    pub stalled: bool,
    /// The newest report.
    pub report: Option<JobReport>,
    /// The newest hints of an AdaptDL job.
    pub hints: Option<serde_json::Value>,
    /// Version of the plan that a member of an elastic attempt was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<u64>,
}

/// State of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// The processes of the attempt run.
    Running,
    /// The attempt was told to stop.
    Stopping,
    /// The attempt ended, and none of its processes is left.
    Ended {
        /// Exit of the program.
        exit: Exit,
        /// Circumstances of the end.
        cause: EndCause,
        /// Meaning of the end for the job.
        meaning: ExitMeaning,
        /// Time at which the end was seen, milliseconds since the Unix epoch.
        at_ms: i64,
    },
}

/// Lease of the leader: its term, and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderLease {
    /// Number of the leadership; each new leader has a higher one.
    pub term: u64,
    /// Name of the leader, for people.
    pub leader: String,
    /// Clock of the agent when the leader last heard of it ([`NodeStatus::boot_ms`]). The lease
    /// counts from there, so that a call which arrives late does not make the lease longer.
    pub as_of_boot_ms: i64,
}

/// Order to start an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Term of the leader.
    pub term: u64,
    /// Time on the node's clock from which the order is void, milliseconds since the machine started; `None` where it
    /// never is. A connection that is cut keeps an order, and delivers it when the attempt is long over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void_boot_ms: Option<i64>,
    /// Program of the attempt, with its grants and its gang.
    pub launch: Launch,
}

/// Order to stop an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Term of the leader.
    pub term: u64,
    /// Milliseconds from SIGTERM to SIGKILL; `None`: what the job asked for.
    #[serde(default)]
    pub grace_ms: Option<u64>,
    /// Plan that a member of an elastic attempt is given before the signal, so that the member knows whether
    /// it leaves or the attempt ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<MembersPlan>,
}

/// Order that tells a member of an elastic attempt the plan for all members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TellMembers {
    /// Term of the leader.
    pub term: u64,
    /// Plan for the members.
    pub plan: MembersPlan,
}

/// Any other order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Term of the leader.
    pub term: u64,
}

/// Acknowledgement of a call that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Highest term seen.
    pub term: u64,
}

/// Reports kept since some point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportPage {
    /// Number of the first report of the next page.
    pub next: u64,
    /// The reports, oldest first.
    pub reports: Vec<StoredReport>,
}

/// A report that was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredReport {
    /// Of which job.
    pub job: JobName,
    /// Nodes of the attempt.
    pub nodes: u32,
    /// Accelerators of the attempt.
    pub world: u32,
    /// Arrival of the report, milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Report of the job.
    pub report: JobReport,
}

/// Refusal of a call, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// One word for programs: `old_term`, `unavailable`, ...
    pub code: String,
    /// For people: what is wrong and what to do.
    pub error: String,
}
