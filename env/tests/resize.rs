//! Elastic resizes that overlap with training: what they cost, what a storm of commands does, and
//! that no accelerator works twice.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{Chaos, application, elastic, fixed, mixed_jobs, scenario};
use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::model::{BatchLimits, MeasuredStepTimes, PlacementSample, SwitchCost};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Resize, Rounds, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::state::Phase;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use proptest::prelude::*;

const OVERLAPPED: [Resize; 3] = [Resize::Overlapped, Resize::OverlappedMerge, Resize::OverlappedSerial];

/// Every iteration takes `secs`, on 1 to 8 accelerators of a node.
fn steady(secs: f64) -> Arc<Application> {
    let samples: Vec<PlacementSample> = (1..=8)
        .map(|gpus| PlacementSample { shape: vec![gpus], local_bsz: 840 / gpus, step_secs: secs, sync_secs: 0.0 })
        .collect();
    let table = || EpochTable::new(vec![840.0], vec![1.0]).unwrap();
    Arc::new(Application {
        limits: BatchLimits::new(840, 840, 1, 840).unwrap(),
        max_replicas: 8,
        epochs: vec![1e6],
        gradients: GradientTable { sqr: table(), var: table() },
        measured: BTreeMap::from([("gpu".into(), Arc::new(MeasuredStepTimes::new(&samples, &[], &[]).unwrap()))]),
        ..(*application()).clone()
    })
}

/// Carries out commands for the first job on node 0 and looks every second. Any other job gets what
/// is left there.
#[derive(Default)]
struct Script {
    /// Commands as pairs of (second, accelerators).
    commands: Vec<(i64, u32)>,
    /// (second, accelerators held, accelerators that make progress).
    seen: Vec<(i64, u32, u32)>,
    now: i64,
}

impl Policy for Script {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.now = view.now.as_millis() / 1000;
        let mut plan = Plan::keep();
        let due = self.commands.iter().rfind(|(at, _)| *at <= self.now);
        let Some(job) = view.job(JobId(0)) else { return plan };
        if let Some(&(_, gpus)) = due {
            if gpus != job.gpus() {
                plan.set(JobId(0), Placement::on(NodeId(0), gpus));
            }
            for other in view.jobs().skip(1) {
                plan.set(other.id(), Placement::on(NodeId(0), 8 - gpus));
            }
        }
        let running = if job.state.phase == Phase::Running { job.state.share().gpus() } else { 0 };
        self.seen.push((self.now, job.gpus(), running));
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        Some(SimTime::from_secs(self.now + 1))
    }
}

fn options(resize: Resize, cost_secs: i64, horizon_secs: i64) -> SimOptions {
    SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        resize,
        switch_cost: SwitchCost::Constant { millis: cost_secs * 1000 },
        batching: Batching::Requested,
        information: Information::Oracle,
        horizon: Some(SimTime::from_secs(horizon_secs)),
        ..SimOptions::standard()
    }
}

fn play(secs: f64, jobs: Vec<JobSpec>, commands: &[(i64, u32)], options: SimOptions) -> (Outcome, f64, Script) {
    let workload = Workload::new(vec![steady(secs)], jobs);
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(1, 8)), Arc::new(workload), options, 0);
    let (mut simulator, mut policy) = (Simulator::new(Arc::new(scenario)), Script::default());
    policy.commands = commands.to_vec();
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
    }
    let done = simulator.view().job(JobId(0)).unwrap().state.done(simulator.now());
    (simulator.outcome(), done, policy)
}

/// Seconds without progress and idle GPU-seconds of one change of size at second 100.
fn cost_of(from: u32, to: u32, resize: Resize, cost_secs: i64) -> (f64, f64) {
    let run = |commands: &[(i64, u32)]| play(1.0, vec![elastic("a", 0, 8)], commands, options(resize, cost_secs, 200));
    let (changed, unchanged) = (run(&[(0, from), (100, to)]), run(&[(0, from)]));
    let idle = changed.0.idle_gpu_millis - unchanged.0.idle_gpu_millis;
    (unchanged.1 - changed.1, idle as f64 / 1000.0)
}

/// Start-up takes 18 s; stopping drains for 2 s more.
#[test]
fn what_a_change_of_size_costs() {
    for (from, to, stopped, idle, idle_overlapped) in
        [(2, 4, 20.0, 80.0, 36.0), (4, 2, 20.0, 40.0, 0.0), (4, 8, 20.0, 160.0, 72.0)]
    {
        assert_eq!(cost_of(from, to, Resize::StopRestart, 20), (stopped, idle), "{from} to {to}");
        for resize in OVERLAPPED {
            assert_eq!(cost_of(from, to, resize, 18), (0.0, idle_overlapped), "{from} to {to}, {resize:?}");
        }
    }
}

