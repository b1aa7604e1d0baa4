//! The multiple-choice knapsack against published schedules, brute force and its own fast path.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::program::least_cost;
use goodput_agents::allocation::knapsack::{GainLadder, Hull, Item, Knapsack, Offer, concave};
use goodput_agents::heuristic::sia::program::{SiaColumn, WITHOUT};
use goodput_env::cluster::TypeId;
use goodput_env::seed::{Stream, rng};
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

fn oracle(name: &str) -> serde_json::Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/oracles/oracles.json");
    let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[name].clone()
}

/// Weights that are chosen, 0 for none, and their value.
fn solve(groups: &[Vec<Item>], capacity: u32) -> (Vec<u32>, f64) {
    let mut knapsack = Knapsack::default();
    groups.iter().for_each(|group| knapsack.group(group.iter().copied()));
    let chosen = knapsack.solve(capacity).to_vec();
    let weights = chosen.iter().zip(groups).map(|(at, group)| at.map_or(0, |at| group[at].weight));
    (weights.collect(), knapsack.value())
}

fn ladder(values: &[f64]) -> Vec<Item> {
    values.iter().zip(1..).map(|(&value, weight)| Item { weight, value }).collect()
}

fn best(groups: &[Vec<Item>], capacity: u32) -> f64 {
    let Some((first, rest)) = groups.split_first() else { return 0.0 };
    let with = |item: &Item| Some(item.value + best(rest, capacity.checked_sub(item.weight)?));
    first.iter().filter_map(with).fold(best(rest, capacity), f64::max)
}

#[test]
fn deepboots_table() {
    let groups = [&[1.0, 1.8, 2.4, 2.8], &[1.0, 1.5, 1.7, 1.8], &[1.0, 1.95, 2.85, 3.7]].map(|values| ladder(values));
    for (capacity, expected) in oracle("mckp_deepboot").as_object().unwrap() {
        let (ways, value) = solve(&groups, capacity.parse().unwrap());
        assert_eq!(serde_json::json!(ways), expected["ways"], "capacity {capacity}");
        assert!((value - expected["value"].as_f64().unwrap()).abs() < 1e-9, "capacity {capacity}");
    }
}

#[test]
fn aryls_table() {
    // A runs 60 s on its base of 2 workers and can have 5, B 40 s on 1 and can have 4.
    let gains = |time: f64, base: f64| [1.0, 2.0, 3.0].map(|k| time * k / (base + k));
    let values = [gains(60.0, 2.0), gains(40.0, 1.0)];
    let steps = values.map(|v| [v[0], v[1] - v[0], v[2] - v[1]]);
    let groups = values.map(|values| ladder(&values));
    let ladders = [GainLadder { unit: 1, gains: &steps[0] }, GainLadder { unit: 1, gains: &steps[1] }];
    for (capacity, expected) in oracle("mckp_aryl").as_object().unwrap() {
        let capacity = capacity.parse().unwrap();
        let (extra, value) = solve(&groups, capacity);
        assert!((value - expected["value"].as_f64().unwrap()).abs() < 1e-4, "capacity {capacity}");
        assert_eq!(serde_json::json!(extra), expected["extra"], "capacity {capacity}");
        assert_eq!(concave(&ladders, capacity).unwrap(), extra, "capacity {capacity}");
    }
}

#[test]
fn a_greedy_choice_by_first_steps_would_miss_the_optimum() {
    // Values that grow faster than their weight: no single step shows it.
    let groups = [ladder(&[1.0, 1.0, 9.0]), ladder(&[2.0, 3.0, 3.5])];
    assert_eq!(solve(&groups, 3), (vec![3, 0], 9.0));
    assert_eq!(concave(&[GainLadder { unit: 1, gains: &[1.0, 0.0, 8.0] }], 3), None, "gains must not grow");
    assert_eq!(concave(&[GainLadder { unit: 2, gains: &[1.0] }, GainLadder { unit: 3, gains: &[1.0] }], 5), None);
}

