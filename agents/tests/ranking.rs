//! Rankings: the plain utility where the net's scores are zero; gradients of the whole loss; the
//! net in plain Rust and in burn; storage.
#![cfg(feature = "learn")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::support::{random_workload, run};
use goodput_agents::bundle::{Card, Model, PolicyBundle};
use goodput_agents::nets::weights::SetConfig;
use goodput_agents::policies::ranking::learner::{RankingConfig, RankingLearner, residuals};
use goodput_agents::policies::ranking::{
    Decoding, Ranked, Ranking, RankingNet, Sampled, Scorer, Transition, schema_hash,
};
use goodput_agents::policies::rounds::Decoder;
use goodput_agents::policies::utility::{Experience, Theta, Utility, UtilityPolicy};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::job::Workload;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Outcome;
use proptest::prelude::*;
use rand::RngExt;

fn nets() -> Vec<SetConfig> {
    let set = SetConfig::new(NonZeroUsize::new(12).unwrap());
    vec![SetConfig { heads: 2, ..set.clone() }, set]
}

fn utility() -> Utility {
    Utility { theta: Theta::sia(), experience: Experience::default(), siblings: false, efficiency: true }
}

/// Net with scores other than zero.
fn trained(config: &SetConfig, seed: u64, size: f32) -> RankingNet {
    let mut net = RankingNet::new(config, seed);
    let mut random = rng(seed, Stream::Exploration);
    net.data_mut().iter_mut().for_each(|number| *number += size * (random.random::<f32>() - 0.5));
    net
}

fn ranked(net: RankingNet, decoding: Decoding) -> UtilityPolicy<Ranked> {
    let ranking = Ranking { utility: utility(), net, decoding };
    UtilityPolicy::dividing(&ranking.utility, Batching::Agent, Information::Profiled, Ranked::new(&ranking))
}

fn options() -> SimOptions {
    SimOptions { batching: Batching::Agent, information: Information::Profiled, ..SimOptions::standard() }
}

fn outcome(policy: &mut dyn Policy, seed: u64) -> Outcome {
    let workload = random_workload(&mut rng(seed, Stream::Workload), 30, 16);
    run(policy, Cluster::homogeneous(2, 4), workload, options())
}

/// Rounds drawn from `net`.
fn drawn(net: &RankingNet, seed: u64) -> Vec<Transition> {
    let sampled = Sampled::new(net, 0.3, rng(seed, Stream::Exploration));
    let mut policy = UtilityPolicy::dividing(&utility(), Batching::Agent, Information::Profiled, sampled);
    outcome(&mut policy, seed);
    policy.into_division().into_transitions()
}

fn config() -> RankingConfig {
    RankingConfig {
        temperature: 0.3,
        epochs: 2,
        minibatch: 32,
        clip: 0.2,
        max_grad_norm: 0.5,
        target_kl: 0.0,
        learning_rate: 1e-3,
        entropy: 0.05,
        reference_kl: 0.1,
    }
}

#[test]
fn a_net_that_says_nothing_leaves_the_utility_as_it_is() {
    for seed in 0..6 {
        let expected = outcome(&mut UtilityPolicy::new(&utility(), Batching::Agent, Information::Profiled), seed);
        for decoding in Decoding::ALL {
            let net = RankingNet::new(&SetConfig::default(), seed);
            assert_eq!(outcome(&mut ranked(net, decoding), seed), expected, "{decoding:?} {seed}");
        }
    }
}

#[test]
fn a_net_that_says_something_changes_it_and_the_decodings_differ() {
    let of = |decoding| outcome(&mut ranked(trained(&SetConfig::default(), 1, 0.5), decoding), 1);
    let plain = outcome(&mut UtilityPolicy::new(&utility(), Batching::Agent, Information::Profiled), 1);
    let [walked, packed] = Decoding::ALL.map(of);
    assert!(walked != plain && packed != plain && walked != packed);
}