/// Commands 4, 6, 3 and 8 at seconds 0, 3, 6 and 9: when the last takes effect.
#[test]
fn a_storm_of_commands() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/oracles/oracles.json"));
    let all: serde_json::Value = serde_json::from_str(text).unwrap();
    let commands = [(0, 2), (100, 4), (103, 6), (106, 3), (109, 8)];
    for (key, resize) in ["cancel", "merge", "serial"].into_iter().zip(OVERLAPPED) {
        let (outcome, done, script) = play(1.0, vec![elastic("a", 0, 8)], &commands, options(resize, 20, 300));
        let effective = script.seen.iter().find(|(_, _, running)| *running == 8).unwrap().0;
        assert_eq!(Some(effective - 100), all["coddl_storm"][key].as_i64(), "{key}");
        assert!(
            script.seen.iter().filter(|(at, ..)| *at > 109).all(|(_, held, _)| *held == 8),
            "the books are at once"
        );
        assert_eq!((done, outcome.jobs[0].restarts), (280.0, 0), "{key}: it never stops");
    }
}

#[test]
fn going_back_cancels_and_costs_nothing_more() {
    let (outcome, done, script) =
        play(1.0, vec![elastic("a", 0, 8)], &[(0, 2), (100, 4), (105, 2)], options(Resize::Overlapped, 20, 200));
    assert!(script.seen.iter().filter(|(at, ..)| *at > 20).all(|(_, _, running)| *running == 2));
    // The first start, then two new accelerators for five seconds; what becomes ready at second 120
    // changes nothing.
    assert_eq!((done, outcome.idle_gpu_millis), (180.0, 40_000 + 10_000));
}

/// Iterations of 7 s from second 20 on: an order at second 100 takes effect at 104, a worker that
/// is up at 120 joins at 125.
#[test]
fn shares_change_between_iterations() {
    let one = vec![elastic("a", 0, 8)];
    let (_, _, script) = play(7.0, one, &[(0, 4), (100, 2)], options(Resize::Overlapped, 20, 200));
    let change = script.seen.iter().find(|(_, _, running)| *running == 2).unwrap();
    assert_eq!(*change, (104, 2, 2));
    let one = vec![elastic("a", 0, 8)];
    let (_, _, script) = play(7.0, one, &[(0, 4), (100, 8)], options(Resize::Overlapped, 20, 200));
    assert_eq!(script.seen.iter().find(|(_, _, running)| *running == 8).unwrap().0, 125);
    // The job that gets the accelerators starts when the iteration has ended.
    let two = vec![elastic("a", 0, 8), fixed("b", 100, 4, 10)];
    let (outcome, ..) = play(7.0, two, &[(0, 8), (100, 4)], options(Resize::Overlapped, 20, 200));
    assert_eq!(outcome.jobs[1].finish, Some(SimTime::from_secs(104 + 20 + 10)));
}

/// A job that gets accelerators waits for the end of the other job's iteration, also where its own
/// change comes first in the plan and costs nothing.
#[test]
fn the_order_within_a_plan_does_not_matter() {
    struct Swap;
    impl Policy for Swap {
        fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
            let mut plan = Plan::keep();
            match view.active() {
                1 => plan.set(JobId(0), Placement::on(NodeId(0), 8)),
                _ => {
                    plan.set(JobId(1), Placement::on(NodeId(0), 4));
                    plan.set(JobId(0), Placement::on(NodeId(0), 4));
                }
            }
            plan
        }
    }
    let workload = Workload::new(vec![steady(7.0)], vec![elastic("a", 0, 8), fixed("b", 100, 4, 10)]);
    let scenario =
        Scenario::new(Arc::new(Cluster::homogeneous(1, 8)), Arc::new(workload), options(Resize::Overlapped, 0, 200), 0);
    let outcome = Simulator::new(Arc::new(scenario)).run(&mut Swap).unwrap();
    assert_eq!(outcome.jobs[1].finish, Some(SimTime::from_secs(105 + 10)));
}

