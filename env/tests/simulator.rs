//! The simulator keeps its books: capacity, Little's law, exact epochs, determinism.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{Chaos, elastic, fixed, mixed_jobs, scenario};
use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::guard::Violation;
use goodput_env::job::JobId;
use goodput_env::model::SwitchCost;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, SimOptions};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use proptest::prelude::*;

/// Gives each job what it asks for, in order, and never takes it back.
struct FirstFit;

impl Policy for FirstFit {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            if let Some(placement) =
                goodput_env::placement::pack(view.cluster(), &mut free, TypeId(0), job.request().gpus)
            {
                plan.set(job.id(), placement);
            }
        }
        plan
    }
}

fn churn_only() -> SimOptions {
    SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        ..SimOptions::standard()
    }
}

#[test]
fn a_queue_of_one_server_completes_in_order() {
    let jobs = vec![fixed("a", 0, 4, 100), fixed("b", 10, 4, 50), fixed("c", 20, 4, 1)];
    let outcome = Simulator::new(scenario("1x4", jobs, churn_only())).run(&mut FirstFit).unwrap();
    let finish: Vec<_> = outcome.jobs.iter().map(|job| job.finish.unwrap().as_millis()).collect();
    assert_eq!(finish, [100_000, 150_000, 151_000]);
}

#[test]
fn the_first_start_costs_a_restart_delay_and_counts_none() {
    let options = SimOptions { switch_cost: SwitchCost::Constant { millis: 30_000 }, ..churn_only() };
    let outcome = Simulator::new(scenario("1x4", vec![fixed("a", 0, 2, 100)], options)).run(&mut FirstFit).unwrap();
    let job = outcome.jobs[0];
    assert_eq!(job.finish, Some(SimTime::from_secs(130)));
    assert_eq!((job.restarts, job.attained_gpu_millis, job.restarting), (0, 260_000, SimTime::from_secs(30)));
}

#[test]
fn an_elastic_job_takes_the_sum_of_its_epochs() {
    let scenario = scenario("1x4", vec![elastic("a", 0, 4)], churn_only());
    let expected: f64 = (0..4).map(|epoch| 400.0 / scenario.speeds.best(0, TypeId(0), epoch, 1).unwrap().rate).sum();
    let outcome = Simulator::new(scenario).run(&mut FirstFit).unwrap();
    let secs = outcome.jobs[0].finish.unwrap().as_secs_f64();
    assert!((secs - expected).abs() < 0.005, "{secs} {expected}");
}

#[test]
fn more_accelerators_are_never_slower_on_one_node() {
    let scenario = scenario("4x4", vec![elastic("a", 0, 4)], churn_only());
    for epoch in 0..4 {
        for gpus in 1..4 {
            let rate = |gpus| scenario.speeds.best(0, TypeId(0), epoch, gpus).unwrap().rate;
            assert!(rate(gpus + 1) > rate(gpus));
        }
    }
}

#[test]
fn a_policy_that_starts_nothing_is_reported() {
    struct Idle;
    impl Policy for Idle {
        fn decide(&mut self, _: &ClusterView<'_>) -> Plan {
            Plan::keep()
        }
    }
    for options in [churn_only(), SimOptions::standard()] {
        let error =
            Simulator::new(scenario("1x4", vec![fixed("lonely", 0, 2, 100)], options)).run(&mut Idle).unwrap_err();
        assert!(matches!(error, SimError::Stalled { .. }) && error.to_string().contains("lonely"), "{error}");
    }
}

#[test]
fn the_guard_names_every_violation_and_nothing_changes() {
    let mut simulator = Simulator::new(scenario("2x4", vec![fixed("a", 0, 2, 9), fixed("b", 0, 4, 9)], churn_only()));
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::on(NodeId(0), 3));
    plan.set(JobId(1), Placement::from_iter([(NodeId(0), 2), (NodeId(7), 2)]));
    plan.set(JobId(1), Placement::on(NodeId(1), 4));
    plan.set(JobId(5), Placement::on(NodeId(1), 1));
    let Err(SimError::Refused { violations, .. }) = simulator.apply(&plan) else { panic!("accepted") };
    assert!(violations.contains(&Violation::Twice { job: JobId(1) }));
    assert!(violations.contains(&Violation::Gang { job: JobId(0), gpus: 3, min: 2, max: 2 }));
    assert!(violations.contains(&Violation::UnknownNode { job: JobId(1), node: NodeId(7) }));
    assert!(violations.contains(&Violation::UnknownJob { job: JobId(5) }));
    assert_eq!(simulator.view().total_free(), 8);
}

#[test]
fn a_swap_within_one_plan_is_legal() {
    let mut simulator = Simulator::new(scenario("2x4", vec![fixed("a", 0, 4, 99), fixed("b", 0, 4, 99)], churn_only()));
    simulator.run_until_decision().unwrap();
    for (first, second) in [(0, 1), (1, 0)] {
        let mut plan = Plan::keep();
        plan.set(JobId(0), Placement::on(NodeId(first), 4));
        plan.set(JobId(1), Placement::on(NodeId(second), 4));
        simulator.apply(&plan).unwrap();
        assert_eq!(simulator.view().total_free(), 0);
    }
}

