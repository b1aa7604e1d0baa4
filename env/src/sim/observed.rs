//! What an observer of a simulated cluster sees.

use super::Simulator;
use crate::state::{Observed, ServiceState};

impl Simulator {
    /// What an observer of this cluster would see now. Single requests are not part of it.
    pub fn observed(&self) -> Observed {
        let health = self.health.as_deref();
        Observed {
            now: self.now,
            trigger: self.current_trigger(),
            cluster: health.map_or(&*self.scenario.cluster, |health| &health.cluster).clone(),
            down: health.map_or_else(Vec::new, |health| health.down.clone()),
            idle: self.free.clone(),
            loans: self.loans.by_node.clone(),
            jobs: self.table.active().iter().map(|&id| self.table.state(id).observe(self.now)).collect(),
            services: self.services.states.iter().map(ServiceState::observe).collect(),
        }
    }
}
