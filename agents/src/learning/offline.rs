//! Learning from logged decisions, without acting: what the rules of this kind share.
//!
//! The critics are nets of the same kind as the policy. `Q(s, a)` is the value head plus the score
//! of the action: the part that all actions of a state share and the part that tells them apart
//! (Wang et al. 2016), by (slot, verb) as the scores of a policy are.

use burn::tensor::Tensor;
use rand::Rng;
use rand::RngExt;

use crate::learning::learner::Learner;
use crate::learning::objective::{Objective, Outputs};
use crate::nets::fused::{Fused, Scratch};
use crate::nets::weights::Weights;

/// Transitions of a minibatch; a slice has one entry or one row of entries a decision.
#[derive(Clone, Copy, Debug)]
pub struct OfflineBatch<'a> {
    /// Values of shape `[rows, obs_dim]`.
    pub observations: &'a [f32],
    /// Values of shape `[rows, actions]`.
    pub masks: &'a [u8],
    /// `[rows]`: what was done.
    pub actions: &'a [u32],
    /// `[rows]`: what it got, over the scale of returns.
    pub rewards: &'a [f32],
    /// `[rows]`: `exp(-beta dt)` of the time that passed (a semi-Markov decision process); 0 where
    /// the episode ended by itself.
    pub discounts: &'a [f32],
    /// `[rows, obs_dim]`: what was seen then; anything where the discount is 0.
    pub next_observations: &'a [f32],
    /// `[rows, actions]`: what was allowed then.
    pub next_masks: &'a [u8],
    /// `[rows]`: discounted sum of rewards to the end of the episode. Where given, critics regress
    /// on it instead of on their own estimates: how they begin.
    pub returns: Option<&'a [f32]>,
}

impl<'a> OfflineBatch<'a> {
    /// The number of rows, after checking that all slices agree on it.
    pub(super) fn check(&self, weights: &Weights) -> usize {
        let (rows, layout) = (self.actions.len(), weights.layout());
        let observations = [self.observations.len(), self.next_observations.len()];
        let masks = [self.masks.len(), self.next_masks.len()];
        assert!(
            observations == [rows * layout.obs_dim(); 2] && masks == [rows * layout.actions(); 2],
            "rows of {layout:?}"
        );
        let lengths = [self.rewards.len(), self.discounts.len(), self.returns.map_or(rows, <[f32]>::len)];
        assert!(rows > 0 && lengths == [rows; 3], "one number per row");
        rows
    }

    /// Observation and mask of a row, then those that follow.
    pub(super) fn row(&self, row: usize, weights: &Weights) -> [(&'a [f32], &'a [u8]); 2] {
        let (dim, actions) = (weights.layout().obs_dim(), weights.layout().actions());
        let (o, m) = (row * dim..(row + 1) * dim, row * actions..(row + 1) * actions);
        [(&self.observations[o.clone()], &self.masks[m.clone()]), (&self.next_observations[o], &self.next_masks[m])]
    }
}

/// A critic's `Q(s, a)` on the host.
pub(super) fn q(net: &Fused, observation: &[f32], action: usize, scratch: &mut Scratch) -> f32 {
    let (scores, value) = net.forward(observation, scratch);
    value + scores[action]
}

/// Squared error of `Q` of the logged actions against targets.
struct Regression<'a> {
    actions: &'a [u32],
    targets: &'a [f32],
    rows: f32,
}

impl Objective for Regression<'_> {
    /// Mean squared error.
    type Report = [f64; 1];

    fn actions(&self) -> &[u32] {
        self.actions
    }

    fn loss(&self, outputs: &Outputs<'_>) -> (Tensor<1>, [f64; 1]) {
        let score = outputs.score.clone();
        let error = outputs.values.clone() + score - outputs.column(|row| self.targets[row as usize]);
        let loss = error.square().sum() / self.rows;
        let report = [outputs.number(&loss)];
        (loss, report)
    }
}

impl Learner {
    /// Mean squared error of `Q` of the logged actions against `targets`, and its gradient; the
    /// weights stay as they are.
    pub fn critic_gradient(&self, batch: &OfflineBatch<'_>, targets: &[f32]) -> (f64, Vec<f32>) {
        let rows = batch.check(self.weights());
        let objective = Regression { actions: batch.actions, targets, rows: rows as f32 };
        let source = self.source(batch.observations, batch.masks);
        let (gradient, reports) = self.gradient(&source, &all(rows), &objective);
        let [error] = sum(&reports);
        (error, gradient)
    }
}

/// The sum of what shards report.
pub(super) fn sum<const N: usize>(reports: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|at| reports.iter().map(|report| report[at]).sum())
}

/// Moves `targets` the share `rate` of the way to `weights` (Polyak averaging).
pub(super) fn follow(targets: &mut Weights, weights: &Weights, rate: f32) {
    targets
        .data_mut()
        .iter_mut()
        .zip(weights.data())
        .for_each(|(target, &weight)| *target += rate * (weight - *target));
}

/// All rows of a minibatch in order.
pub(super) fn all(rows: usize) -> Vec<u32> {
    (0..rows as u32).collect()
}

/// `size` numbers below `count`, with repetition: the rows of a minibatch.
pub fn draw(count: usize, size: usize, random: &mut impl Rng) -> Vec<usize> {
    (0..size).map(|_| random.random_range(0..count.max(1))).collect()
}

/// A new learner of the same net that is another draw of its weights.
pub(super) fn another(like: &Learner, seed: u64) -> Learner {
    let weights = like.weights();
    Learner::new(weights.config(), *weights.layout(), like.adam().config, seed)
}
