//! Observation of a simulated cluster.

use super::Simulator;
use crate::state::{Observed, ServiceState};

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
}
