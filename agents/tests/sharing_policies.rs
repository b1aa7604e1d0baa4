//! Treatment of tenants by policies: the attacks on Kubernetes' default queue, KAI's fair share,
//! and presets that trade throughput for determinism.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{fixed, frictionless};
use goodput_agents::compose::by_name;
use goodput_agents::heuristic::kai::fair_share::{ShareQueue, fair_shares};
use goodput_agents::heuristic::kai::usage::DecayedUsage;
use goodput_agents::heuristic::kai::{Kai, KaiConfig};
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobSpec, Workload};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::tenant::{Group, Quota, Tenants};
use goodput_env::time::SimTime;
use proptest::prelude::*;

fn of(tenant: u32, at: usize, gpus: u32, secs: i64, submit: i64) -> JobSpec {
    let mut job = fixed(&format!("t{tenant}-{at}-{submit}"), gpus, secs, submit);
    job.request.tenant = tenant;
    job
}

fn start(cluster: Cluster, jobs: Vec<JobSpec>, tenants: Tenants, options: SimOptions) -> Simulator {
    let mut workload = Workload::new(Vec::new(), jobs);
    workload.tenants = Arc::new(tenants);
    Simulator::new(Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 1)))
}

/// Accelerators held by two tenants after each decision.
fn follow(policy: &mut dyn Policy, mut simulator: Simulator, mut seen: impl FnMut(f64, [u32; 2])) -> Outcome {
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        let mut held = [0; 2];
        simulator.view().jobs().for_each(|job| held[job.request().tenant as usize] += job.gpus());
        seen(simulator.now().as_secs_f64(), held);
    }
    simulator.outcome()
}

/// Alice asks for all eight accelerators with the higher priority, after Bob did; or floods the
/// cluster before Bob.
fn attacks() -> [Vec<JobSpec>; 2] {
    let bob = |submit| (0..8).map(move |at| of(1, at, 1, 1000, submit));
    let mut urgent: Vec<JobSpec> = (0..8).map(|at| of(0, at, 1, 1000, 10)).collect();
    urgent.iter_mut().for_each(|job| job.request.priority = 100);
    urgent.extend(bob(0));
    let mut flood: Vec<JobSpec> = (0..50).map(|at| of(0, at, 1, 1000, 0)).collect();
    flood.extend(bob(10));
    [urgent, flood]
}

#[test]
fn priority_and_flood_monopolise_the_default_queue() {
    for jobs in attacks() {
        let simulator = start(Cluster::homogeneous(1, 8), jobs.clone(), Tenants::default(), frictionless());
        follow(&mut *by_name("kubernetes", 0).unwrap(), simulator, |at, held| {
            if (10.0..1000.0).contains(&at) {
                assert_eq!(held, [8, 0], "at {at}");
            }
        });
        for fair in ["kueue", "kai"] {
            let simulator = start(Cluster::homogeneous(1, 8), jobs.clone(), Tenants::default(), frictionless());
            follow(&mut *by_name(fair, 0).unwrap(), simulator, |at, held| {
                if (10.0..1000.0).contains(&at) {
                    assert_eq!(held, [4, 4], "{fair} at {at}");
                }
            });
        }
    }
}

#[test]
fn fair_shares_of_kai() {
    let queue = |deserved, weight, request| ShareQueue { deserved, weight, request, usage: 0.0 };
    let shares = fair_shares(100.0, &[queue(20.0, 1.0, 60.0), queue(20.0, 3.0, 100.0), queue(30.0, 1.0, 10.0)], 0.0);
    assert_eq!(shares, [32.5, 57.5, 10.0]);
    // Accelerators that the first queue does not request go to the other, whatever their order.
    assert_eq!(fair_shares(100.0, &[queue(0.0, 9.0, 10.0), queue(0.0, 1.0, 200.0)], 0.0), [10.0, 90.0]);
    assert_eq!(fair_shares(100.0, &[queue(0.0, 1.0, 200.0), queue(0.0, 9.0, 10.0)], 0.0), [90.0, 10.0]);
    let mut greedy = [queue(0.0, 1.0, 200.0); 2];
    greedy[0].usage = 0.5;
    assert_eq!(fair_shares(100.0, &greedy, 0.0), [50.0, 50.0]);
    assert_eq!(fair_shares(100.0, &greedy, 1.0), [100.0 / 3.0, 200.0 / 3.0]);
}

proptest! {
    /// No queue gets more than it asks for, all is given or no queue wants more, and the order of
    /// queues does not matter.
    #[test]
    fn fair_shares_are_fair(queues in prop::collection::vec((0_u32..30, 1_u32..5, 0_u32..80), 1..6)) {
        let queues: Vec<ShareQueue> = queues.into_iter().map(|(deserved, weight, request)| ShareQueue {
            deserved: f64::from(deserved), weight: f64::from(weight), request: f64::from(request), usage: 0.0,
        }).collect();
        let shares = fair_shares(150.0, &queues, 0.0);
        let asked: f64 = queues.iter().map(|queue| queue.request).sum();
        prop_assert!(shares.iter().zip(&queues).all(|(share, queue)| *share <= queue.request + 1e-9));
        prop_assert!((shares.iter().sum::<f64>() - asked.min(150.0)).abs() < 1e-6);
        let reversed: Vec<ShareQueue> = queues.iter().rev().copied().collect();
        let mut back = fair_shares(150.0, &reversed, 0.0);
        back.reverse();
        prop_assert!(shares.iter().zip(back).all(|(one, other)| (one - other).abs() < 1e-9));
    }
}

