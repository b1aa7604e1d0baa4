//! The coordinator: asks every cluster what it needs and could use, and says how many servers each
//! should have.

use goodput_env::cluster::Pool;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::{Claim, allot};
use crate::compose::serving::{Outlook, beside_waiting, kind_for, needed_for};

/// Moves servers once a period.
pub struct Coordinator {
    /// One per cluster.
    outlooks: Vec<Box<dyn Outlook>>,
    /// Between its decisions.
    pub period: SimTime,
    /// Job-seconds that moving one server costs.
    pub move_cost: f64,
    /// Share of the need kept on top of it.
    pub headroom: f64,
    utilisation: f64,
}

impl Coordinator {
    /// One outlook per cluster: reactive, forecast, or by the objectives of services. A server moves where that saves
    /// more than ten minutes of ten jobs.
    pub fn new(outlooks: Vec<Box<dyn Outlook>>, period: SimTime) -> Self {
        Self { outlooks, period, move_cost: 6000.0, headroom: 0.02, utilisation: 0.7 }
    }

    /// Servers that the cluster number `index` needs until two periods from now, for a server
    /// called for at the next decision comes at the one after.
    pub fn claim(&mut self, index: usize, view: &ClusterView<'_>) -> Claim {
        let (mut owned, mut own, mut per_server) = (0, 0, 1);
        for (node, id) in view.cluster().nodes.iter().zip(view.cluster().node_ids()) {
            per_server = per_server.max(node.gpus);
            match node.pool {
                Pool::Inference => owned += u32::from(view.owned(id)),
                // These never change hands, but they share the work that movable ones are asked for.
                Pool::Training | Pool::Shared => own += 1,
            }
        }
        let until = view.now + self.period + self.period;
        let mut need = 0.0;
        if let Some(outlook) = self.outlooks.get_mut(index) {
            for service in view.services() {
                let Some(kind) = kind_for(view, &service) else { continue };
                let expected = beside_waiting(&service, outlook.expect(&service, until + service.cold_start()));
                let replicas = needed_for(&service, kind, expected, self.utilisation);
                need += f64::from(replicas * service.gpus_per_replica());
            }
        }
        let servers = f64::from(per_server);
        let (mut jobs, mut work, mut most) = (0, 0.0, 0.0);
        for job in view.jobs() {
            jobs += 1;
            most += f64::from(job.max_gpus()) / servers;
            work += work_of(&job) / servers;
        }
        let needed = (need * (1.0 + self.headroom) / servers).ceil() as u32;
        Claim { owned, needed, own, jobs, work, most: f64::ceil(most) as u32 }
    }

    /// Servers for each cluster.
    pub fn decide(&self, claims: &[Claim]) -> Vec<u32> {
        allot(claims, self.move_cost)
    }
}

/// Accelerator-seconds left, where known; an hour on what was asked for, else.
fn work_of(job: &JobView<'_>) -> f64 {
    let gpus = job.request().gpus;
    f64::from(gpus) * job.remaining_secs(gpus).filter(|secs| secs.is_finite()).unwrap_or(3600.0)
}
