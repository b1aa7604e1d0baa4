//! Observation of a simulated cluster.

use super::Simulator;
use crate::job::JobId;
use crate::state::{Observed, Phase, ServiceState};
use crate::time::SimTime;

impl Simulator {
    /// Observation of this cluster at the present moment. Single requests are not part of it.
    pub fn observed(&self) -> Observed {
        Observed {
            now: self.state.now,
            trigger: self.requests.trigger(&self.state),
            cluster: (*self.state.cluster).clone(),
            down: self.state.down.clone(),
            idle: self.state.idle.by_node().to_vec(),
            loans: self.state.loans.by_node.clone(),
            jobs: self.state.jobs.active().map(|id| self.state.jobs.state(id).observe(self.state.now)).collect(),
            services: self.state.services.iter().map(ServiceState::observe).collect(),
        }
    }

    /// End of a job if it keeps its accelerators and its speed from now on; `None` where it holds none, or has no known
    /// speed.
    pub fn end_as_it_runs(&self, job: JobId) -> Option<SimTime> {
        let view = self.view();
        let job = view.job(job)?;
        let (now, state) = (self.state.now, job.state);
        let left = (self.state.scenario.total_work(job.id()) - state.done(now)).max(0.0);
        let (from, rate) = match state.phase {
            Phase::Pending => return None,
            Phase::Starting { until } => (until.max(now), job.rate(job.gpus())?),
            Phase::Running => (now, state.rate),
        };
        (rate > 0.0).then(|| from + SimTime::from_secs_f64(left / rate))
    }
}