#[test]
fn usage_is_forgotten_by_half() {
    let mut usage = DecayedUsage::new(SimTime::from_secs(100));
    usage.hold(0, 4);
    usage.advance(SimTime::from_secs(100_000));
    assert!((usage.part(0, 8) - 0.5).abs() < 1e-9, "half of the cluster for ever");
    usage.hold(0, 0);
    usage.advance(SimTime::from_secs(100_100));
    assert!((usage.part(0, 8) - 0.25).abs() < 1e-9);
}

#[test]
fn a_job_is_protected_until_it_has_run_for_its_minimum() {
    let mut jobs: Vec<JobSpec> = (0..8).map(|at| of(0, at, 1, 1000, 0)).collect();
    jobs.extend((0..4).map(|at| of(1, at, 1, 1000, 100)));
    let mut states = Vec::new();
    let config = KaiConfig { min_runtime: SimTime::from_secs(300), ..KaiConfig::default() };
    let simulator = start(Cluster::homogeneous(1, 8), jobs, Tenants::default(), frictionless());
    follow(&mut Kai::new(config), simulator, |at, held| states.push((at, held)));
    assert_eq!(states[..3], [(0.0, [8, 0]), (100.0, [8, 0]), (300.0, [4, 4])]);
}

/// Two tenants with jobs that need the whole cluster: without memory one of them never runs; with
/// it, they take turns.
#[test]
fn time_aware_fairness_takes_turns() {
    let jobs = || (0..12).flat_map(|at| [of(0, at, 8, 3600, 0), of(1, at, 8, 3600, 0)]).collect::<Vec<_>>();
    let order = |name: &str| {
        let mut runs = Vec::new();
        let simulator = start(Cluster::homogeneous(1, 8), jobs(), Tenants::default(), frictionless());
        follow(&mut *by_name(name, 0).unwrap(), simulator, |at, held| {
            if at % 3600.0 == 0.0 {
                runs.push(usize::from(held[1] > 0));
            }
        });
        runs.truncate(8);
        runs.iter().sum::<usize>()
    };
    assert_eq!(order("kai"), 0);
    assert_eq!(order("kai-time-aware"), 4);
}

/// A steady tenant beside a bursty one, with half the cluster each. Static allocation keeps the
/// steady tenant's times as if it were alone and never moves a job; lending with preemption
/// finishes all work sooner, and pays with restarts.
#[test]
fn static_allocation_buys_determinism_with_throughput() {
    let quota = || BTreeMap::from([("gpu".to_string(), Quota { nominal: 4, ..Quota::default() })]);
    let halves = || {
        let tenant = |name: &str| Group { cohort: Some("all".into()), quotas: quota(), ..Group::named(name) };
        Tenants::new(vec![tenant("burst"), tenant("steady")], vec![Group::named("all")], vec![], &["gpu"]).unwrap()
    };
    let mut jobs: Vec<JobSpec> = (0..48).map(|at| of(0, at, 1, 4000, 0)).collect();
    jobs.extend((0..20).map(|at| of(1, at, 4, 500, 1000 * at as i64 + 300)));
    let options = || SimOptions { switch_cost: SimOptions::standard().switch_cost, ..frictionless() };
    let run = |name: &str| {
        let simulator = start(Cluster::homogeneous(2, 4), jobs.clone(), halves(), options());
        let names: Vec<u32> = simulator.scenario().workload.jobs.iter().map(|job| job.request.tenant).collect();
        let outcome = follow(&mut *by_name(name, 0).unwrap(), simulator, |_, _| {});
        let jct = |tenant: u32| -> Vec<f64> {
            let of = outcome.jobs.iter().filter(|job| names[job.job.index()] == tenant);
            of.map(|job| job.jct().unwrap().as_secs_f64()).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let variance = |values: &[f64]| mean(&values.iter().map(|v| (v - mean(values)).powi(2)).collect::<Vec<_>>());
        let restarts: u32 = outcome.jobs.iter().map(|job| job.restarts).sum();
        (restarts, mean(&jct(0)), mean(&jct(1)), variance(&jct(1)))
    };
    let (fixed, lend, dynamic) = (run("kueue-static"), run("kueue-lend"), run("kueue"));
    assert_eq!((fixed.0, lend.0), (0, 0), "what does not preempt never restarts");
    assert!(dynamic.0 > 0);
    assert!(dynamic.1 < fixed.1, "the burst is done sooner where idle quota is lent: {dynamic:?} {fixed:?}");
    assert_eq!(fixed.3, 0.0, "every steady job takes the same time");
    assert!(lend.2 > 2.0 * fixed.2, "lent for good, long jobs block the steady tenant: {lend:?} {fixed:?}");
    assert!(dynamic.2 < lend.2);
}
