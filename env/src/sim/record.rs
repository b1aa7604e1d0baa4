//! What a run leaves behind: one row per job, and optionally each change of an allocation.

use serde::{Deserialize, Serialize};

use super::{LoanRecord, ServiceRecord, TrainingOnNode};
use crate::job::JobId;
use crate::time::SimTime;

/// The outcome of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// The job.
    pub job: JobId,
    /// Submission.
    pub submit: SimTime,
    /// First time it held accelerators.
    pub start: Option<SimTime>,
    /// Completion; `None` where the run was truncated first.
    pub finish: Option<SimTime>,
    /// Changes of its placement after the first that stopped it.
    pub restarts: u32,
    /// Accelerator time held, GPU-milliseconds.
    pub attained_gpu_millis: i64,
    /// Wall time during which accelerators were held.
    pub executed: SimTime,
    /// Wall time spent restarting while accelerators were held.
    pub restarting: SimTime,
}

impl JobRecord {
    /// Job completion time: from submission to completion.
    pub fn jct(&self) -> Option<SimTime> {
        Some(self.finish? - self.submit)
    }
}

/// A job's allocation from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationChange {
    /// When.
    pub at: SimTime,
    /// Whose.
    pub job: JobId,
    /// Accelerators held from now on.
    pub gpus: u32,
    /// Nodes they are on.
    pub nodes: u32,
}

/// Everything a finished run tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// One record per job of the workload, by id; jobs that never arrived before the horizon have neither start nor finish.
    pub jobs: Vec<JobRecord>,
    /// Allocation changes in time order, where they were logged.
    pub allocations: Vec<AllocationChange>,
    /// One record per service, by id.
    pub services: Vec<ServiceRecord>,
    /// Accelerator time of training by node, then application.
    pub training: Vec<TrainingOnNode>,
    /// What lending came to.
    pub loans: LoanRecord,
    /// When the run ended.
    pub end: SimTime,
    /// Whether the horizon cut it off.
    pub truncated: bool,
    /// Accelerator time held without use because a job restarted or grew, all jobs, GPU-milliseconds.
    pub idle_gpu_millis: i64,
    /// Decisions taken.
    pub decisions: u64,
    /// Events processed: arrivals, epoch ends, restart ends, completions.
    pub events: u64,
}
