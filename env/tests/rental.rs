//! Rented nodes: start-up, bills to the millisecond, spot nodes that vanish, and the books under random plans.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::job::{JobSpec, Workload};
use goodput_env::model::{FaultModel, Rental, SizeRule, Spot, SwitchCost};
use goodput_env::placement::pack;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator, SizeChange, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use crate::support::{Chaos, application, elastic, fixed, mixed_jobs};

/// Gives every waiting job its place, and an elastic one all that is free.
struct Greedy;

impl Policy for Greedy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        for job in view.jobs() {
            let all: u32 = free.iter().sum();
            let gpus = job.max_gpus().min(job.gpus() + all);
            if gpus < job.min_gpus() || gpus == job.gpus() {
                continue;
            }
            job.state.placement.slices().iter().for_each(|slice| free[slice.node.index()] += slice.gpus);
            plan.set(job.id(), pack(view.cluster(), &mut free, TypeId(0), gpus).unwrap_or_default());
        }
        plan
    }
}

fn scenario(nodes: u32, jobs: Vec<JobSpec>, rental: Rental, seed: u64) -> Arc<Scenario> {
    let options = SimOptions {
        rounds: Rounds { period: Some(SimTime::from_secs(60)), on_churn: true },
        switch_cost: SwitchCost::Zero,
        batching: Batching::Agent,
        information: Information::Profiled,
        log_allocations: true,
        rental: Some(rental),
        ..SimOptions::standard()
    };
    let workload = Arc::new(Workload::new(vec![application()], jobs));
    Arc::new(Scenario::new(Arc::new(Cluster::homogeneous(nodes, 4)), workload, options, seed))
}

fn run(scenario: &Arc<Scenario>) -> Outcome {
    Simulator::new(scenario.clone()).run(&mut Greedy).unwrap()
}

fn secs(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}

#[test]
fn a_node_is_paid_from_its_order_and_has_capacity_after_its_start_up() {
    let fixed_size = Rental { rule: SizeRule::Fixed, ..Rental::default() };
    let scenario = scenario(3, vec![fixed("gang", 0, 8, 100)], fixed_size, 0);
    let mut simulator = Simulator::new(scenario.clone());
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    let view = simulator.view();
    assert_eq!((view.cluster().total_gpus(), view.total_free(), view.healthy(NodeId(1))), (4, 4, false));
    let outcome = run(&scenario);
    assert_eq!((outcome.jobs[0].start, outcome.jobs[0].finish), (Some(secs(120)), Some(secs(220))));
    // Three nodes from the start of the run to its end, two of them in service for its last 100 s only.
    assert_eq!((outcome.rental.on_demand_millis, outcome.rental.spot_millis), (3 * 220_000, 0));
    assert_eq!((outcome.rental.ordered, outcome.rental.given_back), (2, 0));
    assert_eq!(outcome.rental.sizes, [SizeChange { at: SimTime::ZERO, nodes: 3 }]);
    assert_eq!(fixed_size.cost(3_600_000, 0), 1.0);
}

/// Terms of a spot node, and a seed under which it is taken back once, in the first minutes of service.
fn taken_back_once(notice_secs: f64) -> (Spot, u64, SimTime) {
    let spot = Spot { mean_hours: 0.1, price_per_hour: 0.25, notice_secs };
    let once = |seed: &u64| {
        let life = |number| spot.lifetime(*seed, 1, number);
        (secs(30)..secs(200)).contains(&life(1)) && life(2) > secs(1000)
    };
    let seed = (0..1000).find(once).unwrap();
    (spot, seed, spot.lifetime(seed, 1, 1))
}

#[test]
fn a_spot_node_leaves_at_its_notice_and_is_paid_until_it_is_gone() {
    let (spot, seed, life) = taken_back_once(60.0);
    let rental = Rental { rule: SizeRule::Fixed, spot: Some(spot), ..Rental::default() };
    let scenario = scenario(2, vec![fixed("gang", 0, 8, 300)], rental, seed);
    let outcome = run(&scenario);
    let job = outcome.jobs[0];
    // In service at 120 s; the new node is ordered when the old one is gone, and no work is lost.
    let finish = secs(120) + life + secs(60) + secs(120) + (secs(300) - life);
    assert_eq!((job.finish, job.restarts), (Some(finish), 1));
    assert_eq!((job.faults.hits, job.faults.lost_gpu_millis), (0, 0));
    let bill = &outcome.rental;
    assert_eq!((bill.on_demand_millis, bill.spot_millis, bill.taken_back), (finish.as_millis(), finish.as_millis(), 1));
    assert_eq!(rental.cost(3_600_000, 3_600_000), 1.25);
}

#[test]
fn a_spot_node_without_notice_vanishes_like_a_node_that_fails() {
    let (spot, seed, life) = taken_back_once(0.0);
    let rental = Rental { rule: SizeRule::Fixed, spot: Some(spot), ..Rental::default() };
    let outcome = run(&scenario(2, vec![fixed("gang", 0, 8, 300)], rental, seed));
    let job = outcome.jobs[0];
    assert_eq!(job.finish, Some(secs(120) + life + secs(120) + secs(300)));
    assert_eq!((job.faults.hits, job.faults.lost_gpu_millis), (1, 8 * life.as_millis()));
}

