//! Every policy under faults: no plan is refused, no work is left undone, and the state of a policy
//! survives a crash.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::random_workload;
use goodput_agents::compose::{by_name, names};
use goodput_agents::heuristic::pollux::Pollux;
use goodput_agents::heuristic::pollux::genetic::GeneticConfig;
use goodput_env::cluster::{AcceleratorType, Cluster, Node, NodeId, Pool, TypeId};
use goodput_env::model::fault::{Bugs, Cause, Causes, LogNormal, Scripted};
use goodput_env::model::{Checkpointing, FaultModel};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Preset, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, SimError, Simulator, Status};
use goodput_env::time::SimTime;
use proptest::prelude::*;

/// Policy of this name; the genetic searches with smaller settings.
fn policy(name: &str, seed: u64) -> Box<dyn Policy> {
    let small = GeneticConfig { population: 10, generations: 6, ..GeneticConfig::default() };
    match name {
        "pollux" => Box::new(Pollux::new(small, seed)),
        "pollux-noavoid" => Box::new(Pollux::new(GeneticConfig { avoid_interference: false, ..small }, seed)),
        _ => by_name(name, seed).unwrap(),
    }
}

fn faults() -> FaultModel {
    FaultModel {
        mtbf_hours: 3.0,
        causes: Causes { accelerator: 1.0, node: 1.0, network: 0.5 },
        repair: LogNormal { median_secs: 300.0, sigma: 1.0 },
        bugs: Some(Bugs { share: 0.2, ..Bugs::default() }),
        script: vec![
            Scripted { at_secs: 1000.0, cause: Cause::Node, node: NodeId(0), lasts_secs: Some(900.0) },
            Scripted { at_secs: 1500.0, cause: Cause::Scheduler, node: NodeId(0), lasts_secs: Some(400.0) },
        ],
        ..FaultModel::default()
    }
}

fn scenario(name: &str, seed: u64, jobs: usize, shape: u32, flavour: u32) -> Arc<Scenario> {
    let cluster = match shape {
        0 => Cluster::homogeneous(1, 8),
        1 => Cluster::homogeneous(5, 4),
        2 => Cluster::homogeneous(20, 2),
        _ => Cluster {
            nodes: [8, 2, 4, 1, 8].map(|gpus| Node { accelerator: TypeId(0), gpus, pool: Pool::default() }).into(),
            ..Cluster::homogeneous(1, 1)
        },
    };
    let workload = random_workload(&mut rng(seed, Stream::Workload), jobs, cluster.total_gpus());
    let made = policy(name, seed);
    let (batching, information) = (made.batching(), made.information());
    let plain = match flavour {
        0 => Preset::PolluxOsdi21.options(batching, information),
        1 => SimOptions { batching, information: Information::Oracle, ..SimOptions::standard() },
        _ => SimOptions {
            rounds: Rounds { period: Some(SimTime::from_secs(300)), on_churn: true },
            interference: 0.25,
            batching,
            information,
            ..SimOptions::standard()
        },
    };
    // Without checkpoints a gang that is stopped every half hour would never end.
    let (faults, checkpoint) = (Some(faults()), Some(Checkpointing::default()));
    let options = SimOptions { faults, checkpoint, horizon: Some(SimTime::from_secs(5 * 86_400)), ..plain };
    Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, seed))
}

fn run(name: &str, seed: u64, scenario: &Arc<Scenario>) -> Result<Outcome, SimError> {
    Simulator::new(scenario.clone()).run(&mut *policy(name, seed))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_policy_trips_over_what_breaks(seed in any::<u64>(), jobs in 1_usize..25, shape in 0_u32..4, flavour in 0_u32..3) {
        for name in names() {
            let scenario = scenario(name, seed, jobs, shape, flavour);
            match run(name, seed, &scenario) {
                Ok(outcome) => prop_assert!(!outcome.truncated, "{name} left work undone"),
                Err(error) => prop_assert!(false, "{name}, seed {seed}, {jobs} jobs, shape {shape}, flavour {flavour}: {error}"),
            }
        }
    }
}

