//! Totals and records that a run keeps for its outcome.

use super::fragments::Fragments;
use super::ledger::Ledger;
use super::{AllocationChange, FaultRecord, JobRecord};
use crate::job::JobId;
use crate::scenario::Scenario;
use crate::state::ClusterState;
use crate::time::SimTime;

/// Totals and records of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    /// By id of the job.
    pub jobs: Vec<JobRecord>,
    /// Changes of allocations in order of time, where the run logs them.
    pub allocations: Vec<AllocationChange>,
    /// Accelerator time of training by node and application.
    pub training: Ledger,
    pub fragments: Fragments,
    /// Jobs that have arrived and not left.
    pub in_system: u32,
    pub job_millis: i64,
    pub gpu_millis: i64,
    /// Accelerator time that completed jobs held without use.
    pub idle_gpu_millis: i64,
    /// Accelerators that jobs hold.
    pub held: u32,
    pub decisions: u64,
    pub events: u64,
}

impl Records {
    /// Blank records.
    pub fn new(scenario: &Scenario) -> Self {
        let jobs = scenario.workload.jobs.iter().zip(0..).map(|(job, id)| JobRecord {
            job: JobId(id),
            submit: job.request.submit,
            start: None,
            finish: None,
            restarts: 0,
            attained_gpu_millis: 0,
            executed: SimTime::ZERO,
            restarting: SimTime::ZERO,
            faults: FaultRecord::default(),
        });
        Self {
            jobs: jobs.collect(),
            training: Ledger::new(scenario.cluster.nodes.len()),
            fragments: Fragments::new(scenario),
            ..Self::default()
        }
    }

    /// Time passes from `state.now` on.
    pub fn advance(&mut self, state: &ClusterState, millis: i64) {
        self.job_millis += i64::from(self.in_system) * millis;
        self.gpu_millis += i64::from(self.held) * millis;
        self.fragments.advance(state, millis);
    }
}
