//! Time slicing: equal turns, no starvation, no movement without need.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::{fixed, frictionless, jcts, run};
use goodput_agents::heuristic::gandiva::Gandiva;
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::model::SwitchCost;
use goodput_env::scenario::SimOptions;
use goodput_env::time::SimTime;

fn sliced() -> Gandiva {
    Gandiva::new(SimTime::from_secs(60))
}

#[test]
fn two_jobs_on_one_set_of_accelerators_take_equal_turns() {
    let found = jcts(&mut sliced(), 4, vec![fixed("a", 4, 300, 0), fixed("b", 4, 300, 0)]);
    // Turns of a minute: a has its fifth at 480 to 540, b at 540 to 600.
    assert_eq!((found["a"], found["b"]), (540.0, 600.0));
}

#[test]
fn a_wide_job_gets_its_turn_among_narrow_ones() {
    let mut jobs: Vec<_> = (0..8).map(|at| fixed(&format!("n{at}"), 1, 600, 0)).collect();
    jobs.push(fixed("wide", 4, 600, 1));
    let found = jcts(&mut sliced(), 4, jobs);
    // Three groups of four accelerators share the time: 7,200 GPU-seconds end with second 1,800,
    // and no group is far ahead.
    assert!(found.values().all(|&jct| (1200.0..=1860.0).contains(&jct)), "{found:?}");
}

#[test]
fn no_job_is_suspended_while_all_fit() {
    let jobs = vec![fixed("a", 2, 1000, 0), fixed("b", 2, 900, 30)];
    let outcome = run(&mut sliced(), Cluster::homogeneous(1, 4), Workload::new(Vec::new(), jobs), frictionless());
    assert!(outcome.jobs.iter().all(|job| job.restarts == 0 && job.jct() == Some(job.executed)));
}

/// Jobs resume where they were, and move only to accelerators that would lie idle.
#[test]
fn jobs_stay_on_their_nodes() {
    let jobs = (0..6).map(|at| fixed(&format!("{at}"), 4, 600, 0)).collect();
    let options = SimOptions { log_allocations: true, ..frictionless() };
    let outcome = run(&mut sliced(), Cluster::homogeneous(3, 4), Workload::new(Vec::new(), jobs), options);
    assert!(outcome.jobs.iter().all(|job| (1100..=1200).contains(&(job.jct().unwrap().as_millis() / 1000))));
}

#[test]
fn a_quantum_no_longer_than_a_restart_is_lost() {
    let jobs = || vec![fixed("a", 4, 300, 0), fixed("b", 4, 300, 0)];
    let options = |millis| SimOptions { switch_cost: SwitchCost::Constant { millis }, ..frictionless() };
    let last = |quantum, millis| {
        let mut policy = Gandiva::new(SimTime::from_secs(quantum));
        let outcome = run(&mut policy, Cluster::homogeneous(1, 4), Workload::new(Vec::new(), jobs()), options(millis));
        outcome.end.as_millis() / 1000
    };
    assert_eq!(last(60, 0), 600);
    assert!(last(60, 1000) < 620);
    assert!(last(60, 30_000) >= 1140, "half of every turn is lost");
    assert!(last(600, 30_000) <= 660);
}
