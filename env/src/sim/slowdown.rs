//! Bounded slowdowns: the time of a job in the system over its run time.

use super::{JobRecord, Simulator};
use crate::job::JobId;
use crate::time::SimTime;

/// Run times below this count as this long, seconds, so that a job of a second does not rule a mean (Feitelson et al.,
/// JSSPP 1997).
const BOUND_SECS: f64 = 10.0;

fn relative(elapsed: SimTime, run_secs: f64) -> f64 {
    elapsed.as_secs_f64() / run_secs.max(BOUND_SECS)
}

impl JobRecord {
    /// Bounded slowdown of a job that is complete: its completion time over the wall time with accelerators, the latter
    /// taken as at least 10 s; at least 1.
    pub fn bounded_slowdown(&self) -> Option<f64> {
        Some(relative(self.jct()?, self.executed.as_secs_f64()).max(1.0))
    }

    /// As [`Self::bounded_slowdown`], of a job that left the system in any way.
    pub(super) fn slowdown_at_end(&self) -> f64 {
        self.left().map_or(0.0, |left| relative(left - self.submit, self.executed.as_secs_f64()).max(1.0))
    }
}

impl Simulator {
    /// Sum of the bounded slowdowns of the jobs that left the system, and of what those in it have come to so far.
    ///
    /// A job in the system counts its age over the time that it takes alone at its requested size, or over 10 s where
    /// that is longer. Once the job leaves, its true run time takes the place of that one. So the sum grows while jobs
    /// wait, and ends as the sum of the slowdowns. It costs work for each job in the system.
    pub fn bounded_slowdowns(&self) -> f64 {
        let (now, alone) = (self.state.now, self.state.scenario.alone_secs());
        let so_far = |job: JobId| {
            let secs = alone[job.index()]?;
            Some(relative(now - self.records.jobs[job.index()].submit, secs))
        };
        self.records.slowdowns + self.state.jobs.active().filter_map(so_far).sum::<f64>()
    }
}