#[test]
fn no_policy_trips_over_what_breaks_where_types_differ() {
    let types = ["a", "b"].map(AcceleratorType::named);
    let nodes = [(0, 4), (1, 4), (0, 4), (1, 4), (1, 4)].map(|(accelerator, gpus)| Node {
        accelerator: TypeId(accelerator),
        gpus,
        pool: Pool::default(),
    });
    let cluster = Arc::new(Cluster { types: types.into(), nodes: nodes.into() });
    for seed in 0..8 {
        let mut workload = random_workload(&mut rng(seed, Stream::Workload), 15, 8);
        for app in &mut workload.applications {
            let app = Arc::get_mut(app).unwrap();
            let params = app.params["gpu"];
            app.params = ["a", "b"].map(|name| (name.to_string(), params)).into();
        }
        let workload = Arc::new(workload);
        for name in names() {
            let made = policy(name, seed);
            let options = SimOptions {
                batching: made.batching(),
                information: Information::Oracle,
                faults: Some(faults()),
                checkpoint: Some(Checkpointing::default()),
                ..SimOptions::standard()
            };
            let scenario = Arc::new(Scenario::new(cluster.clone(), workload.clone(), options, seed));
            let outcome = run(name, seed, &scenario).unwrap_or_else(|error| panic!("{name} {seed}: {error}"));
            assert!(!outcome.truncated, "{name} {seed}");
        }
    }
}

/// A policy must not keep for good what it decided while no accelerator was left.
#[test]
fn what_arrives_while_the_only_node_is_down_runs_once_it_is_repaired() {
    let script = vec![Scripted { at_secs: 50.0, cause: Cause::Node, node: NodeId(0), lasts_secs: Some(2000.0) }];
    let model = FaultModel { mtbf_hours: f64::INFINITY, script, ..FaultModel::default() };
    for name in names() {
        for seed in 0..3 {
            let mut workload = random_workload(&mut rng(seed, Stream::Workload), 6, 8);
            for (job, secs) in workload.jobs.iter_mut().zip((100..).step_by(300)) {
                job.request.submit = SimTime::from_secs(secs);
            }
            let made = policy(name, seed);
            let options = SimOptions {
                batching: made.batching(),
                information: Information::Oracle,
                faults: Some(model.clone()),
                horizon: Some(SimTime::from_secs(86_400)),
                ..SimOptions::standard()
            };
            let cluster = Arc::new(Cluster::homogeneous(1, 8));
            let scenario = Arc::new(Scenario::new(cluster, Arc::new(workload), options, seed));
            let outcome = run(name, seed, &scenario).unwrap_or_else(|error| panic!("{name} {seed}: {error}"));
            assert!(!outcome.truncated, "{name} {seed}");
        }
    }
}

/// Plans up to decision `at`, and the plan at that decision.
fn log_until(name: &str, seed: u64, scenario: &Arc<Scenario>, at: usize) -> Option<(Vec<Plan>, Plan)> {
    let (mut simulator, mut policy) = (Simulator::new(scenario.clone()), policy(name, seed));
    let mut log = Vec::new();
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        if log.len() == at {
            return Some((log, plan));
        }
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        log.push(plan);
    }
    None
}

/// Policies that depend on the view alone: their next plan does not need a log.
const MEMORYLESS: &[&str] =
    &["fifo", "fifo-backfill", "srtf", "srsf", "srtf-elastic", "optimus", "pollux-fast", "sia", "drf", "allox"];

#[test]
fn a_scheduler_that_crashed_goes_on_from_its_log() {
    for name in names() {
        for seed in 0..6 {
            let scenario = scenario(name, seed, 20, 1, 1 + (seed % 2) as u32);
            for at in [3, 17, 40, 77] {
                let Some((log, next)) = log_until(name, seed, &scenario, at) else { continue };
                let mut fresh = policy(name, seed);
                let mut simulator = Simulator::replay(scenario.clone(), &log, &mut *fresh).unwrap();
                assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
                assert_eq!(fresh.decide(&simulator.view()), next, "{name} after {at} decisions");
                if MEMORYLESS.contains(&name) {
                    assert_eq!(policy(name, seed).decide(&simulator.view()), next, "{name} remembers");
                }
            }
        }
    }
}
