//! Baseline of logged rewards: the mean reward of the other behaviours on the same workload. It
//! depends on the workload and the time, never on the action (input-dependent baselines, Mao et al.
//! 2019, arXiv:1807.02264).
//!
//! What jobs cost is mostly what arrived. Behaviours meet the same arrivals, so that the reward of
//! one less the mean reward of the others over the same time is what its decisions made of them,
//! and critics have less to explain by far. An episode that is over while others still pay gets
//! what they pay from then on.

use std::collections::BTreeMap;

use goodput_datasets::store::DecisionLog;
use goodput_datasets::store::decisions::{Episode, EpisodeEnd};

/// Distance of the points at which rewards are compared, seconds.
const GRID: f64 = 300.0;

/// Rewards less the mean reward of the other behaviours on the same workload, one for each row of
/// `log`. A row without another behaviour keeps its logged reward. `beta` is the rate of
/// discounting, per second.
pub(super) fn relative_rewards(log: &DecisionLog, beta: f64) -> Vec<f32> {
    let mut rewards: Vec<f32> = (0..log.rows()).map(|row| log.reward(row)).collect();
    let mut of_seed: BTreeMap<u64, Vec<&Episode>> = BTreeMap::new();
    for episode in log.episodes() {
        of_seed.entry(episode.seed).or_default().push(episode);
    }
    for episodes in of_seed.into_values().filter(|episodes| episodes.len() > 1) {
        let curves: Vec<Vec<f64>> = episodes.iter().map(|episode| cumulated(log, episode)).collect();
        let points = curves.iter().map(Vec::len).max().unwrap_or(0);
        // The curve of an episode that has ended stays at its total.
        let at = |curve: &[f64], point: usize| curve[point.min(curve.len() - 1)];
        let sums: Vec<f64> = (0..points).map(|point| curves.iter().map(|curve| at(curve, point)).sum()).collect();
        for (episode, curve) in episodes.iter().zip(&curves) {
            let others = (episodes.len() - 1) as f64;
            let mean: Vec<f64> = (0..points).map(|point| (sums[point] - at(curve, point)) / others).collect();
            subtract(log, episode, &mean, beta, &mut rewards);
        }
    }
    rewards
}

/// Rewards up to each point of the grid, undiscounted; the last entry is all of them.
fn cumulated(log: &DecisionLog, episode: &Episode) -> Vec<f64> {
    let (mut curve, mut time, mut total) = (vec![0.0], 0.0, 0.0);
    for row in episode.rows.clone() {
        let (reward, dt) = (f64::from(log.reward(row)), f64::from(log.dt_secs(row)));
        while dt > 0.0 && curve.len() as f64 * GRID <= time + dt {
            // A reward accrues evenly over the time of its transition.
            curve.push(total + reward * (curve.len() as f64 * GRID - time) / dt);
        }
        (time, total) = (time + dt, total + reward);
    }
    curve.push(total);
    curve
}

/// Takes `mean`, rewards up to each point of the grid, off the rewards of an episode.
fn subtract(log: &DecisionLog, episode: &Episode, mean: &[f64], beta: f64, rewards: &mut [f32]) {
    let last = mean.len() - 1;
    let until = |time: f64| {
        let point = (time / GRID) as usize;
        if point >= last {
            mean[last]
        } else {
            mean[point] + (mean[point + 1] - mean[point]) * (time / GRID - point as f64)
        }
    };
    let mut time = 0.0;
    for row in episode.rows.clone() {
        let then = time + f64::from(log.dt_secs(row));
        let mut others = until(then) - until(time);
        time = then;
        // The episode is over while others may still pay: what they pay from here on counts now,
        // discounted.
        if row + 1 == episode.rows.end && episode.end != EpisodeEnd::Truncated {
            let next = (time / GRID) as usize + 1;
            let part = |point: usize| {
                let from = f64::max((point - 1) as f64 * GRID, time);
                (-beta * (from - time)).exp() * (mean[point] - until(from))
            };
            others += (next..=last).map(part).sum::<f64>();
        }
        rewards[row] = (f64::from(rewards[row]) - others) as f32;
    }
}
