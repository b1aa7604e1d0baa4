//! Update of the policy, its value and its critics.

use burn::tensor::Tensor;

use crate::learning::iql::IqlConfig;
use crate::learning::learner::{Diverged, Learner};
use crate::learning::objective::{Objective, Outputs};
use crate::learning::offline::{OfflineBatch, all, another, follow, q, sum};
use crate::nets::fused::Fused;
use crate::nets::weights::Weights;

/// Largest weight of a decision.
const HEAVIEST: f32 = 100.0;

/// Means over a minibatch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IqlStats {
    /// Expectile loss of the value.
    pub value_loss: f64,
    /// Squared error of the critics.
    pub critic_loss: f64,
    /// Weighted cross-entropy of the policy.
    pub policy_loss: f64,
    /// Mean of `V`.
    pub value: f64,
    /// Root mean square of advantages.
    pub advantage: f64,
}

/// A policy with its value, two critics and what these bootstrap from.
#[derive(Clone, Debug)]
pub struct Iql {
    /// The policy; its critic is `V`.
    pub policy: Learner,
    /// Two critics, each an estimate of `Q`.
    pub critics: [Learner; 2],
    /// Slow copies of both.
    pub targets: [Weights; 2],
}

impl Iql {
    /// Critics of the policy's kind, drawn from `seed`.
    pub fn new(policy: Learner, seed: u64) -> Self {
        let critics = [1, 2].map(|at| another(&policy, seed.wrapping_add(at)));
        let targets = critics.each_ref().map(|critic| critic.weights().clone());
        Self { policy, critics, targets }
    }

    /// One step of all nets on a minibatch.
    ///
    /// # Errors
    /// [`Diverged`] when a gradient is not finite.
    ///
    /// # Panics
    /// When slices do not agree on the number of rows.
    pub fn update(&mut self, config: &IqlConfig, rate: f32, batch: &OfflineBatch<'_>) -> Result<IqlStats, Diverged> {
        let weights = self.policy.weights();
        let count = batch.check(weights);
        let value = Fused::new(weights);
        let nets = self.targets.each_ref().map(Fused::new);
        let (mut scratch, mut of_nets) = (value.scratch(), nets.each_ref().map(Fused::scratch));
        let (mut estimates, mut targets, mut advantages) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..count {
            let [(now, _), (then, _)] = batch.row(row, weights);
            let action = batch.actions[row] as usize;
            let both = [0, 1].map(|at| q(&nets[at], now, action, &mut of_nets[at]));
            let own = batch.returns.map_or(both[0].min(both[1]), |returns| returns[row]);
            estimates.push(own);
            advantages.push(own - value.value(now, &mut scratch));
            targets.push(match batch.returns {
                Some(returns) => returns[row],
                // Nothing follows, and the net has no say about the observation that stands in for
                // it.
                None if batch.discounts[row] == 0.0 => batch.rewards[row],
                None => batch.rewards[row] + batch.discounts[row] * value.value(then, &mut scratch),
            });
        }
        let square = advantages.iter().map(|&a| f64::from(a).powi(2)).sum::<f64>() / count as f64;
        let spread = square.sqrt().max(1e-6) as f32;
        let weight = |&advantage: &f32| (config.temperature * advantage / spread).exp().min(HEAVIEST);
        let heavy: Vec<f32> = advantages.iter().map(weight).collect();
        // A regression on logged returns wants their mean, which is the expectile 0.5.
        let expectile = if batch.returns.is_some() { 0.5 } else { config.expectile };
        let ([value_loss, policy_loss, mean], mut gradient) =
            self.policy.extraction_gradient(batch, &estimates, &heavy, expectile);
        let mut stats = IqlStats { value_loss, policy_loss, value: mean, advantage: square.sqrt(), critic_loss: 0.0 };
        // All targets were computed above, before any of the nets moves.
        self.policy.step(&mut gradient, config.max_grad_norm, rate, 0)?;
        for (critic, target) in self.critics.iter_mut().zip(&mut self.targets) {
            let (error, mut gradient) = critic.critic_gradient(batch, &targets);
            stats.critic_loss += error / 2.0;
            critic.step(&mut gradient, config.max_grad_norm, rate, 0)?;
            // Critics that regress on returns do not chase themselves, so their targets need not be
            // slow.
            follow(target, critic.weights(), if batch.returns.is_some() { 1.0 } else { config.target_rate });
        }
        Ok(stats)
    }
}

impl Learner {
    /// Expectile loss of the value against `estimates` of what was done, cross-entropy of what was
    /// done with these `weights`, mean value; and the gradient of the sum of the first two. The
    /// weights stay as they are.
    pub fn extraction_gradient(
        &self,
        batch: &OfflineBatch<'_>,
        estimates: &[f32],
        weights: &[f32],
        expectile: f32,
    ) -> ([f64; 3], Vec<f32>) {
        let rows = batch.check(self.weights());
        let objective = Extraction { actions: batch.actions, estimates, weights, expectile, rows: rows as f32 };
        let source = self.source(batch.observations, batch.masks);
        let (gradient, reports) = self.gradient(&source, &all(rows), &objective);
        (sum(&reports), gradient)
    }
}

/// The expectile regression of the value and the weighted imitation of the policy: one net, one
/// gradient.
struct Extraction<'a> {
    actions: &'a [u32],
    /// `Q(s, a)` of what was done.
    estimates: &'a [f32],
    /// Weight of each decision.
    weights: &'a [f32],
    expectile: f32,
    rows: f32,
}

impl Objective for Extraction<'_> {
    type Report = [f64; 3];

    fn actions(&self) -> &[u32] {
        self.actions
    }

    fn loss(&self, outputs: &Outputs<'_>) -> (Tensor<1>, [f64; 3]) {
        let above = outputs.column(|row| self.estimates[row as usize]) - outputs.values.clone();
        // tau u^2 where u is positive, (1 - tau) u^2 elsewhere: by the squares of both parts.
        let (up, down) = (above.clone().clamp_min(0.0), above.clamp_max(0.0));
        let value = (up.square() * self.expectile + down.square() * (1.0 - self.expectile)).sum() / self.rows;
        let weight = outputs.column(|row| self.weights[row as usize] / self.rows);
        let policy = (outputs.log_prob.clone() * weight).sum().neg();
        let mean = outputs.values.clone().sum() / self.rows;
        let report = [outputs.number(&value), outputs.number(&policy), outputs.number(&mean)];
        (value + policy, report)
    }
}
