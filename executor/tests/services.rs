//! A policy that decides about services, loans and training jobs decides live as it does in
//! simulation.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goodput_agents::compose;
use goodput_agents::compose::loaning::{Sharing, Variant};
use goodput_configs::live::guard::GuardConfig;
use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::guard::Guard;
use goodput_env::job::{JobId, Work, Workload};
use goodput_env::plan::Scale;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Rounds, Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServiceId, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use goodput_executor::daemon::decide::orders::orders;
use goodput_executor::daemon::guard::rules::{Canary, Circumstances, Rule, admit};
use goodput_executor::daemon::observe::{ClusterObserver, Setting};
use goodput_executor::engine::sim::SimEngine;
use goodput_executor::engine::{ClusterSnapshot, Engine, EngineAction, StepOutcome, verify};

use goodput_testkit::jobs::{application, jobs};

/// Service with replicas that answer 100 requests per second each, one at a time, and with between
/// 50 and `most` of them in waves of two hours.
fn service(name: &str, most: f64) -> Arc<Service> {
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.01 }]).unwrap();
    let wave = |step: usize| (step % 24).min(24 - step % 24) as f64 / 12.0;
    let per_sec: Vec<f64> = (0..72).map(|step| 50.0 + (most - 50.0) * wave(step)).collect();
    Arc::new(Service {
        name: name.into(),
        tenant: 0,
        rates: RateSeries::new(SimTime::from_secs(300), &per_sec).unwrap(),
        arrival_cv2: 1.0,
        work_cv2: 0.0,
        profiles: BTreeMap::from([("gpu".to_string(), profile)]),
        reference: "gpu".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
        cold_start: SimTime::from_secs(10),
        drain: SimTime::from_secs(2),
        min_replicas: 1,
        max_replicas: 64,
    })
}

/// Training and inference pools, two services, and more jobs than the training pool can take.
fn scenario(options: SimOptions, seed: u64) -> Scenario {
    let mut cluster = Cluster::parse("gpu:2x4").unwrap();
    cluster.nodes.iter_mut().for_each(|node| node.pool = Pool::Training);
    cluster.add_to(Pool::Inference, "gpu", 4, 4);
    let mut workload = Workload::new(vec![application()], jobs(seed, 60, 120_000, |_| Work::application(0)));
    workload.services = vec![service("web", 700.0), service("chat", 300.0)];
    Scenario::new(Arc::new(cluster), Arc::new(workload), options, seed)
}

fn observer(scenario: &Scenario) -> ClusterObserver {
    let setting = Setting {
        applications: scenario.workload.applications.clone(),
        tenants: scenario.workload.tenants.clone(),
        options: scenario.options.clone(),
        speedup: 1.0,
        start: SimTime::ZERO,
    };
    ClusterObserver::new(setting).since(0)
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Snapshot of a simulated cluster, as a recording on disk holds it.
fn recorded(simulator: &Simulator) -> ClusterSnapshot {
    let snapshot = block(SimEngine::of(simulator.clone()).snapshot()).unwrap();
    serde_json::from_str(&serde_json::to_string(&snapshot).unwrap()).unwrap()
}

fn mixed(training: &str, variant: Variant, seed: u64) -> Box<dyn Policy> {
    Box::new(variant.around(compose::by_name(training, seed).unwrap(), &Sharing::default()))
}

fn options(policy: &dyn Policy) -> SimOptions {
    let rounds = Rounds { period: Some(SimTime::from_secs(60)), on_churn: true };
    let information = Information::Estimate { sigma: 0.5 };
    SimOptions { rounds, information, batching: policy.batching(), ..SimOptions::standard() }
}

#[test]
fn a_mixed_policy_decides_live_as_in_simulation() {
    for (training, variant) in [("srtf", Variant::Reactive), ("aryl", Variant::Forecast), ("tiresias", Variant::None)] {
        let policies = || mixed(training, variant, 7);
        let (mut direct, mut live) = (policies(), policies());
        let scenario = scenario(options(&*direct), 7);
        let mut observer = observer(&scenario);
        let mut simulator = Simulator::new(Arc::new(scenario));
        let (mut scaled, mut lent, mut returned) = (0, 0, 0);
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let view = simulator.view();
            let snapshot = recorded(&simulator);
            let cluster = observer.read(&snapshot, &[]).unwrap();
            let mut shown = cluster.view();
            shown.trigger = view.trigger;
            for (one, other) in view.services().zip(shown.services()) {
                assert_eq!(
                    (one.history(), one.is_over()),
                    (other.history(), other.is_over()),
                    "{} of {training}",
                    one.name()
                );
            }
            let (plan, same) = (direct.decide(&view), live.decide(&shown));
            assert_eq!(plan, same, "{training} at {}", view.now);
            scaled += plan.scale.len();
            (lent, returned) = (lent + plan.lend.len(), returned + plan.reclaim.len());
            // The orders of the plan, carried out by the simulated engine, lead to the state that
            // the plan leads to.
            let mut engine = SimEngine::of(simulator.clone());
            let given = orders("test", &plan, &shown, &observer, &snapshot, 0);
            for receipt in block(engine.apply(&given)).unwrap() {
                assert_eq!(receipt.outcome, StepOutcome::Accepted, "{training} at {}", shown.now);
            }
            simulator.apply(&plan).unwrap();
            assert_eq!(engine.simulator().observed(), simulator.observed(), "{training} at {}", shown.now);
            let after = block(engine.snapshot()).unwrap();
            for order in given.iter().filter(|order| matches!(order.action, EngineAction::Scale { .. })) {
                assert_eq!(verify(order, &after), goodput_executor::engine::OrderProgress::Done, "{order:?}");
            }
            simulator.wake_at(direct.wake_at());
        }
        assert!(scaled > 50, "{training}: only {scaled} changes of replicas");
        assert!(
            variant == Variant::None || (lent > 0 && returned > 0),
            "{training}: {lent} lent, {returned} called back"
        );
    }
}

