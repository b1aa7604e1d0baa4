//! Lines of the audit log that are there for the report.

use serde::{Deserialize, Serialize};

use crate::engine::JobPhase;

/// Starts and ends of jobs, and ends of attempts, in one cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobEvents {
    /// Jobs that hold accelerators for the first time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started: Vec<JobStarted>,
    /// Jobs that are over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<JobEnded>,
    /// Attempts that are over while their jobs are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<AttemptLeft>,
}

/// End of an attempt of a job that is to run again, and the reason that the engine gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptLeft {
    /// Key of the job.
    pub key: String,
    /// Number of the attempt, from 0.
    pub attempt: u32,
    /// Attempts of the job that failed by themselves so far.
    pub failures: u32,
    /// Words of the engine: how the attempt ended, and on which node.
    pub note: String,
    /// Time at which the attempt was seen to be over, milliseconds of the engine's clock.
    pub at_ms: i64,
}

/// First start of a job. Times are milliseconds of the engine's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobStarted {
    /// Key of the job.
    pub key: String,
    /// Name of the job.
    pub name: String,
    /// Tenant of the job.
    #[serde(default)]
    pub tenant: String,
    /// Accelerators that the job asked for.
    pub gpus: u32,
    /// Time of submission.
    pub submit_ms: i64,
    /// Time of the start.
    pub start_ms: i64,
}

/// End of a job. Times are milliseconds of the engine's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobEnded {
    /// Key of the job.
    pub key: String,
    /// Name of the job.
    pub name: String,
    /// Accelerators that the job asked for.
    pub gpus: u32,
    /// Time of submission.
    pub submit_ms: i64,
    /// Time at which the job was seen to be over.
    pub end_ms: i64,
    /// Phase in which the job ended.
    pub phase: JobPhase,
}

/// Counts of cycles and decisions since the line before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Time of the first cycle that is counted, milliseconds of the Unix epoch.
    pub since_ms: i64,
    /// Mode at the end.
    pub mode: String,
    /// Policy that is to decide.
    pub policy: String,
    /// Cycles, failed ones included.
    pub cycles: u64,
    /// Cycles that ended early: the engine, the journal or the audit log did not answer.
    pub failed: u64,
    /// Decisions of the policy and of the fallback.
    pub decisions: u64,
    /// Decisions of the fallback.
    pub of_fallback: u64,
}
