//! Services, loans and every training scheduler together.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{fixed, random_workload};
use goodput_agents::bundle::{Card, Model as Kind, PolicyBundle};
use goodput_agents::compose::loaning::{Body, Composite, Orchestrator, Party, Sharing, Terms, Variant, lendable};
use goodput_agents::compose::serving::{
    Ahead, Autoscaler, ForecastingOptions, Now, OracleOutlook, Outlook, Scaling, Sizing,
};
use goodput_agents::compose::{by_name, names};
use goodput_agents::heuristic::pollux::Pollux;
use goodput_agents::heuristic::pollux::genetic::GeneticConfig;
use goodput_agents::policies::rounds::Decoder;
use goodput_agents::policies::utility::{Experience, Group, Theta, Utility, UtilityPolicy};
use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::gym::ExpectedPeak;
use goodput_env::job::Workload;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Preset, Release, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use goodput_forecast::Model;

fn secs(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}

/// One request at a time, 100 a second.
fn service(name: &str, step: SimTime, per_sec: &[f64]) -> Arc<Service> {
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.01 }]).unwrap();
    Arc::new(Service {
        name: name.into(),
        tenant: 0,
        rates: RateSeries::new(step, per_sec).unwrap(),
        arrival_cv2: 1.0,
        work_cv2: 0.0,
        profiles: BTreeMap::from([("gpu".to_string(), profile)]),
        reference: "gpu".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
        cold_start: secs(10),
        drain: secs(2),
        min_replicas: 1,
        max_replicas: 64,
    })
}

/// `days` days of 24 steps of 5 minutes each, between `low` and `high` requests a second.
fn waves(days: usize, low: f64, high: f64) -> Vec<f64> {
    let wave = |step: usize| (step % 24).min(24 - step % 24) as f64 / 12.0;
    (0..24 * days).map(|step| low + (high - low) * wave(step)).collect()
}

fn cluster() -> Cluster {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 3, 4);
    cluster.add_to(Pool::Inference, "gpu", 4, 4);
    cluster
}

fn composite(outlook: Option<Box<dyn Outlook>>, training: Box<dyn Policy>) -> Composite {
    let orchestrator = outlook.map(|outlook| Orchestrator::new(outlook, Terms::default()));
    Composite::new(Autoscaler::new(Box::new(Now), Scaling::default()), orchestrator, training)
}

fn reactive(training: Box<dyn Policy>) -> Composite {
    composite(Some(Box::new(Now)), training)
}

fn scenario(workload: Workload, options: SimOptions, seed: u64) -> Arc<Scenario> {
    Arc::new(Scenario::new(Arc::new(cluster()), Arc::new(workload), options, seed))
}

/// Lent servers run training only, servers at home replicas only.
fn assert_pools(view: &ClusterView<'_>) {
    for (node, id) in view.cluster().nodes.iter().zip(view.cluster().node_ids()) {
        match node.pool {
            Pool::Inference if view.lent(id) => assert_eq!(view.served_on(id), 0),
            Pool::Inference => assert_eq!(view.trained_on(id), 0),
            Pool::Training => assert_eq!(view.served_on(id), 0),
            Pool::Shared => {}
        }
    }
}

fn finish(policy: &mut dyn Policy, scenario: &Arc<Scenario>, mut check: impl FnMut(&ClusterView<'_>)) -> Outcome {
    let mut simulator = Simulator::new(scenario.clone());
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        assert_pools(&simulator.view());
        check(&simulator.view());
    }
    simulator.outcome()
}

fn training(name: &str, seed: u64) -> Box<dyn Policy> {
    let small = GeneticConfig { population: 10, generations: 6, ..GeneticConfig::default() };
    match name {
        "pollux" => Box::new(Pollux::new(small, seed)),
        "pollux-noavoid" => Box::new(Pollux::new(GeneticConfig { avoid_interference: false, ..small }, seed)),
        _ => by_name(name, seed).unwrap(),
    }
}

#[test]
fn whole_servers_above_need_and_headroom() {
    // 40 servers of 8; 100 accelerators needed and 2 % on top leave 218 for 27 whole servers.
    assert_eq!(lendable(320, 100.0, 0.02, 8), 27);
    assert_eq!(lendable(320, 0.0, 0.02, 8), 40);
    assert_eq!(lendable(320, 320.0, 0.0, 8), 0);
    assert_eq!(lendable(320, 400.0, 0.02, 8), 0);
    assert_eq!(lendable(102, 100.0, 0.02, 1), 0);
}

