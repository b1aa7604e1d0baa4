//! A plan without the changes that are held back.

use std::collections::BTreeSet;

use goodput_env::job::JobId;
use goodput_env::plan::{Change, Plan};
use goodput_env::view::{ClusterView, JobView};

use crate::placement::Free;

/// Places of the changes of running jobs that could be held back. There are none in a plan with jobs that share
/// accelerators, and none where quotas bind tenants: a job that stays might leave a tenant without its due.
pub(super) fn places(view: &ClusterView<'_>, plan: &Plan) -> Vec<usize> {
    let job = |change: &Change| view.job(change.job);
    let shares = |change: &Change| {
        let shared = |job: &JobView<'_>| job.state.partner.is_some() || job.state.placement.share().is_some();
        change.partner.is_some() || change.placement.share().is_some() || job(change).is_some_and(|job| shared(&job))
    };
    if view.quotas().is_some() || plan.changes.iter().any(shares) {
        return Vec::new();
    }
    let may_stay = |job: &JobView<'_>| {
        let placement = &job.state.placement;
        !placement.is_empty() && placement.slices().iter().all(|slice| view.healthy(slice.node))
    };
    let could =
        |change: &Change| job(change).is_some_and(|job| may_stay(&job) && job.state.placement != change.placement);
    (0..plan.changes.len()).filter(|&place| could(&plan.changes[place])).collect()
}

/// Holds back the changes of `wanted`, the first of them first, each one if every job that the plan starts still has
/// room beside those that are held back already. A running job with another change stays as it is too where the change
/// does not fit then.
pub(super) fn hold(view: &ClusterView<'_>, plan: &mut Plan, wanted: &[JobId]) {
    let free = Free::listed(view.cluster(), view.free());
    let mut held = BTreeSet::new();
    for &job in wanted {
        if held.contains(&job) {
            continue;
        }
        let more = held.iter().copied().chain([job]).collect();
        if let Some(staying) = staying(view, plan, &free, more) {
            held = staying;
        }
    }
    plan.changes.retain(|change| !held.contains(&change.job));
}

/// Running jobs that stay as they are where those of `held` do; `None` where a job that the plan starts has no room
/// then.
fn staying(view: &ClusterView<'_>, plan: &Plan, free: &Free, mut held: BTreeSet<JobId>) -> Option<BTreeSet<JobId>> {
    let running = |job: JobId| view.job(job).filter(|job| job.state.is_allocated());
    loop {
        let mut room = free.clone();
        let going = plan.changes.iter().filter(|change| !held.contains(&change.job));
        going.clone().filter_map(|change| running(change.job)).for_each(|job| room.release(&job.state.placement));
        let (starts, moves): (Vec<&Change>, Vec<&Change>) = going.partition(|change| running(change.job).is_none());
        let mut take = |change: &Change| {
            let fits = room.holds(&change.placement);
            if fits {
                change.placement.slices().iter().for_each(|slice| room.take(slice.node, slice.gpus));
            }
            fits
        };
        if !starts.into_iter().all(&mut take) {
            return None;
        }
        match moves.into_iter().find(|change| !take(change)) {
            Some(stuck) => held.insert(stuck.job),
            None => return Some(held),
        };
    }
}