#[test]
fn the_cluster_grows_with_the_utility_and_shrinks_when_nobody_is_there() {
    let rental = Rental { start_up_secs: 30.0, window: 2, interval_secs: 20.0, ..Rental::default() };
    let late = fixed("late", 4000, 1, 10);
    let outcome = run(&scenario(8, vec![elastic("a", 0, 32), late], rental, 0));
    let sizes: Vec<u32> = outcome.rental.sizes.iter().map(|change| change.nodes).collect();
    let most = *sizes.iter().max().unwrap();
    assert!(most > 1 && sizes.first() == Some(&1) && sizes.last() == Some(&1), "{:?}", outcome.rental.sizes);
    // The job is done in minutes; the size is back at its minimum three samples later.
    let done = outcome.jobs[0].finish.unwrap();
    let last = outcome.rental.sizes.last().unwrap().at;
    assert!(last > done && last <= done + secs(80), "{done} {last}");
    assert_eq!(outcome.rental.ordered, outcome.rental.given_back);
}

#[test]
fn the_throughput_rule_pays_for_more_time_of_nodes_and_is_done_no_later() {
    let bill = |rule| {
        let rental = Rental { rule, start_up_secs: 0.0, window: 2, interval_secs: 20.0, ..Rental::default() };
        let outcome = run(&scenario(8, vec![elastic("a", 0, 32)], rental, 0));
        (outcome.rental.on_demand_millis, outcome.jobs[0].finish.unwrap())
    };
    let ((goodput, slower), (throughput, faster)) = (bill(SizeRule::Goodput), bill(SizeRule::Throughput));
    assert!(goodput < throughput && slower >= faster, "{goodput} {throughput} {slower} {faster}");
}

#[test]
fn a_job_larger_than_the_cluster_gets_the_nodes_it_needs() {
    let outcome = run(&scenario(4, vec![fixed("wide", 0, 16, 100)], Rental::default(), 0));
    // The first sample is at 60 s.
    assert_eq!(outcome.jobs[0].finish, Some(secs(60 + 120 + 100)));
}

/// Starts every job at the size it asks for, and never at another.
struct AsRequested;

impl Policy for AsRequested {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            let gpus = job.request().gpus;
            plan.set(job.id(), pack(view.cluster(), &mut free, TypeId(0), gpus).unwrap_or_default());
        }
        plan
    }
}

#[test]
fn an_elastic_job_gets_what_it_asks_for_where_the_policy_starts_it_at_no_other_size() {
    let mut job = elastic("a", 0, 16);
    job.request.gpus = 12;
    let scenario = scenario(4, vec![job], Rental::default(), 0);
    let outcome = Simulator::new(scenario).run(&mut AsRequested).unwrap();
    // The first sample is at 60 s, and the nodes are in service two minutes later.
    assert_eq!(outcome.jobs[0].start, Some(secs(180)));
}

#[test]
fn books_hold_under_random_plans_faults_and_reclaims_and_runs_repeat() {
    for seed in 0..12 {
        let spot = Spot { mean_hours: 0.2, price_per_hour: 0.3, notice_secs: if seed % 2 == 0 { 0.0 } else { 45.0 } };
        let rental = Rental {
            min_nodes: 1 + seed as u32 % 3,
            rule: [SizeRule::Goodput, SizeRule::Throughput, SizeRule::Fixed][seed as usize % 3],
            window: 3,
            start_up_secs: 90.0,
            spot: (seed % 4 != 3).then_some(spot),
            ..Rental::default()
        };
        let base = scenario(6, mixed_jobs(seed, 30, 60), rental, seed);
        let mut options = base.options.clone();
        options.faults = (seed % 2 == 1).then(|| FaultModel { mtbf_hours: 4.0, ..FaultModel::default() });
        options.horizon = Some(secs(100_000));
        let scenario = Arc::new(Scenario { options, ..(*base).clone() });
        let once = || {
            let (mut simulator, mut chaos) = (Simulator::new(scenario.clone()), Chaos::new(seed));
            while simulator.run_until_decision().unwrap() == Status::Decision {
                let view = simulator.view();
                let held: u32 = view.jobs().map(|job| job.gpus()).sum();
                assert_eq!(held + view.total_free(), view.cluster().total_gpus());
                let plan = chaos.decide(&view);
                simulator.apply(&plan).unwrap();
            }
            simulator.outcome()
        };
        let outcome = once();
        assert_eq!(outcome, once(), "seed {seed}");
        let paid = outcome.rental.on_demand_millis + outcome.rental.spot_millis;
        let held: i64 = outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum();
        assert!(held <= 4 * paid, "seed {seed}: {held} of {paid}");
        let area: i64 = outcome
            .rental
            .sizes
            .iter()
            .zip(outcome.rental.sizes.iter().map(|change| change.at).skip(1).chain([outcome.end]))
            .map(|(change, until)| i64::from(change.nodes) * (until - change.at).as_millis())
            .sum();
        assert_eq!(area, paid, "the sizes over time are the bill: seed {seed}");
    }
}