#[test]
fn the_plain_forward_equals_burn() {
    for config in nets() {
        let net = trained(&config, 3, 0.3);
        let mut scorer = Scorer::new(&net);
        let rounds = drawn(&RankingNet::new(&config, 3), 3);
        assert!(rounds.iter().any(|round| round.observation.groups() > 6), "rounds worth comparing");
        for round in &rounds {
            let expected = residuals(&net, &round.observation);
            let found = scorer.residuals(&round.observation);
            assert!(
                found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0)),
                "{found:?} {expected:?}"
            );
        }
    }
}

#[test]
fn the_gradient_of_the_whole_loss_is_that_of_finite_differences() {
    for config_of_net in nets() {
        let acted = trained(&config_of_net, 5, 0.05);
        let rounds = drawn(&acted, 5);
        let advantages: Vec<f64> = (0..rounds.len()).map(|at| f64::from((at * 7919 % 13) as u32) / 6.0 - 1.0).collect();
        // Weights moved a little since the rollout, so that some ratios lie outside the clip and
        // most within.
        let net = trained(&config_of_net, 5, 0.08);
        let loss = |data: Vec<f32>| {
            let net = RankingNet::from_data(&config_of_net, data).unwrap();
            RankingLearner::new(net).loss_and_gradient(&config(), &rounds, &advantages)
        };
        let (_, gradient) = loss(net.data().to_vec());
        let mut random = rng(6, Stream::Exploration);
        for _ in 0..6 {
            let direction: Vec<f32> = net.data().iter().map(|_| random.random::<f32>() - 0.5).collect();
            let moved =
                |by: f32| loss(net.data().iter().zip(&direction).map(|(number, d)| number + by * d).collect()).0;
            let slope = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            let expected: f64 = gradient.iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
            assert!((slope - expected).abs() < 0.02 * expected.abs().max(0.1), "{slope} {expected}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing_and_what_is_stored_goes_on() {
    let net = RankingNet::new(&SetConfig::default(), 4);
    let rounds = drawn(&net, 4);
    let advantages: Vec<f64> =
        rounds.iter().map(|round| if round.sequence.len() % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let update = |learner: &mut RankingLearner| {
        learner.update(&config(), &rounds, &advantages, &mut rng(4, Stream::Exploration)).unwrap()
    };
    let [mut one, mut three] = [1, 3].map(|threads| RankingLearner::new(net.clone()).with_threads(threads));
    let stats = update(&mut one);
    assert_eq!(stats, update(&mut three));
    assert!(
        stats.minibatches > 2 && stats.entropy > 0.0 && stats.entropy < 1.0 && stats.reference_kl > 0.0,
        "{stats:?}"
    );
    let mut again = RankingLearner::from_bytes(&one.to_bytes()).unwrap();
    assert_eq!(update(&mut again), update(&mut one));
    assert_eq!(again.to_bytes(), one.to_bytes());
    assert_ne!(again.net(), &net);
}

#[test]
fn what_is_reinforced_becomes_more_probable() {
    let net = RankingNet::new(&SetConfig::default(), 7);
    let rounds = drawn(&net, 7);
    // Advantage for rounds that take the smallest job first.
    let smallest =
        |round: &Transition| round.sequence.first().is_some_and(|&at| round.observation.pairs[at as usize].weight == 1);
    let advantages: Vec<f64> = rounds.iter().map(|round| if smallest(round) { 1.0 } else { -1.0 }).collect();
    let mut learner = RankingLearner::new(net);
    let of = |learner: &RankingLearner| {
        let mut scorer = Scorer::new(learner.net());
        let log_prob = |(round, advantage): (&Transition, &f64)| {
            let scored = round.observation.scored(scorer.residuals(&round.observation), 0.3);
            advantage * round.observation.choice(&scored).log_prob(&round.sequence)
        };
        rounds.iter().zip(&advantages).map(log_prob).sum::<f64>()
    };
    let before = of(&learner);
    let config = RankingConfig { entropy: 0.0, reference_kl: 0.0, epochs: 4, ..config() };
    learner.update(&config, &rounds, &advantages, &mut rng(7, Stream::Exploration)).unwrap();
    assert!(of(&learner) > before, "{before} {}", of(&learner));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_net_finishes_any_workload_on_one_type_and_on_two(
        seed in 0u64..1000,
        size in 0.0f32..8.0,
        nodes in 1u32..5,
        decoding in prop::sample::select(Decoding::ALL.to_vec()),
    ) {
        let workload = random_workload(&mut rng(seed, Stream::Workload), 12, nodes * 4);
        let count = workload.jobs.len();
        let mut two = Cluster { types: Vec::new(), nodes: Vec::new() };
        two.add_to(Pool::Shared, "gpu", nodes, 4);
        two.add_to(Pool::Shared, "fast", 1, 8);
        for (cluster, workload) in [(Cluster::homogeneous(nodes, 4), workload.clone()), (two, on_two_types(workload))] {
            let outcome = run(&mut ranked(trained(&SetConfig::default(), seed, size), decoding), cluster, workload, options());
            prop_assert_eq!(outcome.jobs.iter().filter(|job| job.finish.is_some()).count(), count);
        }
    }
}

#[test]
fn scores_beyond_all_bounds_still_start_every_job() {
    for (seed, decoding) in (0..4).flat_map(|seed| Decoding::ALL.map(|decoding| (seed, decoding))) {
        let workload = random_workload(&mut rng(seed, Stream::Workload), 12, 4);
        let net = trained(&SetConfig::default(), seed, 100.0);
        let outcome = run(&mut ranked(net, decoding), Cluster::homogeneous(1, 4), workload, options());
        assert!(outcome.jobs.iter().all(|job| job.finish.is_some()), "{decoding:?} {seed}");
    }
}

/// `workload` with its applications on a second type as well.
fn on_two_types(workload: Workload) -> Workload {
    let mut workload = workload;
    for app in &mut workload.applications {
        let app = Arc::make_mut(app);
        let params = app.params["gpu"];
        app.params.insert("fast".into(), params);
    }
    workload
}

#[test]
fn a_bundle_keeps_the_ranking_and_refuses_another_schema() {
    for config in nets() {
        let decoder = Decoder::new(Batching::Agent, Information::Profiled);
        let decoder = serde_json::to_value(decoder).unwrap();
        let card = Card { schema_hash: schema_hash(), decoder, ..Card::default() };
        let theta: Vec<f64> = Theta::sia().values().iter().map(|&value| f64::from(value as f32)).collect();
        let utility = Utility {
            theta: Theta::new(&theta).unwrap(),
            experience: Experience::of([("a model", 3.0)]),
            siblings: true,
            efficiency: true,
        };
        let net = trained(&config, 8, 0.5);
        let ranking = Ranking { utility, net, decoding: Decoding::Knapsack };
        let bundle = PolicyBundle { model: Model::Ranking(Box::new(ranking)), normaliser: None, card };
        let folder = tempfile();
        let path = folder.join("policy.bundle");
        bundle.save(&path).unwrap();
        assert_eq!(PolicyBundle::load(&path).unwrap(), bundle);
        assert_eq!(bundle.kind(), "ranking");
        let policy = bundle.policy(Default::default()).unwrap();
        assert_eq!((policy.batching(), policy.information()), (Batching::Agent, Information::Profiled));
        let mut other = bundle.clone();
        other.card.schema_hash = Theta::sia().schema_hash();
        other.save(&path).unwrap();
        let message = PolicyBundle::load(&path).unwrap_err().to_string();
        assert!(message.contains(&schema_hash()), "{message}");
        let bytes = bundle.to_bytes();
        assert!(PolicyBundle::from_bytes(&bytes[..bytes.len() - 5], &path).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}

fn tempfile() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("goodput-ranking-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
