//! What tenants may still take of compute and device memory within one decision.

use std::collections::BTreeMap;

use goodput_env::placement::Placement;
use goodput_env::view::{ClusterView, JobView};

/// Amounts that tenants with a limit hold, as the decision goes on.
#[derive(Clone, Debug, Default)]
pub struct TenantLimits(BTreeMap<u32, [u64; 2]>);

impl TenantLimits {
    /// Whether the tenant of a job may take what the job asks for. Whole cards count as if they were the largest.
    pub fn allow(&mut self, view: &ClusterView<'_>, job: &JobView<'_>) -> bool {
        let tenant = job.request().tenant;
        let limit = view.tenants().get(tenant).map(|group| group.share_limit).filter(|limit| !limit.is_none());
        let Some(limit) = limit else { return true };
        let held = self.0.entry(tenant).or_insert_with(|| view.held_by(tenant));
        let asked = match job.request().share {
            Some(share) => [share.compute_percent.into(), share.memory_mib.into()],
            None => [100 * u64::from(job.request().gpus), u64::from(job.request().gpus) * most_memory(view)],
        };
        (0..2).all(|of| held[of] + asked[of] <= limit.amounts()[of])
    }

    /// Counts what a job takes.
    pub fn take(&mut self, view: &ClusterView<'_>, job: &JobView<'_>, placement: &Placement) {
        if let Some(held) = self.0.get_mut(&job.request().tenant) {
            let [compute, memory] = view.amounts(placement);
            *held = [held[0] + compute, held[1] + memory];
        }
    }
}

/// Memory of the largest card, MiB.
fn most_memory(view: &ClusterView<'_>) -> u64 {
    view.cluster().types.iter().filter_map(|kind| kind.memory_mib).max().unwrap_or(0).into()
}
