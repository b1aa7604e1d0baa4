//! Features of a shared cluster beyond its jobs: services, pools and tenants. All features are of
//! order one.

use crate::cluster::NodeId;
use crate::gym::expected_peak::ExpectedPeak;
use crate::gym::features::SERVICE_FEATURES;
use crate::gym::shared_round::SharedRound;
use crate::state::{Loan, ReplicaPhase};
use crate::view::{ClusterView, JobView};

fn ln1p(x: f64) -> f32 {
    x.max(0.0).ln_1p() as f32
}

/// Writes the features of services and pools at the end of the global features.
pub(super) fn write(
    view: &ClusterView<'_>,
    round: &SharedRound,
    expected: &mut ExpectedPeak,
    (services, pools): (usize, bool),
    features: &mut [f32],
) {
    let (of_services, of_pools) = features.split_at_mut(services * SERVICE_FEATURES.len());
    of_services.fill(0.0);
    for (slot, f) in round.services().iter().zip(of_services.chunks_exact_mut(SERVICE_FEATURES.len())) {
        let Some(service) = view.service(slot.service) else { continue };
        let rate = service.rate();
        let starting = |phase: ReplicaPhase| matches!(phase, ReplicaPhase::Starting { .. });
        let starts = service.state.replicas.iter().filter(|replica| starting(replica.phase)).count();
        // Capacity after this round, on the assumption that new replicas are as fast as the ready
        // ones.
        let ready = service.state.ready();
        let each = if ready > 0 {
            service.capacity() / f64::from(ready)
        } else {
            let kinds = view.cluster().type_ids();
            kinds.filter_map(|kind| service.profile(kind)).map(|profile| profile.throughput()).fold(0.0, f64::max)
        };
        // The floor keeps the ratios below finite for a service without any capacity.
        let capacity = (each * f64::from(slot.working)).max(1e-9);
        f[0] = 1.0;
        f[1] = ln1p(rate) * 0.2;
        f[2] = (rate / capacity).min(4.0) as f32;
        f[3] = (expected.peak(&service) / capacity).min(4.0) as f32;
        f[4] = ln1p(service.backlog()) * 0.2;
        f[5] = ln1p(f64::from(ready)) * 0.25;
        f[6] = ln1p(starts as f64) * 0.25;
        f[7] = (slot.working as f32 - slot.held as f32) * 0.25;
        f[8] = ln1p(service.slo().latency.as_secs_f64());
        f[9] = ln1p(f64::from(service.gpus_per_replica())) * 0.5;
        f[10] = ln1p(service.cold_start().as_secs_f64()) * 0.2;
        f[11] = ln1p(each) * 0.2;
    }
    if pools {
        let total = view.cluster().total_gpus().max(1) as f32;
        let share = |wanted: fn(Loan) -> bool| {
            let nodes = view.cluster().nodes.iter().enumerate();
            let inference = nodes.filter(|(_, node)| node.pool == crate::cluster::Pool::Inference);
            let gpus: u32 =
                inference.filter(|&(at, _)| wanted(view.loan(NodeId::at(at)))).map(|(_, node)| node.gpus).sum();
            gpus as f32 / total
        };
        let gpus_of = |nodes: &[NodeId]| -> f32 {
            nodes.iter().map(|&node| view.cluster().nodes[node.index()].gpus).sum::<u32>() as f32 / total
        };
        let (lent, called) = (gpus_of(round.lent()), gpus_of(round.called()));
        of_pools[0] = share(|_| true);
        of_pools[1] = gpus_of(round.lendable());
        of_pools[2] = share(|loan| matches!(loan, Loan::Lent { .. })) + lent - called;
        of_pools[3] = share(|loan| matches!(loan, Loan::Returning { .. })) + called;
        of_pools[4] = f32::from(u8::from(view.trigger.load));
    }
}

/// Accelerators held by each tenant, counted once a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Holdings {
    gpus: Vec<u32>,
}

impl Holdings {
    /// Counts the accelerators that the jobs of each tenant hold.
    pub fn count(&mut self, view: &ClusterView<'_>) {
        self.gpus.clear();
        for job in view.jobs().filter(|job| job.state.counts()) {
            let tenant = job.request().tenant as usize;
            if tenant >= self.gpus.len() {
                self.gpus.resize(tenant + 1, 0);
            }
            self.gpus[tenant] += job.gpus();
        }
    }

    /// Writes the tenant features of one job.
    pub fn write(&self, view: &ClusterView<'_>, job: &JobView<'_>, f: &mut [f32]) {
        let total = view.cluster().total_gpus().max(1) as f32;
        let request = job.request();
        let held = self.gpus.get(request.tenant as usize).copied().unwrap_or(0);
        f[0] = (request.priority as f32 * 0.01).clamp(-4.0, 4.0);
        f[1] = held as f32 / total;
        f[2] = view.quotas().map_or(1.0, |quotas| {
            let own = |resource| quotas.subtree(request.tenant as usize, resource);
            // A tenant outside the quota tree may hold nothing.
            let declared = (request.tenant as usize) < quotas.tenants();
            let may_hold: u64 = if declared { quotas.resources().map(own).sum() } else { 0 };
            (may_hold as f32 - held as f32) / total
        });
    }
}
