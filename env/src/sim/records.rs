//! Totals and records that a run keeps for its outcome.

use super::fragments::Fragments;
use super::ledger::Ledger;
use super::shared_use::SharedBooks;
use super::{AllocationChange, FaultRecord, JobRecord, PlacementChange};
use crate::job::{JobId, Work};
use crate::placement::Placement;
use crate::scenario::Scenario;
use crate::state::ClusterState;
use crate::time::SimTime;

/// Totals and records of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct RunRecords {
    /// By id of the job.
    pub jobs: Vec<JobRecord>,
    /// Changes of allocations in order of time, where the run logs them.
    pub allocations: Vec<AllocationChange>,
    /// Placements behind these changes.
    pub placements: Vec<PlacementChange>,
    /// Accelerator time of training by node and application.
    pub training: Ledger,
    pub fragments: Fragments,
    pub shared: SharedBooks,
    /// Jobs that have arrived and not left.
    pub in_system: u32,
    pub job_millis: i64,
    pub gpu_millis: i64,
    /// Sum of the bounded slowdowns of the jobs that left the system.
    pub slowdowns: f64,
    /// Accelerator time that completed jobs held without use.
    pub idle_gpu_millis: i64,
    /// Accelerators that jobs hold.
    pub held: u32,
    pub decisions: u64,
    pub events: u64,
}

impl RunRecords {
    /// Records of a run at time zero.
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
            refused: None,
        });
        Self {
            jobs: jobs.collect(),
            training: Ledger::new(scenario.cluster.nodes.len()),
            fragments: Fragments::new(scenario),
            ..Self::default()
        }
    }

    /// Adds `millis` from `state.now` on to the integrals over time.
    pub fn advance(&mut self, state: &ClusterState, millis: i64) {
        self.job_millis += i64::from(self.in_system) * millis;
        self.gpu_millis += i64::from(self.held) * millis;
        self.fragments.advance(state, millis);
        self.shared.advance(millis);
    }

    /// Enters what training takes (`sign` is 1) or leaves (-1).
    pub fn book(&mut self, state: &ClusterState, job: JobId, placement: &Placement, sign: i32) {
        let workload = &state.scenario.workload;
        let classes = workload.applications.len() as u16;
        let application = match workload.jobs[job.index()].work {
            Work::Application { index, .. } => index,
            Work::Steps { class, .. } => classes + class,
            Work::Fixed { .. } => classes + workload.classes.len() as u16,
        };
        self.training.enter(application, placement, sign, state.now);
    }

    /// Logs what a job holds from now on, where the run logs allocations.
    pub fn log(&mut self, state: &ClusterState, job: JobId, placement: &Placement) {
        if state.scenario.options.log_allocations {
            let change = AllocationChange { at: state.now, job, gpus: placement.gpus(), nodes: placement.nodes() };
            self.allocations.push(change);
            self.placements.push(PlacementChange { at: state.now, job, slices: placement.slices().into() });
        }
    }
}
