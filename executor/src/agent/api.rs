//! What the daemon and an agent say to each other: JSON over HTTP/1.1.
//!
//! | call | body | answer |
//! |---|---|---|
//! | `GET /v1/node` | | [`NodeStatus`] |
//! | `GET /v1/attempts/{id}` | | [`AttemptStatus`] |
//! | `GET /v1/reports?since=N` | | [`ReportPage`] |
//! | `POST /v1/lease` | [`Lease`] | [`Done`] |
//! | `POST /v1/attempts` | [`Start`] | [`AttemptStatus`] |
//! | `POST /v1/attempts/{id}/stop` | [`Stop`] | [`AttemptStatus`] |
//! | `POST /v1/attempts/{id}/checkpoint` | [`Term`] | [`AttemptStatus`] |
//! | `POST /v1/attempts/{id}/forget` | [`Term`] | [`Done`] |
//! | `POST /v1/accelerators/{uuid}/restore` | [`Term`] | [`Done`] |
//!
//! All of it may be said twice: starting what runs, stopping what stops and forgetting what is forgotten change nothing.

use serde::{Deserialize, Serialize};

use super::config::Fencing;
use crate::devices::Health;
use crate::job::{Cause, Exit, Fence, Grant, JobName, Launch, Meaning, Report};

/// A node as its agent sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Name of the node.
    pub name: JobName,
    /// The agent's clock, milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The agent's clock that nobody can set, milliseconds since the machine started.
    pub boot_ms: i64,
    /// When this agent started.
    pub agent_since_ms: i64,
    /// Highest term seen.
    pub term: u64,
    /// What becomes of jobs when the daemon is not heard of.
    pub fencing: Fencing,
    /// Accelerators, by index.
    pub accelerators: Vec<Accelerator>,
    /// Whether the readings of accelerators are old: the driver does not answer.
    pub stale: bool,
    /// What is wrong with the driver, if anything: `stuck for 12 s`.
    pub trouble: Option<String>,
    /// When accelerators were last read.
    pub read_ms: i64,
    /// Attempts not forgotten, by name.
    pub attempts: Vec<AttemptStatus>,
}

/// An accelerator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accelerator {
    /// Its own name for itself.
    pub uuid: String,
    /// Type, such as `a100`.
    pub kind: String,
    /// Product name.
    pub product: String,
    /// Memory, MiB.
    pub memory_mib: Option<u64>,
    /// Memory in use, MiB.
    pub memory_used_mib: Option<u64>,
    /// Utilisation of its compute, percent.
    pub compute_percent: Option<u32>,
    /// Whether it may be given to jobs.
    pub health: Health,
    /// Processes that use it, as the driver says.
    pub processes: Vec<u32>,
}

/// An attempt on a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptStatus {
    /// `job.attempt`.
    pub id: String,
    /// Name of the job.
    pub job: JobName,
    /// Number of the attempt.
    pub attempt: u32,
    /// Its token.
    pub fence: Fence,
    /// What it holds, or held.
    pub grants: Vec<Grant>,
    /// What it is doing.
    pub state: AttemptState,
    /// When it started, milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// Whether it has been silent for too long.
    pub stalled: bool,
    /// The newest report.
    pub report: Option<Report>,
    /// The newest hints of an AdaptDL job.
    pub hints: Option<serde_json::Value>,
}

/// What an attempt is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// It runs.
    Running,
    /// It was told to stop.
    Stopping,
    /// It ended, and nothing of it is left.
    Ended {
        /// How.
        exit: Exit,
        /// What was going on.
        cause: Cause,
        /// What it means for the job.
        meaning: Meaning,
        /// When it was seen, milliseconds since the Unix epoch.
        at_ms: i64,
    },
}

/// Who leads, until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Number of the leadership; each new leader has a higher one.
    pub term: u64,
    /// Name of the leader, for people.
    pub leader: String,
    /// What the agent's clock showed when the leader last heard of it ([`NodeStatus::boot_ms`]): the lease counts from there, so that a call which arrives
    /// late makes nothing longer.
    pub as_of_boot_ms: i64,
}

/// A start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Term of the leader.
    pub term: u64,
    /// What to start.
    pub launch: Launch,
}

/// A stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Term of the leader.
    pub term: u64,
    /// Milliseconds from SIGTERM to SIGKILL; `None`: what the job asked for.
    #[serde(default)]
    pub grace_ms: Option<u64>,
}

/// Any other order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Term of the leader.
    pub term: u64,
}

/// It is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Highest term seen.
    pub term: u64,
}

/// Reports kept since some point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportPage {
    /// What to ask for next time.
    pub next: u64,
    /// The reports, oldest first.
    pub reports: Vec<Kept>,
}

/// A report that was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Of which job.
    pub job: JobName,
    /// Nodes of the attempt.
    pub nodes: u32,
    /// Accelerators of the attempt.
    pub world: u32,
    /// When it came, milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What it says.
    pub report: Report,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// One word for programs: `old_term`, `unavailable`, ...
    pub code: String,
    /// For people: what is wrong and what to do.
    pub error: String,
}