#[test]
fn every_training_policy_runs_with_loaning() {
    for seed in 0..2 {
        for (flavour, name) in names().into_iter().enumerate() {
            let policy = training(name, seed);
            let (batching, information) = (policy.batching(), policy.information());
            let standard = SimOptions { batching, information, ..SimOptions::standard() };
            let options = match (flavour as u64 + seed) % 3 {
                0 => Preset::PolluxOsdi21.options(batching, information),
                1 => SimOptions { rounds: Rounds { period: None, on_churn: true }, ..standard },
                _ => SimOptions {
                    rounds: Rounds { period: Some(secs(300)), on_churn: true },
                    release: Release::NextRound,
                    interference: 0.25,
                    ..standard
                },
            };
            let mut workload = random_workload(&mut rng(seed, Stream::Workload), 15, 8);
            workload.services = vec![service("web", secs(300), &waves(2, 50.0, 700.0))];
            let scenario = scenario(workload, options, seed);
            let outcome = finish(&mut reactive(policy), &scenario, |_| {});
            assert!(!outcome.truncated, "{name} left work undone");
            assert!(outcome.loans.lent > 0 && outcome.loans.returned > 0, "{name}: {:?}", outcome.loans);
            let again = finish(&mut reactive(training(name, seed)), &scenario, |_| {});
            assert_eq!(outcome, again, "{name} decides differently the second time");
        }
    }
}

fn options() -> SimOptions {
    SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    }
}

/// More work than the training pool can take, beside a service that is quiet for most of the time.
fn busy(services: Vec<Arc<Service>>) -> Workload {
    let jobs =
        (0..60).map(|at| fixed(&format!("j{at}"), 1 + at % 4, 1500 + 100 * i64::from(at % 7), 400 * i64::from(at)));
    Workload { services, ..Workload::new(Vec::new(), jobs.collect()) }
}

fn mean_jct(outcome: &Outcome) -> f64 {
    let jcts = outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64());
    jcts.sum::<f64>() / outcome.jobs.len() as f64
}

#[test]
fn loaning_helps_training_and_returns_in_time() {
    let scenario = scenario(busy(vec![service("web", secs(300), &waves(5, 50.0, 900.0))]), options(), 1);
    let outlooks: [(&str, Option<Box<dyn Outlook>>); 4] = [
        ("none", None),
        ("reactive", Some(Box::new(Now))),
        ("forecast", Some(Box::new(Ahead::new(ForecastingOptions::by(Model::Day))))),
        ("oracle", Some(Box::new(OracleOutlook(Sizing::Utilisation)))),
    ];
    let runs: Vec<(&str, Outcome)> = outlooks
        .into_iter()
        .map(|(name, outlook)| {
            let mut policy = composite(outlook, by_name("aryl", 0).unwrap());
            (name, finish(&mut policy, &scenario, |_| {}))
        })
        .collect();
    assert_eq!(runs[0].1.loans.lent, 0, "nobody lends without an orchestrator");
    for (name, outcome) in &runs[1..] {
        assert!(mean_jct(outcome) < 0.8 * mean_jct(&runs[0].1), "{name}: {} s", mean_jct(outcome));
        assert_eq!(outcome.loans.evictions, 0, "{name} left jobs on a server until its deadline");
        assert!(outcome.loans.longest_reclaim_millis <= 60_000, "{name}: {:?}", outcome.loans);
    }
}

#[test]
fn lent_and_needed_fit_into_the_pool() {
    let scenario = scenario(busy(vec![service("web", secs(300), &waves(5, 50.0, 900.0))]), options(), 1);
    let mut policy = reactive(by_name("aryl", 0).unwrap());
    finish(&mut policy, &scenario, |view| {
        let lent: u32 = view.cluster().node_ids().filter(|&node| view.lent(node)).count() as u32 * 4;
        // 100 requests a second and replica at 70 %.
        let needed = view.services().map(|service| (service.rate() / 70.0).ceil() as u32).sum::<u32>();
        assert!(lent + needed <= 16, "{lent} lent, {needed} needed");
    });
}

#[test]
fn both_schedulers_outlive_the_orchestrator() {
    let scenario = scenario(busy(vec![service("web", secs(300), &waves(5, 50.0, 600.0))]), options(), 1);
    let mut simulator = Simulator::new(scenario.clone());
    let mut policy = reactive(by_name("srtf", 0).unwrap());
    let mut dead_since = None;
    let (mut replicas_after, mut lent) = (Vec::new(), 0);
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        if dead_since.is_some() {
            assert!(plan.lend.is_empty() && plan.reclaim.is_empty());
        }
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        let view = simulator.view();
        let away = NodeId::first(7).filter(|&node| view.lent(node)).count();
        if dead_since.is_none() && away > 0 && view.now > secs(4000) {
            policy.kill_orchestrator();
            (dead_since, lent) = (Some(policy.messages().len()), away);
        } else if dead_since.is_some() {
            assert_eq!(away, lent, "nobody lends or returns");
            replicas_after.extend(view.services().map(|service| service.state.lasting().count()));
        }
    }
    let outcome = simulator.outcome();
    assert!(!outcome.truncated, "training goes on");
    assert!(replicas_after.iter().max() > replicas_after.iter().min(), "services go on scaling");
    assert_eq!(Some(policy.messages().len()), dead_since, "nobody speaks for the dead");
    let said = |body: fn(&Body) -> bool| policy.messages().iter().any(|message| body(&message.body));
    assert!(said(|body| matches!(body, Body::Need { .. })) && said(|body| matches!(body, Body::Lent { .. })));
    assert!(
        policy
            .messages()
            .iter()
            .all(|message| message.from == Party::Orchestrator || message.to == Party::Orchestrator)
    );
}

