//! A plan without the changes that are held back.

use std::collections::BTreeSet;

use goodput_env::job::JobId;
use goodput_env::plan::{Change, Plan};
use goodput_env::view::{ClusterView, JobView};

use crate::placement::Free;

/// Places of the changes of a plan that could be held back: each stops a running job that may stay where it is. There
/// are none in a plan with jobs that share accelerators.
pub(super) fn places(view: &ClusterView<'_>, plan: &Plan) -> Vec<usize> {
    if plan.changes.iter().any(shares) {
        return Vec::new();
    }
    let may_stay = |job: &JobView<'_>| {
        let placement = &job.state.placement;
        let alone = job.state.partner.is_none() && placement.share().is_none();
        alone && !placement.is_empty() && placement.slices().iter().all(|slice| view.healthy(slice.node))
    };
    let could = |change: &Change| {
        let job = view.job(change.job);
        job.is_some_and(|job| may_stay(&job) && job.state.placement != change.placement)
    };
    (0..plan.changes.len()).filter(|&place| could(&plan.changes[place])).collect()
}

fn shares(change: &Change) -> bool {
    change.partner.is_some() || change.placement.share().is_some()
}

/// Holds back the changes of `held` as far as every job that the plan starts can still start: the last ones are carried
/// out until it can. Of the other changes, those of running jobs that do not fit beside the jobs that stay are not
/// carried out either.
pub(super) fn hold(view: &ClusterView<'_>, plan: &mut Plan, mut held: Vec<JobId>) {
    let free = Free::listed(view.cluster(), view.free());
    while !held.is_empty() {
        if let Some(staying) = staying(view, plan, &free, held.iter().copied().collect()) {
            plan.changes.retain(|change| !staying.contains(&change.job));
            return;
        }
        held.pop();
    }
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
