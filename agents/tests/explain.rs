//! Explanations: they add up, leave out what the policy does not look at, and depend on what it
//! depends on.
#![cfg(feature = "learn")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{on_slow_and_fast, random_workload};
use goodput_agents::allocation::knapsack::Hull;
use goodput_agents::bundle::{Card, Model, PolicyBundle};
use goodput_agents::nets::normaliser::Normaliser;
use goodput_agents::nets::onnx::OnnxNet;
use goodput_agents::nets::weights::{NetConfig, Weights};
use goodput_agents::policies::explain::{Decision, Explanation};
use goodput_agents::policies::linear::Linear;
use goodput_agents::policies::rounds::Decoder;
use goodput_agents::policies::utility::{Experience, Observer, PARAMETERS, Theta, Utility, UtilityPolicy};
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::gym::{ExpectedPeak, Layout, layout, schema_hash};
use goodput_env::job::JobId;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Simulator, Status};
use goodput_env::view::ClusterView;
use proptest::prelude::*;
use rand::RngExt;

const ESTIMATES: Information = Information::Estimate { sigma: 0.5 };

fn simulator(seed: u64, nodes: u32, jobs: usize, batching: Batching, information: Information) -> Simulator {
    let workload = random_workload(&mut rng(seed, Stream::Workload), jobs, nodes * 4);
    let options = SimOptions { batching, information, ..SimOptions::standard() };
    let cluster = Arc::new(Cluster::homogeneous(nodes, 4));
    Simulator::new(Arc::new(Scenario::new(cluster, Arc::new(workload), options, seed)))
}

/// Workload on two types of accelerator, of which one is three times as fast at computing.
fn on_two_types(seed: u64, nodes: u32, jobs: usize, batching: Batching, information: Information) -> Simulator {
    let workload = on_slow_and_fast(random_workload(&mut rng(seed, Stream::Workload), jobs, nodes * 4));
    let options = SimOptions { batching, information, ..SimOptions::standard() };
    let cluster = Cluster::parse(&format!("slow:{nodes}x4,fast:{nodes}x2")).unwrap();
    Simulator::new(Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, seed)))
}

fn bundle(model: Model, batching: Batching, information: Information) -> PolicyBundle {
    let schema_hash = if let Model::Utility(_) = model { Theta::sia().schema_hash() } else { schema_hash() };
    let decoder = serde_json::to_value(Decoder::new(batching, information)).unwrap();
    PolicyBundle { model, normaliser: None, card: Card { schema_hash, decoder, ..Card::default() } }
}

/// Net with scores of order one; the scores of a new net are almost equal.
fn net(config: &NetConfig, seed: u64) -> Weights {
    net_of(config, layout(8), seed)
}

fn net_of(config: &NetConfig, layout: Layout, seed: u64) -> Weights {
    let mut weights = Weights::new(config, layout, seed);
    let last: Vec<_> =
        weights.layers().iter().filter(|layer| layer.name == "verbs" || layer.name == "actor_out").cloned().collect();
    for layer in last {
        weights.data_mut()[layer.offset..layer.offset + layer.len()].iter_mut().for_each(|weight| *weight *= 100.0);
    }
    weights
}

/// Decisions of which one is shown.
const PERIOD: usize = 7;

/// Decisions of which one is shown where each explanation of a net takes long.
const LONG_PERIOD: usize = 28;

