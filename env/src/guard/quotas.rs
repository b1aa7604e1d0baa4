//! Whether a plan keeps tenants within their quotas.

use smallvec::SmallVec;

use super::Violation;
use crate::cluster::{Cluster, TypeId};
use crate::job::JobId;
use crate::placement::Placement;
use crate::plan::Plan;
use crate::tenant::{QuotaTree, Usage};
use crate::view::ClusterView;

/// Usage of every tenant before and after a plan. Used in runs with quotas only, because it looks
/// at every active job.
#[derive(Clone, Debug, Default)]
pub(super) struct QuotaCheck {
    before: Usage,
    after: Usage,
}

impl QuotaCheck {
    /// A tenant may keep what it holds when its quota shrinks, but it comes to hold more of a type
    /// only within what is available to it.
    pub(super) fn check(
        &mut self,
        view: &ClusterView<'_>,
        plan: &Plan,
        tree: &QuotaTree,
        violations: &mut Vec<Violation>,
    ) {
        let cluster = view.cluster();
        let tenant_of = |job: JobId| view.job(job).map_or(0, |job| job.request().tenant as usize);
        self.before.reset(tree);
        for job in view.jobs().filter(|job| job.state.counts()) {
            if (job.request().tenant as usize) < tree.tenants() {
                for (kind, gpus) in holding(cluster, &job.state.placement) {
                    tree.add(&mut self.before, job.request().tenant as usize, kind, gpus);
                }
            }
        }
        self.after.clone_from(&self.before);
        for change in &plan.changes {
            let (tenant, state) = (tenant_of(change.job), view.job(change.job).map(|job| job.state));
            let held = state.filter(|state| state.counts());
            let Some(state) = held.filter(|_| tenant < tree.tenants()) else { continue };
            for (kind, gpus) in holding(cluster, &state.placement) {
                tree.remove(&mut self.after, tenant, kind, gpus);
            }
        }
        // All releases come before any addition, so the order within a plan does not matter.
        for change in plan.changes.iter().filter(|change| change.counts()) {
            let tenant = tenant_of(change.job);
            for (kind, gpus) in holding(cluster, &change.placement) {
                if tenant < tree.tenants() {
                    tree.add(&mut self.after, tenant, kind, gpus);
                } else {
                    violations.push(excess(cluster, tenant, kind, gpus));
                }
            }
        }
        for tenant in 0..tree.tenants() {
            for kind in tree.resources() {
                let grows = tree.used(&self.after, tenant, kind) > tree.used(&self.before, tenant, kind);
                let left = tree.available(&self.after, tenant, kind);
                if grows && left < 0 {
                    violations.push(excess(cluster, tenant, kind, left.unsigned_abs()));
                }
            }
        }
    }
}

/// Type and number of the accelerators of each slice. Neighbours of one type count together.
fn holding(cluster: &Cluster, placement: &Placement) -> SmallVec<[(TypeId, u64); 2]> {
    let mut held: SmallVec<[(TypeId, u64); 2]> = SmallVec::new();
    for slice in placement.slices() {
        let Some(node) = cluster.nodes.get(slice.node.index()) else { continue };
        match held.last_mut() {
            Some((kind, gpus)) if *kind == node.accelerator => *gpus += u64::from(slice.gpus),
            _ => held.push((node.accelerator, slice.gpus.into())),
        }
    }
    held
}

fn excess(cluster: &Cluster, tenant: usize, kind: TypeId, excess: u64) -> Violation {
    let accelerator = cluster.types.get(kind.index()).map_or_else(String::new, |of| of.name.clone());
    Violation::Quota { tenant: tenant as u32, accelerator, excess }
}
