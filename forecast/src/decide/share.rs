//! Share of past windows in a pool, learned by what each share would have cost.
//!
//! Every share of [`SHARES`] is charged the pinball loss of its quantile, the loss that the quantile minimises (Koenker
//! and Bassett, "Regression quantiles", Econometrica 46(1), 1978), and losses fade. The share with the least loss is
//! used: follow the leader, over four experts, the first of which has a lead.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Shares that compete; the first is used until losses differ.
pub(super) const SHARES: [f64; 4] = [0.0, 0.03, 0.1, 0.3];
/// Factor on the loss of the first share: another one is used where it loses a tenth less, because few outcomes lie in
/// a tail, and the least of four losses is low by chance.
const CLEAR: f64 = 0.9;
/// Half-life of a loss, in days.
const HALF_LIFE_DAYS: f64 = 7.0;

/// Quantiles of each share, for each tail.
pub(super) type ShareQuantiles = Vec<[f64; SHARES.len()]>;

/// Losses of the shares, for each tail probability that is watched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PoolShare {
    tails: Vec<f64>,
    losses: ShareQuantiles,
    /// Quantiles of windows that are not over, by origin, oldest first.
    open: VecDeque<(usize, ShareQuantiles)>,
    /// Factor on a loss at each settlement.
    fade: f64,
}

impl PoolShare {
    /// No loss yet, for the probabilities `tails`; `a_day` windows are settled in a day.
    pub fn new(tails: &[f64], a_day: f64) -> Self {
        Self {
            tails: tails.to_vec(),
            losses: vec![[0.0; SHARES.len()]; tails.len()],
            open: VecDeque::new(),
            fade: 0.5_f64.powf(1.0 / (HALF_LIFE_DAYS * a_day)),
        }
    }

    /// Probabilities that are watched.
    pub fn tails(&self) -> &[f64] {
        &self.tails
    }

    /// Takes in what the shares say, at step `origin`, of the window that begins then.
    pub fn expect(&mut self, origin: usize, quantiles: ShareQuantiles) {
        self.open.push_back((origin, quantiles));
    }

    /// Origin of the oldest window that is not settled.
    pub fn oldest(&self) -> Option<usize> {
        self.open.front().map(|(origin, _)| *origin)
    }

    /// Settles the oldest window by the values of the statistic in it; none for a window of gaps.
    pub fn settle(&mut self, outcomes: &[f64]) {
        let Some((_, quantiles)) = self.open.pop_front() else { return };
        for ((losses, quantiles), tail) in self.losses.iter_mut().zip(quantiles).zip(&self.tails) {
            for (loss, quantile) in losses.iter_mut().zip(quantiles) {
                let each = outcomes.iter().map(|&outcome| pinball(outcome, quantile, *tail));
                *loss = *loss * self.fade + each.sum::<f64>() / outcomes.len().max(1) as f64;
            }
        }
    }

    /// Index of the share that is used for the probability of this number.
    pub fn chosen(&self, number: usize) -> usize {
        let mut losses = self.losses[number];
        losses[0] *= CLEAR;
        // `min_by` keeps the first of equal losses.
        (0..SHARES.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0)
    }
}

fn pinball(outcome: f64, quantile: f64, tail: f64) -> f64 {
    if outcome > quantile { (1.0 - tail) * (outcome - quantile) } else { tail * (quantile - outcome) }
}