/// Shows `see` one in `period` decisions of a run.
fn watch(
    mut simulator: Simulator,
    bundle: &PolicyBundle,
    period: usize,
    mut see: impl FnMut(&ClusterView<'_>, &Decision),
) {
    let mut policy = bundle.explained(ExpectedPeak::default()).unwrap();
    let mut decisions = 0;
    while simulator.run_until_decision().unwrap() == Status::Decision {
        decisions += 1;
        let view = simulator.view();
        let plan = if decisions % period == 3 {
            let decision = policy.explain(&view);
            see(&view, &decision);
            decision.plan
        } else {
            policy.decide(&view)
        };
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
    }
    assert!(decisions > 3, "{decisions}");
}

/// Explanations of the jobs of a decision. Each is worked out when it is asked for: those of nets take long.
fn explanations(decision: &Decision) -> impl Iterator<Item = (JobId, Explanation)> {
    decision.scores.iter().filter_map(|(job, _)| Some((*job, decision.explain(*job)?)))
}

#[test]
fn contributions_to_the_score_of_a_graph_sum_to_its_difference() {
    let mut seen = 0;
    for name in ["tanh", "attention"] {
        let path = format!("{}/tests/fixtures/onnx/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
        let net = OnnxNet::new(std::fs::read(path).unwrap(), layout(4)).unwrap();
        let bundle = bundle(Model::Onnx(net), Batching::Catalog, ESTIMATES);
        watch(simulator(3, 3, 14, Batching::Catalog, ESTIMATES), &bundle, LONG_PERIOD, |_, decision| {
            for (job, explanation) in explanations(decision).take(2) {
                let difference = (explanation.score - explanation.usual_score).abs();
                seen += 1;
                let residual = explanation.residual().abs();
                assert!(residual <= 1e-3 * difference.max(1e-3) + 1e-4, "{name}, {job:?}: {residual} of {difference}");
                assert_eq!(explanation.contributions.len(), 24);
            }
        });
    }
    assert!(seen > 3, "{seen}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contributions_to_a_nets_score_sum_to_its_difference(seed in 0u64..1000, perceptron in any::<bool>(), normalised in any::<bool>()) {
        let config = if perceptron { NetConfig::Mlp(Default::default()) } else { NetConfig::Set(Default::default()) };
        let weights = net(&config, seed);
        let mut bundle = bundle(Model::Net(weights), Batching::Catalog, ESTIMATES);
        if normalised {
            let mut rng = rng(seed, Stream::Policy);
            let layout = layout(8);
            let mut numbers = |low: f32, high: f32| (0..Normaliser::len(&layout)).map(|_| rng.random_range(low..high)).collect();
            bundle.normaliser = Normaliser::new(layout, numbers(-0.2, 0.5), numbers(0.3, 1.5), 5.0);
        }
        let (mut seen, mut failed) = (0, Vec::new());
        watch(simulator(seed, 3, 14, Batching::Catalog, ESTIMATES), &bundle, LONG_PERIOD, |_, decision| {
            for (job, explanation) in explanations(decision).take(2) {
                // Contributions of either sign may be far larger than the difference that they sum to.
                let size: f64 = explanation.contributions.iter().map(|part| part.contribution.abs()).sum();
                seen += 1;
                if explanation.residual().abs() > 1e-3 * size + 1e-4 {
                    failed.push((job, size, explanation.residual()));
                }
            }
        });
        prop_assert!(seen > 0 && failed.is_empty(), "{seen} {failed:?}");
    }

    #[test]
    fn a_utility_is_taken_apart_exactly_and_explained_by_what_it_goes_by(
        values in prop::collection::vec(-0.6f64..0.6, PARAMETERS), seed in 0u64..1000, nodes in 1u32..5, several in any::<bool>()
    ) {
        let mut theta = Theta::sia().values();
        theta.iter_mut().zip(values).for_each(|(value, change)| *value += change);
        let utility = Utility { theta: Theta::new(&theta).unwrap(), experience: Experience::default(), siblings: false, efficiency: true };
        let bundle = bundle(Model::Utility(utility.clone()), Batching::Agent, Information::Profiled);
        let simulator = if several { on_two_types } else { simulator };
        let run = || simulator(seed, nodes, 14, Batching::Agent, Information::Profiled);
        let mut failed = Vec::new();
        watch(run(), &bundle, PERIOD, |_, decision| {
            for (job, explanation) in explanations(decision) {
                let parts = &explanation.contributions;
                let agree = parts.iter().all(|part| (part.contribution - part.occlusion).abs() < 1e-9);
                if explanation.residual().abs() > 1e-9 || !agree {
                    failed.push((job, explanation.residual()));
                }
            }
        });
        prop_assert!(failed.is_empty(), "{failed:?}");

        // The explained values of sizes, divided by the same knapsack, give the plan of the policy.
        let mut policy = UtilityPolicy::new(&utility, Batching::Agent, Information::Profiled);
        let (mut observer, mut simulator) = (Observer::new(&utility), run());
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let view = simulator.view();
            observer.observe(&view);
            let (worths, capacity) = observer.worths(&view);
            let mut knapsack = Hull::default();
            worths.iter().for_each(|worth| knapsack.group(worth.offers.iter().copied()));
            let chosen = knapsack.solve(&capacity).to_vec();
            let plan = policy.decide(&view);
            for (worth, chosen) in worths.iter().zip(chosen).filter(|(worth, _)| !worth.offers.is_empty()) {
                let job = view.job(worth.job).unwrap();
                let given = plan.changes.iter().find(|change| change.job == worth.job);
                let given = given.map_or(&job.state.placement, |change| &change.placement);
                let kind = |node: NodeId| view.cluster().type_of(node);
                let given = given.slices().first().map(|slice| (kind(slice.node), given.gpus()));
                let chosen = chosen.map(|at| worth.offers[at as usize]);
                prop_assert_eq!(chosen.map(|offer| (offer.kind, offer.weight)), given);
            }
            simulator.apply(&plan).unwrap();
            simulator.wake_at(policy.wake_at());
        }
    }
}

#[test]
fn a_linear_policy_is_taken_apart_exactly() {
    let layout = layout(8);
    let weights = (0..Linear::parameters(&layout)).map(|at| ((at * 37 % 23) as f32 - 11.0) / 7.0).collect();
    let bundle = bundle(Model::Linear(Linear::new(layout, weights).unwrap()), Batching::Catalog, ESTIMATES);
    let mut seen = 0;
    watch(simulator(4, 3, 14, Batching::Catalog, ESTIMATES), &bundle, PERIOD, |_, decision| {
        for (_, explanation) in explanations(decision) {
            assert!(explanation.residual().abs() < 1e-4, "{explanation:?}");
            for part in &explanation.contributions {
                assert!((part.contribution - part.occlusion).abs() < 1e-4, "{part:?}");
            }
            seen += 1;
        }
    });
    assert!(seen > 5, "{seen}");
}

#[test]
fn what_a_net_does_not_look_at_contributes_nothing() {
    let mut weights = net(&NetConfig::Set(Default::default()), 3);
    let first = weights.layers()[0].clone();
    let ignored = 1; // log_age_secs
    let row = first.offset + ignored * first.outputs;
    weights.data_mut()[row..row + first.outputs].fill(0.0);
    let bundle = bundle(Model::Net(weights), Batching::Catalog, ESTIMATES);
    let mut others = 0.0;
    watch(simulator(5, 3, 14, Batching::Catalog, ESTIMATES), &bundle, LONG_PERIOD, |_, decision| {
        for (_, explanation) in explanations(decision).take(2) {
            let part = &explanation.contributions[ignored];
            assert_eq!((part.feature.as_str(), part.contribution, part.occlusion), ("log_age_secs", 0.0, 0.0));
            others += explanation.contributions.iter().map(|part| part.contribution.abs()).sum::<f64>();
        }
    });
    assert!(others > 0.0);
}

#[test]
fn features_by_type_are_named_and_waiting_jobs_are_asked_where_they_would_start() {
    let weights = net_of(&NetConfig::Set(Default::default()), layout(8).by_type(2), 4);
    let mut bundle = bundle(Model::Net(weights), Batching::Catalog, ESTIMATES);
    bundle.card.types = vec!["slow".into(), "fast".into()];
    let (mut placed, mut kept) = (0, 0);
    watch(on_two_types(5, 1, 14, Batching::Catalog, ESTIMATES), &bundle, LONG_PERIOD, |view, decision| {
        for (job, explanation) in explanations(decision).take(3) {
            let features: Vec<&str> = explanation.contributions.iter().map(|part| part.feature.as_str()).collect();
            assert_eq!(features.len(), 24 + 2 * 5);
            assert_eq!((features[24], features[33]), ("runs, slow", "fits, fast"));
            let difference = (explanation.score - explanation.usual_score).abs();
            assert!(explanation.residual().abs() < 1e-3 * difference.max(1e-3) + 1e-4, "{explanation:?}");
            if view.job(job).unwrap().gpus() == 0 {
                assert!(explanation.of.contains("\"place on "), "{}", explanation.of);
                placed += 1;
            } else {
                kept += 1;
            }
        }
    });
    assert!(placed > 0 && kept > 0, "{placed} {kept}");
}

#[test]
fn being_watched_changes_no_decision() {
    let bundle = bundle(Model::Net(net(&NetConfig::Set(Default::default()), 9)), Batching::Catalog, ESTIMATES);
    let mut plain = bundle.policy(ExpectedPeak::default()).unwrap();
    let mut other = simulator(6, 3, 14, Batching::Catalog, ESTIMATES);
    let mut plans = Vec::new();
    while other.run_until_decision().unwrap() == Status::Decision {
        let plan = plain.decide(&other.view());
        other.apply(&plan).unwrap();
        plans.push(plan);
    }
    let mut at = 2;
    watch(simulator(6, 3, 14, Batching::Catalog, ESTIMATES), &bundle, PERIOD, |_, decision| {
        assert_eq!(decision.plan, plans[at]);
        at += PERIOD;
    });
    assert!(at > 2);
}
