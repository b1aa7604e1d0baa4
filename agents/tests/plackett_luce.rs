//! Plackett-Luce sequences under a budget against brute force: probabilities, gradients, draws.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::learned::decoder::plackett_luce::{Choice, Pair, Sequence};
use goodput_env::seed::{Stream, rng};
use proptest::prelude::*;

/// All sequences with their probabilities, step by step from the definition.
fn all(choice: &Choice<'_>) -> Vec<(Sequence, f64)> {
    let mut found = Vec::new();
    grow(choice, Sequence::default(), 1.0, &mut found);
    found
}

fn grow(choice: &Choice<'_>, so_far: Sequence, probability: f64, found: &mut Vec<(Sequence, f64)>) {
    let used = |group: u32| so_far.taken.iter().any(|&at| choice.pairs[at as usize].group == group);
    let spent: u32 = so_far.taken.iter().map(|&at| choice.pairs[at as usize].weight).sum();
    let fits = |pair: &Pair| !used(pair.group) && spent + pair.weight <= choice.capacity;
    let open: Vec<usize> = (0..choice.pairs.len()).filter(|&at| fits(&choice.pairs[at])).collect();
    if open.is_empty() {
        found.push((so_far, probability));
        return;
    }
    let stop = choice.stop.map_or(0.0, f64::exp);
    let total = open.iter().map(|&at| choice.pairs[at].score.exp()).sum::<f64>() + stop;
    if stop > 0.0 {
        found.push((Sequence { stopped: true, ..so_far.clone() }, probability * stop / total));
    }
    for at in open {
        let mut next = so_far.clone();
        next.taken.push(at as u32);
        grow(choice, next, probability * choice.pairs[at].score.exp() / total, found);
    }
}

prop_compose! {
    fn choices()(
        pairs in prop::collection::vec((0u32..3, 1u32..4, -3.0f64..3.0), 0..6),
        capacity in 0u32..7,
        stop in prop::option::of(-2.0f64..2.0),
    ) -> (Vec<Pair>, u32, Option<f64>) {
        (pairs.into_iter().map(|(group, weight, score)| Pair { group, weight, score }).collect(), capacity, stop)
    }
}

proptest! {
    #[test]
    fn probabilities_are_those_of_the_definition_and_sum_to_one((pairs, capacity, stop) in choices()) {
        let choice = Choice { pairs: &pairs, groups: 3, capacity, stop };
        let mut sum = 0.0;
        for (sequence, probability) in all(&choice) {
            prop_assert!((choice.log_prob(&sequence) - probability.ln()).abs() < 1e-9, "{sequence:?}");
            sum += probability;
        }
        prop_assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn gradients_are_those_of_finite_differences((pairs, capacity, stop) in choices(), pick in any::<prop::sample::Index>()) {
        let sequences = all(&Choice { pairs: &pairs, groups: 3, capacity, stop });
        let sequence = &pick.get(&sequences).0;
        let choice = Choice { pairs: &pairs, groups: 3, capacity, stop };
        let mut gradient = vec![0.5; pairs.len()];
        let of_stop = choice.add_gradient(sequence, 2.0, &mut gradient);
        let at = |pairs: &[Pair], stop| Choice { pairs, groups: 3, capacity, stop }.log_prob(sequence);
        let h = 1e-6;
        for (index, gradient) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut pairs = pairs.clone();
                pairs[index].score += by;
                at(&pairs, stop)
            };
            let slope = (moved(h) - moved(-h)) / (2.0 * h);
            prop_assert!((gradient - 0.5 - 2.0 * slope).abs() < 1e-6, "{gradient} {slope}");
        }
        if let Some(stop) = stop {
            let slope = (at(&pairs, Some(stop + h)) - at(&pairs, Some(stop - h))) / (2.0 * h);
            prop_assert!((of_stop - 2.0 * slope).abs() < 1e-6, "{of_stop} {slope}");
        }
    }

    #[test]
    fn what_is_drawn_can_be_drawn((pairs, capacity, stop) in choices(), seed in 0u64..1000) {
        let choice = Choice { pairs: &pairs, groups: 3, capacity, stop };
        let sequence = choice.sample(&mut rng(seed, Stream::Exploration));
        prop_assert!(choice.log_prob(&sequence).is_finite(), "{sequence:?}");
        prop_assert!(choice.log_prob(&choice.greedy()).is_finite());
    }
}

#[test]
fn draws_come_as_often_as_they_should() {
    let pairs = [(0, 1, 0.5), (0, 3, 1.0), (1, 2, -0.3), (2, 2, 0.8)].map(|(group, weight, score)| Pair {
        group,
        weight,
        score,
    });
    let choice = Choice { pairs: &pairs, groups: 3, capacity: 4, stop: Some(-0.5) };
    let mut random = rng(3, Stream::Exploration);
    let draws: Vec<Sequence> = (0..40_000).map(|_| choice.sample(&mut random)).collect();
    for (sequence, probability) in all(&choice) {
        let seen = draws.iter().filter(|draw| **draw == sequence).count() as f64;
        let (expected, deviation) = (40_000.0 * probability, (40_000.0 * probability * (1.0 - probability)).sqrt());
        assert!((seen - expected).abs() < 4.5 * deviation + 1.0, "{sequence:?}: {seen} of {expected}");
    }
}

#[test]
fn scores_far_apart_overflow_nothing_and_impossible_sequences_have_no_probability() {
    let pairs = [(0, 1, 900.0), (1, 1, -900.0)].map(|(group, weight, score)| Pair { group, weight, score });
    let choice = Choice { pairs: &pairs, groups: 2, capacity: 2, stop: None };
    let both = Sequence { taken: vec![0, 1], stopped: false };
    assert_eq!(choice.greedy(), both);
    let sum = choice.log_prob(&both);
    assert!(sum.abs() < 1e-9, "{sum}");
    for taken in [vec![0], vec![0, 0], vec![2]] {
        assert_eq!(choice.log_prob(&Sequence { taken, stopped: false }), f64::NEG_INFINITY);
    }
}
