//! Jobs on accelerators of two types: normalised workers, their speed, and what the guard allows.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::accelerator_types::two_speeds;
use crate::support::{elastic, fixed};
use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::guard::Violation;
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::model::fault::{Cause, Scripted};
use goodput_env::model::{FaultModel, SwitchCost};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::{Batching, Resize, Rounds, Scenario, SimOptions};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::tenant::{Group, Quota, Tenants};
use goodput_env::time::SimTime;

const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);

/// A node of 8 fast and one of 8 slow accelerators, a quarter as fast.
fn scenario(mixing: Option<f64>, batching: Batching, job: JobSpec, tenants: Tenants) -> Arc<Scenario> {
    let cluster = Arc::new(Cluster::parse("fast:1x8,slow:1x8").unwrap());
    let mut workload = Workload::new(vec![two_speeds(4.0)], vec![job]);
    workload.tenants = Arc::new(tenants);
    let options = SimOptions { mixing, batching, switch_cost: SwitchCost::Zero, ..SimOptions::standard() };
    Arc::new(Scenario::new(cluster, Arc::new(workload), options, 0))
}

fn on(fast: u32, slow: u32) -> Placement {
    Placement::from_iter([(FAST, fast), (SLOW, slow)])
}

fn start(scenario: Arc<Scenario>, placement: Placement) -> Result<Simulator, Vec<Violation>> {
    let mut simulator = Simulator::new(scenario);
    simulator.run_until_decision().unwrap();
    let mut plan = Plan::keep();
    plan.set(JobId(0), placement);
    match simulator.apply(&plan) {
        Ok(()) => Ok(simulator),
        Err(SimError::Refused { violations, .. }) => Err(violations),
        Err(other) => panic!("{other}"),
    }
}

/// Two fast accelerators and four slow ones are three workers; three and two are three and a half.
#[test]
fn a_slow_accelerator_is_a_fraction_of_a_worker() {
    for batching in [Batching::Catalog, Batching::Requested] {
        let scenario = scenario(Some(1.0), batching, elastic("a", 0, 8), Tenants::default());
        let workers = |fast, slow| scenario.normalised_workers(JobId(0), 0, &on(fast, slow)).unwrap();
        assert!((workers(2, 4).count - 3.0).abs() < 1e-9, "{batching:?}: {:?}", workers(2, 4));
        assert!((workers(3, 2).count - 3.5).abs() < 1e-9 && workers(3, 2).kind == TypeId(0));
        assert_eq!(workers(0, 4).count, 4.0, "of one type a worker is an accelerator");
        assert_eq!(scenario.normalised_workers(JobId(0), 0, &Placement::none()), None);
    }
}

/// The rate on two types is the part that is kept of the rate on as many workers of the fast type, and lies between
/// whole numbers on a straight line. The simulator runs a job at it.
#[test]
fn a_job_on_two_types_runs_at_the_speed_of_its_workers() {
    let of = |mixing: f64| scenario(Some(mixing), Batching::Catalog, elastic("a", 0, 8), Tenants::default());
    let pure = |gpus: u32| of(1.0).speeds.best(0, TypeId(0), 0, gpus).unwrap().rate;
    let rate = |mixing: f64, fast, slow| of(mixing).mixed_rate(JobId(0), 0, &on(fast, slow)).unwrap();
    assert!((rate(1.0, 2, 4) - pure(3)).abs() < 1e-9);
    assert!((rate(1.0, 3, 2) - (pure(3) + pure(4)) / 2.0).abs() < 1e-9);
    assert!((rate(0.7, 2, 4) - 0.7 * pure(3)).abs() < 1e-9);
    let finish = |simulator: Result<Simulator, Vec<Violation>>| {
        let mut simulator = simulator.unwrap();
        while simulator.run_until_decision().unwrap() == goodput_env::sim::Status::Decision {
            simulator.apply(&Plan::keep()).unwrap();
        }
        simulator.outcome().jobs[0].finish.unwrap().as_secs_f64()
    };
    let (mixed, alone) = (finish(start(of(1.0), on(2, 4))), finish(start(of(1.0), on(3, 0))));
    assert!((mixed / alone - 1.0).abs() < 1e-3, "{mixed} and {alone}");
    let half = finish(start(of(0.5), on(2, 4)));
    assert!((half / alone - 2.0).abs() < 1e-3, "{half} and {alone}");
}

#[test]
fn the_guard_lets_jobs_mix_only_where_the_run_does_and_counts_workers() {
    let run = |mixing, job: JobSpec, placement| {
        start(scenario(mixing, Batching::Catalog, job, Tenants::default()), placement).map(drop)
    };
    let mixed = Err(vec![Violation::MixedTypes { job: JobId(0) }]);
    assert_eq!(run(None, elastic("a", 0, 8), on(2, 4)), mixed);
    assert_eq!(run(Some(0.7), elastic("a", 0, 8), on(2, 4)), Ok(()));
    // Four workers at most: two fast accelerators and eight slow ones are that, and ten accelerators.
    assert_eq!(run(Some(0.7), elastic("a", 0, 4), on(2, 8)), Ok(()));
    let gang = Violation::Gang { job: JobId(0), gpus: 11, min: 1, max: 4 };
    assert_eq!(run(Some(0.7), elastic("a", 0, 4), on(3, 8)), Err(vec![gang, Violation::MixedTypes { job: JobId(0) }]));
    assert_eq!(run(Some(0.7), fixed("rigid", 0, 6, 100), on(2, 4)), Ok(()), "of fixed work every type is a worker");
    let unknown = Violation::UnknownNode { job: JobId(0), node: NodeId(999) };
    let nowhere = Placement::from_iter([(FAST, 2), (NodeId(999), 4)]);
    assert_eq!(run(Some(0.7), elastic("a", 0, 8), nowhere), Err(vec![unknown]));
}