#[test]
fn nothing_to_choose_from() {
    assert_eq!(solve(&[], 5), (vec![], 0.0));
    assert_eq!(solve(&[vec![]], 5), (vec![0], 0.0));
    assert_eq!(solve(&[ladder(&[1.0])], 0), (vec![0], 0.0));
    assert_eq!(solve(&[ladder(&[-1.0])], 1), (vec![0], 0.0));
    assert_eq!(concave(&[], 5).unwrap(), Vec::<u32>::new());
}

fn items() -> impl Strategy<Value = Vec<Vec<Item>>> {
    let item = (0_u32..7, -2_i32..20).prop_map(|(weight, value)| Item { weight, value: f64::from(value) });
    prop::collection::vec(prop::collection::vec(item, 0..5), 0..5)
}

fn ladders() -> impl Strategy<Value = Vec<(u32, Vec<f64>)>> {
    let gains = prop::collection::vec(0_u32..30, 0..6).prop_map(|mut gains| {
        gains.sort_unstable_by(|a, b| b.cmp(a));
        gains.into_iter().map(f64::from).collect::<Vec<f64>>()
    });
    prop::collection::vec(((0_u32..4).prop_map(|power| 1 << power), gains), 0..7)
}

proptest! {
    #[test]
    fn the_program_is_exact(groups in items(), capacity in 0_u32..20) {
        let (weights, value) = solve(&groups, capacity);
        prop_assert_eq!(value, best(&groups, capacity));
        prop_assert!(weights.iter().sum::<u32>() <= capacity);
    }

    #[test]
    fn what_is_chosen_is_worth_what_is_said(groups in items(), capacity in 0_u32..20) {
        let mut knapsack = Knapsack::default();
        groups.iter().for_each(|group| knapsack.group(group.iter().copied()));
        let chosen = knapsack.solve(capacity).to_vec();
        let sum: f64 = chosen.iter().zip(&groups).filter_map(|(at, group)| Some(group[(*at)?].value)).sum();
        prop_assert_eq!(sum, knapsack.value());
    }

    #[test]
    fn shrinking_gains_need_only_a_sort(groups in ladders(), capacity in 0_u32..80) {
        let items = groups.iter().map(|(unit, gains)| {
            let mut value = 0.0;
            gains.iter().zip(1..).map(|(gain, step)| { value += gain; Item { weight: unit * step, value } }).collect()
        });
        let items: Vec<Vec<Item>> = items.collect();
        let short: Vec<GainLadder<'_>> = groups.iter().map(|(unit, gains)| GainLadder { unit: *unit, gains }).collect();
        let steps = concave(&short, capacity).unwrap();
        let weight: u32 = steps.iter().zip(&groups).map(|(steps, (unit, _))| steps * unit).sum();
        let value: f64 = steps.iter().zip(&groups).flat_map(|(steps, (_, gains))| &gains[..*steps as usize]).sum();
        prop_assert!(weight <= capacity);
        prop_assert_eq!(value, solve(&items, capacity).1);
    }
}

/// Jobs with values as learned utilities have them: concave in speed, of different weights, on
/// types that differ by up to seven times, most of them with a present size that is costly to
/// leave.
fn typed_jobs(rng: &mut ChaCha8Rng, count: usize, capacity: &[u32]) -> Vec<Vec<Offer>> {
    let job = |rng: &mut ChaCha8Rng| {
        let (q, floor) = ([-1.0, -0.5, 1e-3, 0.5][rng.random_range(0..4)], (-4.0 * rng.random::<f64>()).exp());
        let weight = (2.0 * rng.random::<f64>() - 1.0).exp();
        let most = 1 << rng.random_range(0..4);
        let held = (rng.random_range(0..capacity.len()), 1_u32 << rng.random_range(0..4), rng.random::<f64>() < 0.6);
        let moved = 0.3 + 0.7 * rng.random::<f64>();
        let types: Vec<(f64, f64)> =
            capacity.iter().map(|_| ((2.0 * rng.random::<f64>()).exp(), 0.4 + 0.6 * rng.random::<f64>())).collect();
        let mut offers = Vec::new();
        for (kind, (fast, scaling)) in types.into_iter().enumerate() {
            for gpus in [1_u32, 2, 4, 8].into_iter().filter(|&gpus| gpus <= most) {
                let stays = !held.2 || (held.0, held.1) == (kind, gpus);
                let speed = fast * f64::from(gpus).powf(scaling) * if stays { 1.0 } else { moved };
                let value = weight * ((speed + floor).powf(q) - floor.powf(q)) / q;
                offers.push(Offer { kind: TypeId::at(kind), weight: gpus, value });
            }
        }
        offers
    };
    (0..count).map(|_| job(rng)).collect()
}

