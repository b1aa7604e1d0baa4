//! Remaining quotas of the tenants in a round, so that the action mask forbids what the guard would
//! reject.

use std::sync::Arc;

use crate::cluster::TypeId;
use crate::tenant::{QuotaTree, Tenants, Usage};
use crate::time::SimTime;
use crate::view::ClusterView;

/// Usage of quotas by tenant under the working allocation; empty in a run without quotas.
#[derive(Clone, Debug, Default)]
pub(super) struct QuotaRoom {
    quotas: Option<(Arc<Tenants>, SimTime)>,
    usage: Usage,
}

impl QuotaRoom {
    /// Counts the accelerators of all jobs, including jobs without a slot.
    pub fn begin(&mut self, view: &ClusterView<'_>) {
        self.quotas = view.quotas().map(|_| (view.scenario.workload.tenants.clone(), view.now));
        let Some(tree) = tree(&self.quotas) else { return };
        self.usage.reset(tree);
        for job in view.jobs().filter(|job| job.state.counts()) {
            let tenant = job.request().tenant as usize;
            if tenant < tree.tenants() && job.gpus() > 0 {
                tree.add(&mut self.usage, tenant, job.kind(), u64::from(job.gpus()));
            }
        }
    }

    /// Whether `tenant` may hold `more` accelerators of type `kind`.
    pub fn allows(&self, tenant: u32, kind: TypeId, more: u32) -> bool {
        let Some(tree) = tree(&self.quotas) else { return true };
        let tenant = tenant as usize;
        tenant < tree.tenants() && tree.available(&self.usage, tenant, kind) >= i64::from(more)
    }

    /// Records that a job of `tenant` goes from `from` to `to` accelerators of type `kind`.
    pub fn change(&mut self, tenant: u32, kind: TypeId, from: u32, to: u32) {
        let Some(tree) = tree(&self.quotas) else { return };
        let tenant = tenant as usize;
        if tenant < tree.tenants() {
            tree.remove(&mut self.usage, tenant, kind, u64::from(from));
            tree.add(&mut self.usage, tenant, kind, u64::from(to));
        }
    }
}

fn tree(quotas: &Option<(Arc<Tenants>, SimTime)>) -> Option<&QuotaTree> {
    quotas.as_ref().and_then(|(tenants, now)| tenants.quotas(*now))
}