/// Quotas count each accelerator by its own type.
#[test]
fn quotas_count_both_types() {
    let quota = |nominal| Quota { nominal, ..Quota::default() };
    let with = |slow: u64| {
        let quotas = [("fast".to_string(), quota(2)), ("slow".to_string(), quota(slow))].into();
        let tenant = Group { quotas, ..Group::named("one") };
        Tenants::new(vec![tenant], vec![], vec![], &["fast", "slow"]).unwrap()
    };
    let run = |slow| start(scenario(Some(1.0), Batching::Catalog, elastic("a", 0, 8), with(slow)), on(2, 4)).map(drop);
    assert_eq!(run(4), Ok(()));
    let excess = Violation::Quota { tenant: 0, accelerator: "slow".into(), excess: 1 };
    assert_eq!(run(3), Err(vec![excess]));
}

/// A second node of 8 fast accelerators.
const FAST_TOO: NodeId = NodeId(2);

fn mixing(cost_secs: i64) -> SimOptions {
    SimOptions {
        mixing: Some(1.0),
        batching: Batching::Catalog,
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Constant { millis: 1000 * cost_secs },
        ..SimOptions::standard()
    }
}

/// Gives a long job of at most `most` workers each placement at its second, and stops at second `end`.
fn play(options: SimOptions, most: u32, commands: &[(i64, Placement)], end: i64) -> Simulator {
    let mut app = Arc::unwrap_or_clone(two_speeds(4.0));
    app.epochs.iter_mut().for_each(|epoch| *epoch *= 10.0);
    let mut cluster = Cluster::parse("fast:1x8,slow:1x8").unwrap();
    cluster.nodes.push(cluster.nodes[FAST.index()]);
    let workload = Workload::new(vec![Arc::new(app)], vec![elastic("a", 0, most)]);
    let mut simulator = Simulator::new(Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 0)));
    let mut left = commands.iter().peekable();
    loop {
        assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
        if simulator.now() >= SimTime::from_secs(end) {
            return simulator;
        }
        let mut plan = Plan::keep();
        while let Some((_, placement)) = left.next_if(|(at, _)| SimTime::from_secs(*at) <= simulator.now()) {
            plan.set(JobId(0), placement.clone());
        }
        simulator.apply(&plan).unwrap();
        simulator.wake_at(Some(SimTime::from_secs(left.peek().map_or(end, |(at, _)| *at))));
    }
}

/// Accelerators of the job that make progress, and its restarts.
fn running(simulator: &Simulator) -> (Placement, u32) {
    let view = simulator.view();
    let job = view.job(JobId(0)).unwrap();
    (job.state.share().clone(), job.state.restarts)
}

/// Ten accelerators are four workers, the most of the job. The job grows to them, gives some back, and loses one, all
/// without a stop.
#[test]
fn a_job_of_more_accelerators_than_workers_is_resized_and_hit_as_any_other() {
    let overlapped = || SimOptions { resize: Resize::Overlapped, ..mixing(10) };
    let grown = play(overlapped(), 4, &[(0, on(2, 0)), (20, on(2, 8))], 60);
    assert_eq!(running(&grown), (on(2, 8), 0));
    let shrunken = play(overlapped(), 4, &[(0, on(2, 8)), (20, on(2, 6))], 60);
    assert_eq!(running(&shrunken), (on(2, 6), 0));
    let fault = Scripted { at_secs: 20.0, cause: Cause::Accelerator, node: SLOW, lasts_secs: Some(1000.0) };
    let options = SimOptions { faults: Some(FaultModel::scripted(vec![fault])), ..mixing(0) };
    assert_eq!(running(&play(options, 4, &[(0, on(2, 8))], 60)), (on(2, 7), 1));
}

#[test]
fn a_move_is_free_only_to_as_many_accelerators_of_each_type() {
    let moved = |first, second| {
        let to = Placement::from_iter([(first, 2), (second, 4)]);
        running(&play(SimOptions { free_moves: true, ..mixing(0) }, 8, &[(0, on(2, 4)), (20, to)], 60)).1
    };
    assert_eq!(moved(FAST_TOO, SLOW), 0);
    assert_eq!(moved(FAST, FAST_TOO), 1, "six fast accelerators are another speed");
}

/// Until its fast workers are up, a job goes on at the speed of its slow ones, also after the end of an epoch.
#[test]
fn a_job_is_not_faster_before_its_fast_workers_are_up() {
    let options = || SimOptions { resize: Resize::Overlapped, ..mixing(600) };
    let done = |commands: &[(i64, Placement)]| {
        let simulator = play(options(), 8, commands, 1200);
        let view = simulator.view();
        let job = view.job(JobId(0)).unwrap();
        assert!(job.state.epoch > 0 && job.state.share() == &on(0, 4), "{:?}", job.state);
        job.state.done(simulator.now())
    };
    let (grows, stays) = (done(&[(0, on(0, 4)), (610, on(2, 4))]), done(&[(0, on(0, 4))]));
    assert!((grows / stays - 1.0).abs() < 1e-6, "{grows} and {stays}");
}
