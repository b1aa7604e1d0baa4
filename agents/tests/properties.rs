//! Properties of every policy, whatever the jobs: it breaks no rule, finishes all work, and decides
//! alike twice.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use crate::support::random_workload;
use goodput_agents::compose::{by_name, names, policies};
use goodput_agents::heuristic::pollux::Pollux;
use goodput_agents::heuristic::pollux::genetic::GeneticConfig;
use goodput_env::cluster::{AcceleratorType, Cluster, Node, TypeId};
use goodput_env::model::SwitchCost;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Preset, Release, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use proptest::prelude::*;

/// Policy of this name; the genetic searches with smaller settings, so that many workloads can be
/// tried.
fn policy(name: &str, seed: u64) -> Box<dyn Policy> {
    let small = GeneticConfig { population: 10, generations: 6, ..GeneticConfig::default() };
    match name {
        "pollux" => Box::new(Pollux::new(small, seed)),
        "pollux-noavoid" => Box::new(Pollux::new(GeneticConfig { avoid_interference: false, ..small }, seed)),
        _ => by_name(name, seed).unwrap(),
    }
}

fn cluster(shape: u32) -> Cluster {
    match shape {
        0 => Cluster::homogeneous(1, 8),
        1 => Cluster::homogeneous(5, 4),
        2 => Cluster::homogeneous(20, 2),
        _ => Cluster {
            nodes: [8, 2, 4, 1, 8].map(|gpus| Node::new(TypeId(0), gpus)).into(),
            ..Cluster::homogeneous(1, 1)
        },
    }
}

fn options(policy: &dyn Policy, flavour: u32) -> SimOptions {
    let (batching, information) = (policy.batching(), policy.information());
    match flavour {
        0 => Preset::PolluxOsdi21.options(batching, information),
        1 => SimOptions { batching, information: Information::Oracle, ..SimOptions::standard() },
        _ => SimOptions {
            rounds: Rounds { period: Some(SimTime::from_secs(300)), on_churn: true },
            release: Release::NextRound,
            switch_cost: SwitchCost::Zero,
            interference: 0.25,
            batching,
            information,
            ..SimOptions::standard()
        },
    }
}

fn assert_within_capacity(view: &ClusterView<'_>) {
    let held: u32 = view.jobs().map(|job| job.gpus()).sum();
    assert!(held + view.total_free() <= view.cluster().total_gpus());
}

/// Runs to the end; the simulator's guard refuses any plan that breaks a rule.
fn finish(mut policy: Box<dyn Policy>, scenario: &Arc<Scenario>) -> Outcome {
    let mut simulator = Simulator::new(scenario.clone());
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        assert_within_capacity(&simulator.view());
    }
    simulator.outcome()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_policy_breaks_a_rule_or_leaves_work_undone(seed in any::<u64>(), jobs in 1_usize..25, shape in 0_u32..4, flavour in 0_u32..3) {
        let cluster = Arc::new(cluster(shape));
        let workload = Arc::new(random_workload(&mut rng(seed, Stream::Workload), jobs, cluster.total_gpus()));
        for name in names() {
            let options = options(&*policy(name, seed), flavour);
            let scenario = Arc::new(Scenario::new(cluster.clone(), workload.clone(), options, seed));
            let outcome = finish(policy(name, seed), &scenario);
            prop_assert!(!outcome.truncated, "{name} left work undone");
            prop_assert_eq!(&outcome, &finish(policy(name, seed), &scenario), "{} decides differently the second time", name);
        }
    }
}

#[test]
fn no_policy_mixes_types_of_accelerator() {
    let types = ["a", "b"].map(AcceleratorType::named);
    let nodes =
        [(0, 4), (1, 4), (0, 4), (1, 4), (1, 4)].map(|(accelerator, gpus)| Node::new(TypeId(accelerator), gpus));
    let cluster = Arc::new(Cluster { types: types.into(), nodes: nodes.into() });
    for seed in 0..5 {
        let mut workload = random_workload(&mut rng(seed, Stream::Workload), 15, 8);
        for app in &mut workload.applications {
            let app = Arc::get_mut(app).unwrap();
            let params = app.params["gpu"];
            app.params = ["a", "b"].map(|name| (name.to_string(), params)).into();
        }
        let workload = Arc::new(workload);
        for name in names() {
            let options = options(&*policy(name, seed), 1);
            let scenario = Arc::new(Scenario::new(cluster.clone(), workload.clone(), options, seed));
            assert!(!finish(policy(name, seed), &scenario).truncated);
        }
    }
}

#[test]
fn the_list_is_consistent() {
    for entry in policies() {
        let name = entry.name;
        assert!(!entry.about.is_empty() && !entry.source.is_empty());
        assert_eq!(policies().filter(|other| other.name == name).count(), 1);
        assert!(entry.information().allows(entry.build(1).information()));
        assert_eq!(entry.batching(), entry.build(1).batching());
    }
    assert!(by_name("no such policy", 0).is_none());
    assert!(by_name("no such policy@replica", 0).is_none());
}
