//! Measurements that the agents of an application's jobs share
//! ([`SimOptions::shared_profiles`](crate::scenario::SimOptions::shared_profiles)).
//!
//! As published (PolluxAgent), a job's agent starts from nothing, so that every job is doubled up
//! from one accelerator, with a restart each time. People submit the same model again and again.
//! With shared profiles a job is known to be as fast as others of its application were, from its
//! submission on, and may be given twice the accelerators that any of them was measured on. It
//! holds for every policy that goes by profiles.

use super::RunJobs;
use crate::job::{JobId, Work};
use crate::scenario::Scenario;
use crate::state::{ClusterState, Profile};

/// Shared measurements at the beginning: none, by application.
pub(super) fn empty(scenario: &Scenario) -> Vec<Profile> {
    let count = if scenario.options.shared_profiles { scenario.workload.applications.len() } else { 0 };
    vec![Profile::new(scenario.options.agent_fit); count]
}

impl RunJobs {
    /// Tells a job what others of its application have measured.
    pub fn know_what_others_measured(&self, state: &mut ClusterState, job: JobId) {
        let shared = application_of(&state.scenario, job).and_then(|index| self.shared.get(index));
        if let Some(shared) = shared {
            let state = state.jobs.state_mut(job);
            state.profile.know(shared);
            state.told += 1;
        }
    }

    /// Tells all jobs of its application what a job has measured.
    pub fn share_what_was_measured(&mut self, state: &mut ClusterState, job: JobId) {
        let application = application_of(&state.scenario, job);
        let Some(shared) = application.and_then(|index| self.shared.get_mut(index)) else { return };
        if shared.learn(&state.jobs.state(job).profile) {
            let alike = |id: &JobId| application_of(&state.scenario, *id) == application;
            let told: Vec<JobId> = state.jobs.active().filter(alike).collect();
            for id in told {
                self.know_what_others_measured(state, id);
                let state = state.jobs.state_mut(id);
                if !state.stale && state.is_allocated() {
                    state.stale = true;
                    self.stale.push(id);
                }
            }
        }
    }
}

fn application_of(scenario: &Scenario, job: JobId) -> Option<usize> {
    match scenario.workload.jobs[job.index()].work {
        Work::Application { index, .. } => Some(usize::from(index)),
        _ => None,
    }
}
