//! Jobs of a run, as far as their states do not tell.

use super::resize::last_left;
use crate::cluster::NodeId;
use crate::job::JobId;
use crate::placement::Placement;
use crate::scenario::Scenario;
use crate::state::Profile;
use crate::time::SimTime;

/// Jobs of a run, as far as their states do not tell.
#[derive(Clone, Debug, Default)]
pub(super) struct RunJobs {
    /// Jobs that have arrived are those below.
    pub arrived: usize,
    /// Accelerators that completed jobs hold until the next round. They still count for
    /// interference.
    pub holding: Vec<(JobId, Placement)>,
    /// Running jobs with a batch size that is to be chosen again at the next decision.
    pub stale: Vec<JobId>,
    /// By application, where jobs share what they measure; empty where they do not.
    pub shared: Vec<Profile>,
    /// By node: distributed jobs that have a part there.
    pub distributed: Vec<u32>,
    /// Nodes with cards that a job joined or left since speeds were last set.
    pub reshared: Vec<NodeId>,
    /// By node: when the last job that was told to leave accelerators there has left them. Empty
    /// where changes of size stop a job.
    pub drained: Vec<SimTime>,
}

impl RunJobs {
    /// Moment at which the next job arrives.
    pub fn next_arrival(&self, scenario: &Scenario) -> SimTime {
        scenario.workload.jobs.get(self.arrived).map_or(SimTime::NEVER, |job| job.request.submit)
    }

    /// Moment at which the last owners of all accelerators of `placement` have ended their
    /// iterations.
    pub fn ready_for(&self, placement: &Placement) -> SimTime {
        last_left(&self.drained, placement)
    }
}
