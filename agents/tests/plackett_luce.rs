//! Plackett-Luce sequences of upgrades under a budget against brute force: probabilities,
//! entropies, divergences, gradients, draws.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::allocation::knapsack::{Hull, Item};
use goodput_agents::policies::decoder::plackett_luce::{Choice, Pair, Sequence, Steps};
use goodput_env::seed::{Stream, rng};
use proptest::prelude::*;

/// Sequence by the definition: its probability, and at each step the allowed pairs with the pair
/// taken.
struct Drawn {
    sequence: Sequence,
    probability: f64,
    steps: Vec<(Vec<usize>, usize)>,
}

/// All sequences, step by step from the definition.
fn all(choice: &Choice<'_>) -> Vec<Drawn> {
    let mut found = Vec::new();
    grow(choice, Drawn { sequence: Vec::new(), probability: 1.0, steps: Vec::new() }, &mut found);
    found
}

fn grow(choice: &Choice<'_>, so_far: Drawn, found: &mut Vec<Drawn>) {
    let taken = |group: u32| {
        so_far.sequence.iter().map(|&at| choice.pairs[at as usize]).filter(move |pair| pair.group == group)
    };
    let held = |group: u32| taken(group).map(|pair| pair.weight).max().unwrap_or(0);
    let spent: u32 = (0..choice.groups as u32).map(held).sum();
    let allowed = |pair: &Pair| {
        let held = held(pair.group);
        pair.weight > held && spent - held + pair.weight <= choice.capacity
    };
    let open: Vec<usize> = (0..choice.pairs.len()).filter(|&at| allowed(&choice.pairs[at])).collect();
    if open.is_empty() {
        found.push(so_far);
        return;
    }
    let total = open.iter().map(|&at| choice.pairs[at].score.exp()).sum::<f64>();
    for &at in &open {
        let sequence = so_far.sequence.iter().copied().chain([at as u32]).collect();
        let steps = so_far.steps.iter().cloned().chain([(open.clone(), at)]).collect();
        let probability = so_far.probability * choice.pairs[at].score.exp() / total;
        grow(choice, Drawn { sequence, probability, steps }, found);
    }
}

/// Probabilities of the allowed pairs at a step.
fn probabilities(pairs: &[Pair], open: &[usize]) -> Vec<f64> {
    let total = open.iter().map(|&at| pairs[at].score.exp()).sum::<f64>();
    open.iter().map(|&at| pairs[at].score.exp() / total).collect()
}

prop_compose! {
    fn choices()(
        pairs in prop::collection::vec((0u32..3, 0u32..4, -3.0f64..3.0), 0..6),
        capacity in 0u32..7,
    ) -> (Vec<Pair>, u32) {
        (pairs.into_iter().map(|(group, weight, score)| Pair { group, weight, score }).collect(), capacity)
    }
}

/// Numerical derivative of `of` by each score.
fn slopes(pairs: &[Pair], of: impl Fn(&[Pair]) -> f64) -> Vec<f64> {
    let moved = |index: usize, by: f64| {
        let mut pairs = pairs.to_vec();
        pairs[index].score += by;
        of(&pairs)
    };
    (0..pairs.len()).map(|index| (moved(index, 1e-5) - moved(index, -1e-5)) / 2e-5).collect()
}