#[test]
fn flexible_workers_return_without_preemption() {
    // Two elastic jobs fill borrowed servers; when a server has to come back they shrink.
    let mut rates = vec![50.0; 12];
    rates.extend([800.0; 24]);
    let elastic = |at: i64| {
        let mut job = fixed(&format!("e{at}"), 4, 8000, at);
        job.request.elasticity = goodput_env::job::Elasticity::Elastic { min: 4, max: 12 };
        job
    };
    let services = vec![service("web", secs(300), &rates)];
    let workload = Workload { services, ..Workload::new(Vec::new(), vec![elastic(0), elastic(1)]) };
    let scenario = scenario(workload, options(), 1);
    let mut policy = reactive(by_name("aryl", 0).unwrap());
    let mut least = u32::MAX;
    let outcome = finish(&mut policy, &scenario, |view| {
        if view.now > secs(60) {
            least = view.jobs().map(|job| job.gpus()).min().unwrap_or(least).min(least);
        }
    });
    assert!(outcome.loans.returned > 0);
    assert!(least >= 4, "a job went down to {least}");
}

/// Learned utilities with parameters for loans, some of them changed.
fn learned(numbers: &[(&str, f64)]) -> Box<dyn Policy> {
    let theta = Theta::sia().with([Group::Loans]);
    let numbers = theta.names().zip(theta.values()).map(|(name, usual)| {
        let given = numbers.iter().find(|(given, _)| *given == name);
        given.map_or(usual, |(_, value)| *value)
    });
    let theta = theta.clone().of_values(&numbers.collect::<Vec<_>>()).unwrap();
    let decoder = Decoder::new(Batching::Requested, Information::Profiled);
    let card =
        Card { schema_hash: theta.schema_hash(), decoder: serde_json::to_value(decoder).unwrap(), ..Card::default() };
    let model = Kind::Utility(Utility { theta, experience: Experience::default(), siblings: false, efficiency: true });
    let bundle = PolicyBundle { model, normaliser: None, card };
    bundle.policy_sharing(ExpectedPeak::default(), &Sharing::default()).unwrap()
}

fn lending_scenario(seed: u64) -> Arc<Scenario> {
    let mut workload = random_workload(&mut rng(seed, Stream::Workload), 30, 8);
    workload.services = vec![service("web", secs(300), &waves(3, 50.0, 900.0))];
    scenario(workload, SimOptions { information: Information::Profiled, ..options() }, seed)
}

#[test]
fn loans_nothing_was_learned_of_are_those_of_the_published_rule() {
    for seed in 0..3 {
        let scenario = lending_scenario(seed);
        let utility =
            Utility { theta: Theta::sia(), experience: Experience::default(), siblings: false, efficiency: true };
        let plain = UtilityPolicy::new(&utility, Batching::Requested, Information::Profiled);
        let mut plain = Variant::Forecast.around(Box::new(plain), &Sharing::default());
        let published = finish(&mut plain, &scenario, |_| {});
        assert!(published.loans.returned > 0, "{:?}", published.loans);
        assert_eq!(finish(&mut *learned(&[]), &scenario, |_| {}), published);
    }
}

#[test]
fn every_number_of_loans_does_what_it_says() {
    let scenario = lending_scenario(1);
    let loans = |numbers: &[(&str, f64)]| finish(&mut *learned(numbers), &scenario, |_| {}).loans;
    let usual = loans(&[]);
    let lent = |numbers: &[(&str, f64)]| loans(numbers).lent_gpu_millis;
    assert!(lent(&[("loan_margin_servers", 1.0)]) < usual.lent_gpu_millis, "one stays at home");
    assert!(lent(&[("loan_margin_servers", -1.0)]) > usual.lent_gpu_millis, "one more is lent");
    assert!(lent(&[("loan_margin_servers", 9.0)]) == 0, "there are four");
    assert!(lent(&[("loan_caution", 8.0)]) < usual.lent_gpu_millis, "the forecast is taken for too low");
    assert!(lent(&[("loan_rest_periods", 12.0)]) < usual.lent_gpu_millis, "an hour's rest after each call");
    assert!(lent(&[("loan_tolerated_servers", 2.0)]) > usual.lent_gpu_millis, "they are called back later");
}
