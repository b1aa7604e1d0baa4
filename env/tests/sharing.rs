//! Two jobs on the same accelerators: counted once, at the speeds they have beside each other, and
//! one stays when the other leaves.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::fixed;
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::guard::Violation;
use goodput_env::job::{JobClass, JobId, JobSpec, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::time::SimTime;

const ONE: JobId = JobId(0);
const OTHER: JobId = JobId(1);
const THIRD: JobId = JobId(2);

fn class(name: &str, alone: f64, beside: &[(&str, f64)]) -> Arc<JobClass> {
    let beside: BTreeMap<String, f64> = beside.iter().map(|&(other, rate)| (other.to_string(), rate)).collect();
    Arc::new(JobClass {
        name: name.into(),
        gpus: 2,
        steps_per_sec: BTreeMap::from([("gpu".into(), alone)]),
        steps_per_sec_beside: BTreeMap::from([("gpu".into(), beside)]),
        ..JobClass::default()
    })
}

/// Two jobs that were measured together, of 1000 and 300 steps, and a third that was not, on two
/// nodes with 2 accelerators each.
fn simulator() -> Simulator {
    let classes =
        vec![class("one", 10.0, &[("other", 6.0)]), class("other", 5.0, &[("one", 3.0)]), class("third", 1.0, &[])];
    let job = |class: u16, steps: f64| JobSpec { work: Work::Steps { class, steps }, ..fixed("job", 0, 2, 1) };
    let workload = Workload::of_classes(classes, vec![job(0, 1000.0), job(1, 300.0), job(2, 50.0)]);
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(2, 2)), Arc::new(workload), options, 0);
    let mut simulator = Simulator::new(Arc::new(scenario));
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    simulator
}

fn shared() -> Plan {
    let mut plan = Plan::keep();
    plan.share(ONE, OTHER, Placement::on(NodeId(0), 2));
    plan
}

fn finishes(mut simulator: Simulator) -> (Vec<f64>, i64) {
    while simulator.run_until_decision().unwrap() == Status::Decision {
        simulator.apply(&Plan::keep()).unwrap();
    }
    let gpu_millis = simulator.gpu_millis();
    (simulator.outcome().jobs.iter().map(|job| job.finish.unwrap().as_secs_f64()).collect(), gpu_millis)
}

#[test]
fn one_that_completes_leaves_the_accelerators_to_the_other() {
    let mut simulator = simulator();
    let mut plan = shared();
    plan.set(THIRD, Placement::on(NodeId(1), 2));
    simulator.apply(&plan).unwrap();
    assert_eq!(simulator.view().free(), [0, 0]);
    // 300 steps at 3 a second; by then 600 of 1000 are done, and the rest goes at 10 a second.
    let (finish, gpu_millis) = finishes(simulator);
    assert_eq!(finish, [140.0, 100.0, 50.0]);
    assert_eq!(gpu_millis, 2 * 140_000 + 2 * 50_000, "what is shared counts once");
}

#[test]
fn one_that_is_moved_away_leaves_them_too() {
    let mut simulator = simulator();
    simulator.apply(&shared()).unwrap();
    simulator.wake_at(Some(SimTime::from_secs(50)));
    simulator.run_until_decision().unwrap();
    let mut plan = Plan::keep();
    plan.set(OTHER, Placement::on(NodeId(1), 2));
    simulator.apply(&plan).unwrap();
    assert_eq!(simulator.view().free(), [0, 0]);
    simulator.run_until_decision().unwrap();
    assert_eq!(simulator.now(), SimTime::from_secs(80));
    let mut plan = Plan::keep();
    plan.set(THIRD, Placement::on(NodeId(1), 2));
    simulator.apply(&plan).unwrap();
    assert_eq!(finishes(simulator).0, [120.0, 80.0, 130.0]);
}

#[test]
fn both_can_leave_at_once_and_their_place_is_free_in_the_same_plan() {
    let mut simulator = simulator();
    simulator.apply(&shared()).unwrap();
    let mut plan = Plan::keep();
    plan.set(OTHER, Placement::none());
    plan.set(ONE, Placement::none());
    plan.set(THIRD, Placement::on(NodeId(0), 2));
    simulator.apply(&plan).unwrap();
    assert_eq!(simulator.view().free(), [0, 2]);
    assert!(simulator.view().jobs().all(|job| job.state.partner.is_none()));
}

#[track_caller]
fn refused(simulator: &mut Simulator, plan: &Plan) -> Vec<Violation> {
    match simulator.apply(plan).unwrap_err() {
        SimError::Refused { violations, .. } => violations,
        error => panic!("{error}"),
    }
}

#[test]
fn the_guard_refuses_what_is_not_sharing() {
    let mut simulator = simulator();
    let sharing = |violations: Vec<Violation>| violations.iter().any(|one| matches!(one, Violation::Sharing { .. }));
    let mut one_sided = shared();
    one_sided.changes.pop();
    assert!(sharing(refused(&mut simulator, &one_sided)));
    let mut apart = shared();
    apart.changes[1].placement = Placement::on(NodeId(1), 2);
    assert!(sharing(refused(&mut simulator, &apart)));
    let mut unmeasured = Plan::keep();
    unmeasured.share(ONE, THIRD, Placement::on(NodeId(0), 2));
    assert!(sharing(refused(&mut simulator, &unmeasured)));
    let mut itself = Plan::keep();
    itself.share(ONE, ONE, Placement::on(NodeId(0), 2));
    assert!(sharing(refused(&mut simulator, &itself)));
    // A place that one of two leaves is not free.
    simulator.apply(&shared()).unwrap();
    let mut taken = Plan::keep();
    taken.set(OTHER, Placement::none());
    taken.set(THIRD, Placement::on(NodeId(0), 2));
    assert!(matches!(refused(&mut simulator, &taken)[..], [Violation::Capacity { node: NodeId(0), missing: 2 }]));
}
