//! Points at which Shockwave's scheduler (uw-mad-dash/shockwave, `scheduler.py`) departs from Gavel's paper: in its
//! simulator, and on machines.
//!
//! Its simulator computes shares only when the counts of received time are reset, as Gavel's does; a job that has come
//! since then takes up accelerators without running on them. On machines shares are computed at once. There the jobs of
//! a round are chosen in the middle of the round before. A job that has just started has then received half a round at
//! that time, so it is often chosen again and keeps its accelerators.

use goodput_env::scenario::Information;
use goodput_env::view::JobView;

use super::artifact::makespan;
use super::departures::Departures;
use super::form::ClusterRun;
use super::instance::{GavelInstance, TimeShares};
use super::rounds::CombinationAccount;

/// Part of a round before its end at which the next round is chosen on machines.
const AHEAD: f64 = 0.5;

/// Form in which the simulator of Shockwave's artifact writes the program.
pub(super) struct ShockwaveSimulator;

impl Departures for ShockwaveSimulator {
    /// The cluster has one type, and nothing is left to shuffle.
    fn shuffle(&mut self, _types: &mut [goodput_env::cluster::TypeId]) {}

    fn makespan(&self, instance: &GavelInstance) -> Option<TimeShares> {
        makespan(instance)
    }

    fn allocates_at_resets_only(&self) -> bool {
        true
    }

    fn starts(&self, account: &CombinationAccount) -> bool {
        account.share.is_some()
    }

    fn information(&self, _of_objective: Information) -> Information {
        Information::Oracle
    }
}

/// Shockwave's scheduler on machines.
pub(super) struct ShockwaveCluster {
    run: ClusterRun,
}

impl ShockwaveCluster {
    /// The scheduler in a run with these properties.
    pub(super) fn new(run: ClusterRun) -> Self {
        Self { run }
    }
}

impl Departures for ShockwaveCluster {
    fn shuffle(&mut self, _types: &mut [goodput_env::cluster::TypeId]) {}

    fn steps_left(&self, job: &JobView<'_>) -> Option<f64> {
        let more = self.run.unexpected_end.get(job.id().index()).copied().unwrap_or(0.0);
        Some(job.remaining_work()? + more)
    }

    fn makespan(&self, instance: &GavelInstance) -> Option<TimeShares> {
        makespan(instance)
    }

    fn chooses_at(&self, end_secs: f64, round_secs: f64) -> Option<f64> {
        Some(end_secs - AHEAD * round_secs)
    }

    fn extension_secs(&self, leaving: usize) -> f64 {
        self.run.saving_secs * (leaving as f64).ln_1p()
    }

    fn information(&self, _of_objective: Information) -> Information {
        Information::Oracle
    }
}
