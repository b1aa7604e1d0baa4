//! Number of jobs that have shared the cluster with a job since it came.

use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

/// Mean number of jobs in the system over each job's life.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    /// Job-milliseconds so far, as of `at`, with `active` jobs since then.
    area: i64,
    at: SimTime,
    active: i64,
    /// By id, `area` and time when the job was first seen.
    entered: Vec<Option<(i64, SimTime)>>,
}

impl Contention {
    /// Brings the means up to the time of `view`.
    pub fn update(&mut self, view: &ClusterView<'_>) {
        self.area += self.active * (view.now - self.at).as_millis();
        (self.at, self.active) = (view.now, view.active() as i64);
        self.entered.resize(view.workload_len(), None);
        // Jobs come in order of id, so the first one that is known ends those that are new.
        for job in view.jobs().rev() {
            let entered = &mut self.entered[job.id().index()];
            if entered.is_some() {
                break;
            }
            *entered = Some((self.area, view.now));
        }
    }

    /// Mean number of jobs since `job` came, itself included.
    pub fn mean(&self, job: &JobView<'_>) -> f64 {
        let (area, since) = self.entered[job.id().index()].unwrap_or((self.area, self.at));
        let span = (self.at - since).as_millis();
        if span > 0 { (self.area - area) as f64 / span as f64 } else { self.active as f64 }
    }
}
