//! Outcome of a run: one row per job, and optionally each change of an allocation.

use serde::{Deserialize, Serialize};

use super::{FragmentChange, LoanRecord, RentalRecord, ServingChange, SharedUse, TrainingOnNode};
use crate::job::JobId;
use crate::placement::Slice;
use crate::state::ServiceRecord;
use crate::time::SimTime;

/// The outcome of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Id of the job.
    pub job: JobId,
    /// Moment of submission.
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
    /// Effects of faults and checkpoints on the job.
    #[serde(default)]
    pub faults: FaultRecord,
    /// Moment at which the policy refused the job ([`crate::plan::Plan::refuse`]); it has no finish then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<SimTime>,
}

/// Effects of faults and checkpoints on one job. Accelerator time held divides without rest into
/// idle (restarting, growing), writing, lost and kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultRecord {
    /// Faults of the hardware under it.
    pub hits: u32,
    /// Attempts that failed by themselves.
    pub failures: u32,
    /// Moment at which the job was given up after too many failures; it has no finish then.
    pub failed: Option<SimTime>,
    /// Accelerator time held without use while it restarted or grew, GPU-milliseconds.
    pub idle_gpu_millis: i64,
    /// Accelerator time spent on checkpoints, GPU-milliseconds.
    pub writing_gpu_millis: i64,
    /// Accelerator time of work that a fault undid, GPU-milliseconds; all of it where the job
    /// failed for good.
    pub lost_gpu_millis: i64,
}

impl JobRecord {
    /// Job completion time: from submission to completion.
    pub fn jct(&self) -> Option<SimTime> {
        Some(self.finish? - self.submit)
    }

    /// Moment at which the job left the system: complete, given up, or refused.
    pub fn left(&self) -> Option<SimTime> {
        self.finish.or(self.faults.failed).or(self.refused)
    }

    /// Accelerator time held that made progress and was not undone, GPU-milliseconds.
    pub fn kept_gpu_millis(&self) -> i64 {
        let FaultRecord { idle_gpu_millis, writing_gpu_millis, lost_gpu_millis, .. } = self.faults;
        self.attained_gpu_millis - idle_gpu_millis - writing_gpu_millis - lost_gpu_millis
    }
}

/// A job's allocation from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationChange {
    /// Moment of the change.
    pub at: SimTime,
    /// Id of the job that holds the allocation.
    pub job: JobId,
    /// Accelerators held from now on.
    pub gpus: u32,
    /// Number of nodes that hold these accelerators.
    pub nodes: u32,
}

/// Placement of a job from a moment on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementChange {
    /// Moment of the change.
    pub at: SimTime,
    /// Id of the job that holds the placement.
    pub job: JobId,
    /// Nodes with the accelerators held on each from now on; none where the job holds nothing.
    pub slices: Box<[Slice]>,
}

/// Kind of the instance that took a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Served {
    /// Protected, so warm.
    Hit,
    /// Free, and still warm.
    Reused,
    /// Started for the request.
    Cold,
}

/// The outcome of one inference request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Moment of submission.
    pub submit: SimTime,
    /// Moment at which an instance took the request; a cold start follows.
    pub start: Option<SimTime>,
    /// Moment of the answer.
    pub finish: Option<SimTime>,
    /// Kind of instance that took the request; `None` where none did.
    pub served: Option<Served>,
}

impl RequestRecord {
    pub(super) fn new(submit: SimTime) -> Self {
        Self { submit, start: None, finish: None, served: None }
    }

    /// From submission to answer.
    pub fn latency(&self) -> Option<SimTime> {
        Some(self.finish? - self.submit)
    }
}

/// Instances from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceUsage {
    /// Moment of the change.
    pub at: SimTime,
    /// Instances that start or answer from now on.
    pub running: u32,
    /// Instances that are protected.
    pub protected: u32,
}

/// Everything a finished run tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// One record per job of the workload, by id; jobs that never arrived before the horizon have
    /// neither start nor finish.
    pub jobs: Vec<JobRecord>,
    /// Allocation changes in time order, where they were logged.
    pub allocations: Vec<AllocationChange>,
    /// Placements behind these changes, in time order, where allocations were logged.
    pub placements: Vec<PlacementChange>,
    /// One record per service, by id.
    pub services: Vec<ServiceRecord>,
    /// Changes of what replicas hold in time order, where they were logged.
    pub serving: Vec<ServingChange>,
    /// Accelerator time of training by node, then application.
    pub training: Vec<TrainingOnNode>,
    /// Totals of lending.
    pub loans: LoanRecord,
    /// End of the run.
    pub end: SimTime,
    /// Whether the horizon cut it off.
    pub truncated: bool,
    /// Accelerator time held without use because a job restarted or grew, all jobs,
    /// GPU-milliseconds.
    pub idle_gpu_millis: i64,
    /// Integral over time of free accelerators that the widest waiting job could not use,
    /// GPU-milliseconds.
    pub fragmented_gpu_millis: i64,
    /// Changes of their number in time order, where allocations were logged.
    pub fragments: Vec<FragmentChange>,
    /// Use of cards by jobs on parts of them; all zero where no job had a part.
    pub shared: SharedUse,
    /// One record per inference request of the workload, by id.
    pub requests: Vec<RequestRecord>,
    /// Instances over time, where allocations were logged.
    pub instance_usage: Vec<InstanceUsage>,
    /// Accelerator time of instances that ran, cold starts included, milliseconds.
    pub instance_run_millis: i64,
    /// Accelerator time of cold starts, milliseconds.
    pub instance_cold_millis: i64,
    /// Accelerator time of instances that were protected, milliseconds.
    pub instance_protect_millis: i64,
    /// Number of faults, and accelerator time out of service.
    pub hardware: HardwareRecord,
    /// Time of rented nodes.
    pub rental: RentalRecord,
    /// Number of decisions.
    pub decisions: u64,
    /// Events processed: arrivals, epoch ends, restart ends, completions.
    pub events: u64,
}

/// Faults of the hardware during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareRecord {
    /// Faults that took an accelerator.
    pub accelerators: u32,
    /// Faults that took a node.
    pub nodes: u32,
    /// Times a node's network was bad.
    pub networks: u32,
    /// Times the scheduler was away.
    pub schedulers: u32,
    /// Accelerator time out of service, GPU-milliseconds.
    pub out_gpu_millis: i64,
}
