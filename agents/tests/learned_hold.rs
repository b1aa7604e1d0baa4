//! The fit of advantages, and what a bundle keeps of a choice around a published policy.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::num::NonZeroUsize;
use std::path::Path;

use goodput_agents::bundle::{Card, Model, PolicyBundle};
use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::advantages::{AdvantageConfig, ChangeSample};
use goodput_agents::learning::learner::Learner;
use goodput_agents::nets::slots::SlotScorer;
use goodput_agents::nets::weights::{NetConfig, SetConfig, Weights};
use goodput_agents::policies::hold::{CHANGE_FEATURES, GLOBALS, LearnedHold, layout, schema_hash};
use goodput_env::seed::{Stream, rng};
use rand::RngExt;

const NET: usize = 8;

fn net() -> NetConfig {
    NetConfig::Set(SetConfig::new(NonZeroUsize::new(NET).unwrap()))
}

/// Samples of one to four changes with random features, of which the true advantage is `of` the features of a change.
fn samples(seed: u64, count: usize, of: impl Fn(&[f32]) -> f32) -> Vec<ChangeSample> {
    let mut random = rng(seed, Stream::Workload);
    let sample = |_| {
        let changes = random.random_range(1..=4);
        let (mut features, mut signs, mut sum) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..changes {
            let mut change: Vec<f32> = (0..CHANGE_FEATURES.len()).map(|_| random.random_range(-1.0..1.0)).collect();
            change[0] = 1.0;
            let sign = [1.0, -1.0, 0.0][random.random_range(0..3)];
            sum += sign * of(&change);
            features.extend(change);
            signs.push(sign);
        }
        features.extend((0..GLOBALS.len()).map(|_| random.random_range(-1.0f32..1.0)));
        let tried = signs.iter().filter(|sign| **sign != 0.0).count().max(1) as f32;
        let weight = random.random_range(0.5..2.0);
        ChangeSample { features, signs, target: sum / tried.sqrt(), weight }
    };
    (0..count).map(sample).collect()
}

#[test]
fn the_gradient_of_the_fit_is_that_of_finite_differences() {
    let samples = samples(1, 12, |change| change[3]);
    let mut weights = Weights::new(&net(), layout(1), 5);
    // The first scores of a net are nearly equal. These are not.
    weights.data_mut().iter_mut().for_each(|weight| *weight *= 3.0);
    let learner = |weights: &Weights| Learner::from_weights(weights.clone(), AdamConfig::default());
    let gradient = learner(&weights).advantage_gradient(&samples);
    assert!(gradient.iter().filter(|slope| slope.abs() > 1e-4).count() > 100);
    let mut random = rng(2, Stream::Exploration);
    for _ in 0..60 {
        let at = random.random_range(0..gradient.len());
        let by = 1e-2f32;
        let error = |by: f32| {
            let mut moved = weights.clone();
            moved.data_mut()[at] += by;
            learner(&moved).advantage_error(&samples)
        };
        let slope = (error(by) - error(-by)) / (2.0 * f64::from(by));
        let close = (slope - f64::from(gradient[at])).abs() <= 0.02 * slope.abs() + 2e-3;
        assert!(close, "parameter {at}: {} and {slope}", gradient[at]);
    }
}

/// Only sums of several advantages are told, and the net tells the advantages of single changes apart.
#[test]
fn advantages_of_single_changes_are_found_from_sums() {
    let truth = |change: &[f32]| change[1].max(0.0) - change[2] + 0.5 * change[3] * change[3] - 0.25;
    let (fitted, left_out, fresh) = (samples(3, 3000, truth), samples(4, 500, truth), samples(5, 300, truth));
    let mut learner = Learner::new(&net(), layout(1), AdamConfig::default(), 1);
    let mut random = rng(6, Stream::Exploration);
    let config = AdvantageConfig { epochs: 60, learning_rate: 3e-3, ..AdvantageConfig::default() };
    let [before, after] = learner.fit_advantages(&config, &fitted, &left_out, &mut random).unwrap();
    assert!(after < 0.1 * before, "mean squared error {before} and {after}");
    let mut scorer = SlotScorer::new(learner.weights());
    let (mut sum, mut square) = (0.0, 0.0);
    for sample in &fresh {
        let scores = scorer.scores(&sample.features).to_vec();
        for (change, score) in sample.features.chunks_exact(CHANGE_FEATURES.len()).zip(scores) {
            sum += f64::from(score - truth(change)).powi(2);
            square += f64::from(truth(change)).powi(2);
        }
    }
    assert!(sum < 0.15 * square, "{sum} of {square}");
}

#[test]
fn a_bundle_keeps_teacher_net_and_threshold() {
    let path = Path::new("a.bundle");
    for threshold in [0.25, f32::INFINITY] {
        let learned = LearnedHold { teacher: "las".into(), weights: Weights::new(&net(), layout(1), 5), threshold };
        let card = Card { schema_hash: schema_hash(), ..Card::default() };
        let bundle = PolicyBundle { model: Model::Hold(learned.clone()), normaliser: None, card };
        let read = PolicyBundle::from_bytes(&bundle.to_bytes(), path).unwrap().checked(path).unwrap();
        assert_eq!((read.kind(), read.plays_rounds()), ("hold", false));
        assert_eq!(read.model, Model::Hold(learned.clone()));
        let other = PolicyBundle { card: Card::default(), ..read };
        assert!(other.checked(path).is_err(), "another schema is refused");
        let unknown = Model::Hold(LearnedHold { teacher: "lass".into(), ..learned });
        let unknown = PolicyBundle { model: unknown, ..bundle };
        let refused = PolicyBundle::from_bytes(&unknown.to_bytes(), path).unwrap_err();
        assert!(format!("{refused:?}").contains("lass"), "{refused:?}");
    }
}