#[test]
fn a_refused_job_leaves_without_having_run() {
    struct Choosy;
    impl Policy for Choosy {
        fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
            let mut plan = FirstFit.decide(view);
            plan.changes.retain(|change| change.job != JobId(1));
            plan.refuse.extend(view.jobs().map(|job| job.id()).filter(|&id| id == JobId(1)));
            plan
        }
    }
    let jobs = vec![fixed("a", 0, 4, 100), fixed("b", 10, 4, 50), fixed("c", 20, 4, 1)];
    let outcome = Simulator::new(scenario("1x4", jobs, churn_only())).run(&mut Choosy).unwrap();
    let [first, refused, last] = outcome.jobs[..] else { panic!("three jobs") };
    assert_eq!((refused.start, refused.finish, refused.refused), (None, None, Some(SimTime::from_secs(10))));
    assert_eq!(refused.left(), refused.refused);
    assert_eq!([first.finish, last.finish], [100, 101].map(|at| Some(SimTime::from_secs(at))));
    // Arrivals at 0, 10 and 20 s, completions at 100 and 101 s: to refuse a job asks for no further decision.
    assert!(!outcome.truncated && outcome.decisions == 5, "{}", outcome.decisions);
}

#[test]
fn only_jobs_that_wait_can_be_refused() {
    let mut simulator = Simulator::new(scenario("2x4", vec![fixed("a", 0, 4, 99), fixed("b", 0, 4, 99)], churn_only()));
    simulator.run_until_decision().unwrap();
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::on(NodeId(0), 4));
    simulator.apply(&plan).unwrap();
    plan.clear();
    plan.set(JobId(1), Placement::on(NodeId(1), 4));
    [0, 1, 7].into_iter().for_each(|job| plan.refuse(JobId(job)));
    let Err(SimError::Refused { violations, .. }) = simulator.apply(&plan) else { panic!("accepted") };
    let refused: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let expected = [(0, "it holds accelerators"), (1, "the plan changes it too"), (7, "it is not active")];
    assert_eq!(refused, expected.map(|(job, why)| format!("job {job} cannot be refused: {why}")));
}

fn options(batching: Batching, interference: f64, horizon: Option<i64>) -> SimOptions {
    let horizon = horizon.map(SimTime::from_secs);
    SimOptions { batching, interference, horizon, log_allocations: true, ..SimOptions::standard() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn books_balance_under_any_policy(
        seed in 0u64..1000,
        batching in prop::sample::select(vec![Batching::Requested, Batching::Agent, Batching::Catalog]),
        interference in prop::sample::select(vec![0.0, 0.25]),
        horizon in prop::option::of(500i64..5000),
    ) {
        let scenario = scenario("4x4", mixed_jobs(seed, 24, 60), options(batching, interference, horizon));
        let mut simulator = Simulator::new(scenario.clone());
        let mut policy = Chaos::new(seed);
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let held: u32 = simulator.view().jobs().map(|job| job.gpus()).sum();
            prop_assert_eq!(held + simulator.view().total_free(), 16);
            let plan = policy.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
        }
        let (job_millis, gpu_millis, now) = (simulator.job_millis(), simulator.gpu_millis(), simulator.now());
        let outcome = simulator.outcome();
        let in_system: i64 = outcome.jobs.iter().filter(|job| job.submit <= now)
            .map(|job| (job.finish.unwrap_or(now) - job.submit).as_millis()).sum();
        prop_assert_eq!(in_system, job_millis);
        prop_assert_eq!(outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum::<i64>(), gpu_millis);
        prop_assert_eq!(outcome.truncated, outcome.jobs.iter().any(|job| job.finish.is_none()));
        for job in outcome.jobs.iter().filter(|job| job.finish.is_some()) {
            prop_assert!(job.start.unwrap() >= job.submit && job.finish.unwrap() >= job.start.unwrap());
            prop_assert!(job.restarting <= job.executed);
        }
        let again = Simulator::new(scenario).run(&mut Chaos::new(seed)).unwrap();
        prop_assert_eq!(again, outcome);
    }

    #[test]
    fn a_snapshot_continues_like_the_original(seed in 0u64..1000, at in 1usize..40) {
        let scenario = scenario("4x4", mixed_jobs(seed, 16, 60), options(Batching::Catalog, 0.0, None));
        let (mut simulator, mut policy) = (Simulator::new(scenario), Chaos::new(seed));
        for _ in 0..at {
            if simulator.run_until_decision().unwrap() != Status::Decision { break }
            let plan = policy.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
        }
        let (copy, mut same) = (simulator.clone(), Chaos(policy.0.clone()));
        prop_assert_eq!(simulator.run(&mut policy).unwrap(), copy.run(&mut same).unwrap());
    }
}

#[test]
fn estimates_stay_with_the_job_and_have_median_one() {
    let jobs = (0..400).map(|index| fixed(&format!("{index}"), 0, 1, 1000)).collect();
    let options = SimOptions { information: Information::Estimate { sigma: 0.5 }, ..churn_only() };
    let mut simulator = Simulator::new(scenario("4x4", jobs, options));
    simulator.run_until_decision().unwrap();
    let mut ratio: Vec<f64> = simulator.view().jobs().map(|job| job.remaining_work().unwrap() / 1000.0).collect();
    ratio.sort_by(f64::total_cmp);
    assert!((ratio[200].ln()).abs() < 0.1, "median {}", ratio[200]);
    let spread = ratio.iter().map(|r| r.ln().powi(2)).sum::<f64>() / 400.0;
    assert!((spread.sqrt() - 0.5).abs() < 0.05, "{spread}");
    let _: Arc<_> = simulator.scenario().clone();
}
