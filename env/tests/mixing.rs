//! Jobs on accelerators of two types: normalised workers, their speed, and what the guard allows.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::accelerator_types::two_speeds;
use crate::support::{elastic, fixed};
use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::guard::Violation;
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::{Batching, Scenario, SimOptions};
use goodput_env::sim::{SimError, Simulator};
use goodput_env::tenant::{Group, Quota, Tenants};

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

/// The rate on two types is the part that is kept of the rate on as many workers of the fast type, and lies between whole
/// numbers on a straight line. The simulator runs a job at it.
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
