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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use goodput_env::cluster::{Cluster, NodeId};
    use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
    use goodput_env::placement::Placement;
    use goodput_env::scenario::{Information, Rounds, Scenario, SimOptions};
    use goodput_env::sim::{Simulator, Status};
    use goodput_env::time::SimTime;

    use super::*;

    const STOPS: JobId = JobId(0);
    const MOVES: JobId = JobId(1);
    const STARTS: JobId = JobId(2);

    /// Two jobs run on the first of two nodes of four accelerators, on two and on one of them. A third one arrives.
    fn moment() -> Simulator {
        let job = |gpus: u32, submit: i64| JobSpec {
            request: JobRequest { gpus, submit: SimTime::from_secs(submit), ..JobRequest::default() },
            work: Work::Fixed { duration: SimTime::from_secs(9_000) },
        };
        let workload = Workload::new(Vec::new(), vec![job(2, 0), job(1, 0), job(3, 10)]);
        let rounds = Rounds { period: None, on_churn: true };
        let options = SimOptions { rounds, information: Information::Oracle, ..SimOptions::standard() };
        let scenario = Scenario::new(Arc::new(Cluster::homogeneous(2, 4)), Arc::new(workload), options, 1);
        let mut run = Simulator::new(Arc::new(scenario));
        assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
        let mut plan = Plan::keep();
        plan.set(STOPS, Placement::on(NodeId::at(0), 2));
        plan.set(MOVES, Placement::on(NodeId::at(0), 1));
        run.apply(&plan).unwrap();
        while run.now() < SimTime::from_secs(10) {
            assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
        }
        run
    }

    fn left_of(start_on: usize, wanted: &[JobId]) -> Vec<JobId> {
        let mut run = moment();
        let mut plan = Plan::keep();
        plan.set(STOPS, Placement::none());
        plan.set(STARTS, Placement::on(NodeId::at(start_on), 3));
        plan.set(MOVES, Placement::on(NodeId::at(1), 1));
        assert_eq!(places(&run.view(), &plan), [0, 2]);
        hold(&run.view(), &mut plan, wanted);
        run.apply(&plan).unwrap();
        plan.changes.iter().map(|change| change.job).collect()
    }

    #[test]
    fn a_change_that_a_start_needs_is_carried_out_and_the_others_are_held_back() {
        assert_eq!(left_of(0, &[]), [STOPS, STARTS, MOVES]);
        assert_eq!(left_of(0, &[STOPS, MOVES]), [STOPS, STARTS], "the start needs what the first job gives up");
        assert_eq!(left_of(1, &[STOPS, MOVES]), [STARTS]);
    }
}