fn same(found: &[f64], expected: &[f64]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

proptest! {
    #[test]
    fn probabilities_are_those_of_the_definition_and_sum_to_one((pairs, capacity) in choices()) {
        let choice = Choice { pairs: &pairs, groups: 3, capacity };
        let mut sum = 0.0;
        for drawn in all(&choice) {
            prop_assert!((choice.log_prob(&drawn.sequence) - drawn.probability.ln()).abs() < 1e-9, "{:?}", drawn.sequence);
            sum += drawn.probability;
        }
        prop_assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn entropies_and_divergences_are_sums_over_the_steps(
        (pairs, capacity) in choices(),
        others in prop::collection::vec(-3.0f64..3.0, 6),
    ) {
        let choice = Choice { pairs: &pairs, groups: 3, capacity };
        let of_reference: Vec<Pair> = pairs.iter().zip(&others).map(|(pair, &score)| Pair { score, ..*pair }).collect();
        let reference = Choice { pairs: &of_reference, ..choice };
        for drawn in all(&choice) {
            let (steps, other) = (choice.steps(&drawn.sequence).unwrap(), reference.steps(&drawn.sequence).unwrap());
            let (mut entropy, mut most, mut divergence) = (0.0, 0.0, 0.0);
            for (open, _) in &drawn.steps {
                let (p, q) = (probabilities(&pairs, open), probabilities(&of_reference, open));
                entropy -= p.iter().map(|p| p * p.ln()).sum::<f64>();
                most += (open.len() as f64).ln();
                divergence += q.iter().zip(&p).map(|(q, p)| q * (q / p).ln()).sum::<f64>();
            }
            let found = steps.entropy();
            prop_assert!((found.0 - entropy).abs() < 1e-9 && (found.1 - most).abs() < 1e-9);
            prop_assert!((steps.divergence(&choice, &other, &reference) - divergence).abs() < 1e-9);
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences((pairs, capacity) in choices(), pick in any::<prop::sample::Index>()) {
        let choice = Choice { pairs: &pairs, groups: 3, capacity };
        let sequences = all(&choice);
        let sequence = &pick.get(&sequences).sequence;
        let steps = choice.steps(sequence).unwrap();
        let of_reference: Vec<Pair> = pairs.iter().map(|pair| Pair { score: 0.3 * f64::from(pair.weight), ..*pair }).collect();
        let reference = Choice { pairs: &of_reference, ..choice };
        let other = reference.steps(sequence).unwrap();
        let at = |pairs: &[Pair], of: &dyn Fn(&Steps, &Choice<'_>) -> f64| {
            let choice = Choice { pairs, ..choice };
            of(&choice.steps(sequence).unwrap(), &choice)
        };
        let zeros = vec![0.0; pairs.len()];
        let mut gradient = zeros.clone();
        steps.add_log_prob_gradient(&choice, sequence, 2.0, &mut gradient);
        same(&gradient, &slopes(&pairs, |pairs| at(pairs, &|steps, choice| 2.0 * steps.log_prob(choice, sequence))));
        let mut gradient = zeros.clone();
        steps.add_entropy_gradient(&choice, 2.0, &mut gradient);
        same(&gradient, &slopes(&pairs, |pairs| at(pairs, &|steps, _| 2.0 * steps.entropy().0)));
        let mut gradient = zeros;
        steps.add_divergence_gradient(&choice, &other, &reference, 2.0, &mut gradient);
        same(&gradient, &slopes(&pairs, |pairs| at(pairs, &|steps, choice| 2.0 * steps.divergence(choice, &other, &reference))));
    }

    #[test]
    fn what_is_drawn_can_be_drawn((pairs, capacity) in choices(), seed in 0u64..1000) {
        let choice = Choice { pairs: &pairs, groups: 3, capacity };
        let sequence = choice.sample(&mut rng(seed, Stream::Exploration));
        prop_assert!(choice.log_prob(&sequence).is_finite(), "{sequence:?}");
        prop_assert!(choice.log_prob(&choice.greedy()).is_finite());
    }

    #[test]
    fn there_is_a_margin_where_not_everything_fits((pairs, capacity) in choices()) {
        let choice = Choice { pairs: &pairs, groups: 3, capacity };
        let largest = |group: u32| pairs.iter().filter(|pair| pair.group == group).map(|pair| pair.weight).max().unwrap_or(0);
        prop_assert_eq!(choice.margin().is_some(), (0..3).map(largest).sum::<u32>() > capacity);
    }

    /// Scores that are the logarithms of falling slopes make the walk choose what the knapsack
    /// chooses.
    #[test]
    fn the_greedy_walk_is_the_climb_of_the_hull(
        gains in prop::collection::vec(prop::collection::vec((1u32..5, 0.1f64..9.0), 1..5), 1..6),
        capacity in 0u32..25,
    ) {
        let (mut hull, mut pairs) = (Hull::default(), Vec::new());
        for (group, mut steps) in (0..).zip(gains.clone()) {
            steps.sort_by(|a, b| b.1.total_cmp(&a.1));
            let (mut weight, mut value) = (0, 0.0);
            let mut items = Vec::new();
            for (more, slope) in steps {
                (weight, value) = (weight + more, value + slope * f64::from(more));
                items.push(Item { weight, value });
                pairs.push(Pair { group, weight, score: slope.ln() });
            }
            hull.group(items);
        }
        let mut held = vec![0; gains.len()];
        for at in (Choice { pairs: &pairs, groups: gains.len(), capacity }).greedy() {
            held[pairs[at as usize].group as usize] = pairs[at as usize].weight;
        }
        let climbed = hull.solve(&[capacity]);
        for ((group, held), item) in (0..).zip(held).zip(climbed) {
            let of_group: Vec<u32> = pairs.iter().filter(|pair| pair.group == group).map(|pair| pair.weight).collect();
            prop_assert_eq!(held, item.map_or(0, |item| of_group[item as usize]));
        }
    }
}

#[test]
fn draws_come_as_often_as_they_should() {
    let pairs = [(0, 1, 0.5), (0, 3, 1.0), (1, 2, -0.3), (2, 2, 0.8)].map(|(group, weight, score)| Pair {
        group,
        weight,
        score,
    });
    let choice = Choice { pairs: &pairs, groups: 3, capacity: 4 };
    let mut random = rng(3, Stream::Exploration);
    let draws: Vec<Sequence> = (0..40_000).map(|_| choice.sample(&mut random)).collect();
    for Drawn { sequence, probability, .. } in all(&choice) {
        let seen = draws.iter().filter(|draw| **draw == sequence).count() as f64;
        let (expected, deviation) = (40_000.0 * probability, (40_000.0 * probability * (1.0 - probability)).sqrt());
        assert!((seen - expected).abs() < 4.5 * deviation + 1.0, "{sequence:?}: {seen} of {expected}");
    }
}

#[test]
fn scores_far_apart_overflow_nothing_and_impossible_sequences_have_no_probability() {
    let pairs = [(0, 1, 900.0), (1, 1, -900.0)].map(|(group, weight, score)| Pair { group, weight, score });
    let choice = Choice { pairs: &pairs, groups: 2, capacity: 2 };
    assert_eq!(choice.greedy(), [0, 1]);
    let sum = choice.log_prob(&[0, 1]);
    assert!(sum.abs() < 1e-9, "{sum}");
    let steps = choice.steps(&[0, 1]).unwrap();
    let mut gradient = [0.0; 2];
    steps.add_log_prob_gradient(&choice, &[0, 1], 1.0, &mut gradient);
    steps.add_entropy_gradient(&choice, 1.0, &mut gradient);
    assert!(steps.entropy().0.abs() < 1e-9 && gradient.iter().all(|slope| slope.abs() < 1e-9), "{gradient:?}");
    for taken in [vec![0], vec![0, 0], vec![2]] {
        assert_eq!(choice.log_prob(&taken), f64::NEG_INFINITY);
    }
}
