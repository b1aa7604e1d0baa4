//! Whether a plan keeps tenants within their limits of compute and device memory.

use super::Violation;
use crate::placement::Placement;
use crate::plan::Plan;
use crate::tenant::ShareLimit;
use crate::view::ClusterView;

/// A tenant may keep what it holds when its limit is exceeded, but comes to hold more only within the limit.
pub(super) fn check(view: &ClusterView<'_>, plan: &Plan, violations: &mut Vec<Violation>) {
    let limited = view.tenants().iter().zip(0..).filter(|(group, _)| !group.share_limit.is_none());
    for (group, tenant) in limited {
        let before = view.held_by(tenant);
        let mut after = before;
        let own = |job| view.job(job).filter(|job| job.request().tenant == tenant);
        for change in &plan.changes {
            let Some(job) = own(change.job) else { continue };
            let amounts = |placement: &Placement, counts: bool| if counts { view.amounts(placement) } else { [0, 0] };
            let leaves = amounts(&job.state.placement, job.state.counts());
            let takes = amounts(&change.placement, change.counts());
            for of in 0..2 {
                after[of] = after[of] + takes[of] - leaves[of];
            }
        }
        let limits = group.share_limit.amounts();
        for (of, unit) in ShareLimit::UNITS.into_iter().enumerate() {
            if after[of] > before[of] && after[of] > limits[of] {
                violations.push(Violation::ShareLimit { tenant, of: unit, held: after[of], limit: limits[of] });
            }
        }
    }
}