/// An engine that cannot start replicas gets a plan without them: the services stay as they are,
/// and the log says why.
#[test]
fn replicas_are_left_out_for_an_engine_that_cannot_start_them() {
    let mut policy = mixed("srtf", Variant::Reactive, 7);
    let scenario = scenario(options(&*policy), 7);
    let mut observer = observer(&scenario);
    let mut simulator = Simulator::new(Arc::new(scenario));
    let mut left_out = 0;
    let mut guard = Guard::default();
    let (lends, scales) = (
        Circumstances { can_lend: true, ..Circumstances::default() },
        Circumstances { can_lend: true, can_scale: true, ..Circumstances::default() },
    );
    while left_out < 20 && simulator.run_until_decision().unwrap() == Status::Decision {
        let cluster = observer.read(&recorded(&simulator), &[]).unwrap();
        let view = cluster.view();
        let plan = policy.decide(&view);
        let rules = GuardConfig {
            min_run_secs: 0.0,
            preempt_every_secs: 0.0,
            preempt_percent: 100.0,
            ..GuardConfig::default()
        };
        if !plan.scale.is_empty() {
            let (kept, without) = admit(&rules, &mut guard, &view, &plan, &lends).unwrap();
            assert!(kept.scale.is_empty() && without.contains(&(None, Rule::ServiceScale)), "{without:?}");
            assert!(guard.check(&view, &kept).is_ok());
            left_out += 1;
        }
        let (kept, without) = admit(&rules, &mut guard, &view, &plan, &scales).unwrap();
        assert_eq!(kept.scale, plan.scale);
        assert!(!without.contains(&(None, Rule::ServiceScale)));
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
    }
    assert_eq!(left_out, 20);
    assert!(Rule::ServiceScale.message().contains("replicas of services"));
}

/// A load that is not known is not a load of zero: no replica ends for it, and no node is lent. A
/// canary touches replicas and loans of its nodes only.
#[test]
fn an_unknown_load_takes_nothing_from_services_and_a_canary_keeps_to_its_nodes() {
    let mut policy = mixed("srtf", Variant::Reactive, 7);
    let scenario = scenario(options(&*policy), 7);
    let services: BTreeSet<ServiceId> = (0..2).map(ServiceId).collect();
    let mut simulator = Simulator::new(Arc::new(scenario));
    let mut guard = Guard::default();
    let all = || Circumstances { can_lend: true, can_scale: true, ..Circumstances::default() };
    let unmeasured = Circumstances { unmeasured: services, ..all() };
    let canary = |jobs: &[JobId]| {
        let nodes = [NodeId(4)].into();
        let jobs = (!jobs.is_empty()).then(|| jobs.iter().copied().collect());
        Circumstances { canary: Some(Canary { jobs, nodes: Some(nodes), budget: 9 }), ..all() }
    };
    let rules =
        GuardConfig { min_run_secs: 0.0, preempt_every_secs: 0.0, preempt_percent: 100.0, ..GuardConfig::default() };
    let (mut held_back, mut kept_away) = (0, 0);
    while (held_back < 20 || kept_away < 20) && simulator.run_until_decision().unwrap() == Status::Decision {
        let view = simulator.view();
        let plan = policy.decide(&view);
        let on_node = |scale: &Scale| view.service(scale.service).unwrap().state.replicas_on(scale.node);
        let (kept, without) = admit(&rules, &mut guard, &view, &plan, &unmeasured).unwrap();
        assert!(kept.lend.is_empty() && kept.scale.iter().all(|scale| on_node(scale) <= scale.replicas));
        if !plan.lend.is_empty() || plan.scale.iter().any(|scale| on_node(scale) > scale.replicas) {
            assert!(without.contains(&(None, Rule::LoadUnknown)), "{without:?}");
            assert!(guard.check(&view, &kept).is_ok());
            held_back += 1;
        }
        let (kept, without) = admit(&rules, &mut guard, &view, &plan, &canary(&[])).unwrap();
        assert!(
            kept.scale.iter().map(|scale| scale.node).chain(kept.lend.iter().copied()).all(|node| node == NodeId(4))
        );
        if plan.scale.iter().any(|scale| scale.node != NodeId(4)) {
            assert!(without.contains(&(None, Rule::Canary)), "{without:?}");
            kept_away += 1;
        }
        let (kept, _) = admit(&rules, &mut guard, &view, &plan, &canary(&[JobId(0)])).unwrap();
        assert!(kept.scale.is_empty() && kept.lend.is_empty() && kept.reclaim.is_empty(), "a list of jobs");
        let nothing = Circumstances { canary: Some(Canary { budget: 9, ..Canary::default() }), ..all() };
        let (kept, _) = admit(&rules, &mut guard, &view, &plan, &nothing).unwrap();
        let untouched = kept.changes.is_empty() && kept.scale.is_empty() && kept.lend.is_empty();
        assert!(untouched && kept.reclaim.is_empty(), "a canary without a list does nothing");
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
    }
    assert_eq!((held_back >= 20, kept_away >= 20), (true, true), "{held_back} {kept_away}");
}