/// Value of the hull's choice, and of the optimum by branch and bound over all offers.
fn typed_values(jobs: &[Vec<Offer>], capacity: &[u32]) -> (f64, f64) {
    let mut hull = Hull::default();
    jobs.iter().for_each(|offers| hull.group(offers.iter().copied()));
    let taken: Vec<Offer> =
        hull.solve(capacity).iter().zip(jobs).filter_map(|(at, of)| Some(of[(*at)? as usize])).collect();
    let mut left = capacity.to_vec();
    taken.iter().for_each(|offer| left[offer.kind.index()] -= offer.weight);
    // The program minimises costs below that of having nothing.
    let largest = jobs.iter().flatten().map(|offer| offer.value).fold(1e-9, f64::max);
    let column =
        |offer: &Offer| SiaColumn { kind: offer.kind, gpus: offer.weight, cost: WITHOUT - offer.value / largest };
    let columns: Vec<Vec<SiaColumn>> = jobs.iter().map(|offers| offers.iter().map(column).collect()).collect();
    let least = least_cost(&columns, capacity, WITHOUT).unwrap();
    (taken.iter().map(|offer| offer.value).sum(), largest * (WITHOUT * jobs.len() as f64 - least))
}

#[test]
fn several_types_are_divided_within_five_percent_of_the_integer_optimum() {
    let mut rng = rng(5, Stream::Workload);
    for capacity in [&[4, 4][..], &[8, 4], &[4, 4, 2], &[8, 6, 4], &[24, 16, 24]] {
        let ratios: Vec<f64> = (0..60)
            .map(|_| {
                let count = rng.random_range(2..=capacity.iter().sum::<u32>() as usize / 2 + 4);
                let (value, best) = typed_values(&typed_jobs(&mut rng, count, capacity), capacity);
                value / best
            })
            .collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let short = ratios.iter().filter(|&&ratio| ratio < 0.95).count();
        let worst = ratios.iter().copied().fold(1.0, f64::min);
        assert!(mean > 0.99 && short <= 2 && worst > 0.9, "{capacity:?}: mean {mean}, worst {worst}, short {short}");
    }
}

proptest! {
    #[test]
    fn several_types_are_never_overdrawn(
        jobs in prop::collection::vec(prop::collection::vec((0u16..3, 1u32..9, -2.0f64..9.0), 0..8), 0..12),
        capacity in prop::collection::vec(0u32..12, 3),
    ) {
        let mut hull = Hull::default();
        let offers = |job: &Vec<(u16, u32, f64)>| {
            job.iter().map(|&(kind, weight, value)| Offer { kind: TypeId(kind), weight, value }).collect::<Vec<_>>()
        };
        let jobs: Vec<Vec<Offer>> = jobs.iter().map(offers).collect();
        jobs.iter().for_each(|offers| hull.group(offers.iter().copied()));
        let mut used = vec![0; 3];
        for (at, offers) in hull.solve(&capacity).iter().zip(&jobs) {
            let Some(offer) = at.map(|at| offers[at as usize]) else { continue };
            used[offer.kind.index()] += offer.weight;
            prop_assert!(offer.value > 0.0);
        }
        prop_assert!(used.iter().zip(&capacity).all(|(used, capacity)| used <= capacity), "{used:?} of {capacity:?}");
    }
}