/// A (2 accelerators) is told to leave one, which B gets. Before A's iteration ends, A is given
/// another accelerator, which C is told to leave; C's iteration ends later. A waits for C then, not
/// for what it left to B.
#[test]
fn what_was_promised_to_another_is_not_taken_back() {
    struct Three;
    impl Policy for Three {
        fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
            let mut plan = Plan::keep();
            let mut set = |job: u32, gpus: u32| plan.set(JobId(job), Placement::on(NodeId(0), gpus));
            match view.now.as_millis() {
                0 => set(0, 2),
                3_000 => set(1, 6),
                9_000 => [(0, 1), (2, 1)].into_iter().for_each(|(job, gpus)| set(job, gpus)),
                9_500 => [(1, 5), (0, 2)].into_iter().for_each(|(job, gpus)| set(job, gpus)),
                _ => {}
            }
            plan
        }

        fn wake_at(&self) -> Option<SimTime> {
            Some(SimTime::from_millis(9_500))
        }
    }
    let jobs = vec![elastic("a", 0, 8), elastic("c", 3, 8), elastic("b", 9, 8)];
    let workload = Workload::new(vec![steady(5.0)], jobs);
    let options = options(Resize::Overlapped, 0, 40);
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(1, 8)), Arc::new(workload), options, 0);
    let (mut simulator, mut policy) = (Simulator::new(Arc::new(scenario)), Three);
    let mut both = Vec::new();
    let mut second = 9_500;
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        let busy = at_work(&simulator.view())[0];
        assert!(busy <= 8, "{busy} accelerators of 8 are at work at {}", simulator.now());
        both.push((simulator.now().as_millis(), busy));
        second += if simulator.now().as_millis() >= second { 500 } else { 0 };
        simulator.wake_at(Some(SimTime::from_millis(second)));
    }
    assert!(both.iter().any(|&(at, busy)| at > 13_000 && busy == 8), "all are at work in the end: {both:?}");
}

/// By node: accelerators that make progress.
fn at_work(view: &ClusterView<'_>) -> Vec<u32> {
    let mut nodes = vec![0; view.cluster().nodes.len()];
    for job in view.jobs().filter(|job| job.state.phase == Phase::Running) {
        for slice in job.state.share().slices() {
            nodes[slice.node.index()] += slice.gpus;
        }
    }
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_accelerator_works_twice_and_none_is_lost(
        seed in any::<u64>(),
        resize in prop::sample::select(OVERLAPPED.to_vec()),
        batching in prop::sample::select(vec![Batching::Requested, Batching::Agent, Batching::Catalog]),
        interference in prop::sample::select(vec![0.0, 0.25]),
        cost in 0_i64..60,
    ) {
        let options = SimOptions {
            rounds: Rounds { period: Some(SimTime::from_secs(7)), on_churn: true },
            horizon: None,
            resize,
            batching,
            interference,
            switch_cost: SwitchCost::Constant { millis: cost * 1000 },
            ..SimOptions::standard()
        };
        let scenario = scenario("4x4", mixed_jobs(seed, 12, 60), options);
        let (mut simulator, mut policy) = (Simulator::new(scenario.clone()), Chaos::new(seed));
        let mut decisions = 0;
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let view = simulator.view();
            let held: u32 = view.jobs().map(|job| job.gpus()).sum();
            prop_assert_eq!(held + view.total_free(), 16);
            prop_assert!(at_work(&view).iter().all(|&gpus| gpus <= 4), "{:?}", at_work(&view));
            decisions += 1;
            // A storm for half an hour, then peace: every job must come to what it was given last.
            let plan = if decisions < 250 || view.jobs().any(|job| job.gpus() == 0) { policy.decide(&view) } else { Plan::keep() };
            simulator.apply(&plan).unwrap();
            prop_assert!(at_work(&simulator.view()).iter().all(|&gpus| gpus <= 4));
        }
        let gpu_millis = simulator.gpu_millis();
        let outcome = simulator.outcome();
        prop_assert_eq!(outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum::<i64>(), gpu_millis);
        prop_assert!((0..=gpu_millis).contains(&outcome.idle_gpu_millis));
        prop_assert!(outcome.jobs.iter().all(|job| job.finish.is_some()));
    }

    #[test]
    fn after_a_storm_the_last_command_holds(seed in any::<u64>(), resize in prop::sample::select(OVERLAPPED.to_vec()), storm in prop::collection::vec((0_i64..15, 1_u32..=8), 1..12)) {
        let mut at = 100;
        let mut commands = vec![(0, 1 + (seed % 8) as u32)];
        commands.extend(storm.into_iter().map(|(gap, gpus)| {
            at += gap;
            (at, gpus)
        }));
        let last = commands.last().unwrap().1;
        let (outcome, done, script) = play(0.7, vec![elastic("a", 0, 8)], &commands, options(resize, 20, 1000));
        prop_assert_eq!(script.seen.last().unwrap(), &(1000, last, last));
        prop_assert_eq!(outcome.jobs[0].restarts, 0);
        prop_assert!((done - 980.0 / 0.7).abs() < 1e-6, "{}", done);
    }
}
