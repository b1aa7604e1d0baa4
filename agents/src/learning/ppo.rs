//! Proximal policy optimisation (Schulman et al. 2017) with the details that matter (Huang et al.
//! 2022, "The 37 implementation details"): minibatches over the flattened batch, advantages
//! normalised per minibatch, no clipping of the value loss, one global norm for the gradient, Adam
//! with epsilon 1e-5, and masks re-applied exactly as they were.
//!
//! Annealing belongs to the caller: learning rate and coefficients are given with each update.

use burn::tensor::Tensor;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::learning::learner::{Diverged, Learner};
use crate::learning::objective::{Objective, Outputs};
use crate::nets::fused::Fused;
use crate::nets::layers::affine::host;
use crate::nets::shard::Source;

/// The constants of the update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PpoConfig {
    /// Passes over a batch.
    pub epochs: usize,
    /// Rows of a minibatch.
    pub minibatch: usize,
    /// Largest distance of a probability ratio from 1.
    pub clip: f32,
    /// Weight of the mean squared error of the critic.
    pub value_coefficient: f32,
    /// Largest norm of a gradient.
    pub max_grad_norm: f32,
    /// The update ends when the approximate KL divergence from the acting policy exceeds 1.5 times
    /// this; 0 for never.
    pub target_kl: f32,
}

impl Default for PpoConfig {
    fn default() -> Self {
        Self { epochs: 4, minibatch: 512, clip: 0.2, value_coefficient: 0.5, max_grad_norm: 0.5, target_kl: 0.02 }
    }
}

/// Rates that the caller anneals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PpoRates {
    /// Step size of Adam.
    pub learning_rate: f32,
    /// Weight of the entropy bonus. Entropies are divided by the logarithm of the number of allowed
    /// actions.
    pub entropy: f32,
    /// Weight of `KL(reference || policy)`; needs a reference.
    pub reference_kl: f32,
}

/// Rows of experience, environments and steps flattened.
#[derive(Clone, Copy, Debug)]
pub struct PpoBatch<'a> {
    /// Values of shape `[rows, obs_dim]`.
    pub observations: &'a [f32],
    /// `[rows, actions]`, as they were when acting.
    pub masks: &'a [u8],
    /// Values of shape `[rows]`.
    pub actions: &'a [u32],
    /// `[rows]`: log-probabilities when acting.
    pub log_probs: &'a [f32],
    /// `[rows]`: critic when acting; only for the explained variance.
    pub values: &'a [f32],
    /// Values of shape `[rows]`.
    pub advantages: &'a [f32],
    /// `[rows]`: targets of the critic.
    pub returns: &'a [f32],
}

/// Means over the minibatches of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PpoStats {
    /// Clipped surrogate, negated.
    pub policy_loss: f64,
    /// Mean squared error of the critic.
    pub value_loss: f64,
    /// Entropy over its maximum: 1 is uniform over what is allowed.
    pub entropy: f64,
    /// `mean(r - 1 - ln r)` of the probability ratio `r`.
    pub approx_kl: f64,
    /// Share of rows with a probability ratio outside the clip.
    pub clipfrac: f64,
    /// `KL(reference || policy)`; 0 without a reference.
    pub reference_kl: f64,
    /// Of the returns by the critic that acted: 1 is perfect, 0 is no better than the mean.
    pub explained_variance: f64,
    /// Norm of the gradient before it is cut.
    pub grad_norm: f64,
    /// Steps of the optimiser made.
    pub minibatches: usize,
    /// Whether the KL divergence ended the update early.
    pub stopped: bool,
}

/// The loss of a minibatch and its gradient, without a step: for tests and diagnostics.
#[derive(Clone, Debug, PartialEq)]
pub struct PpoGradient {
    /// Total loss: policy + value - entropy + reference, each with its weight.
    pub loss: f64,
    /// Terms of the loss; `grad_norm`, `minibatches` and `explained_variance` are not set.
    pub terms: PpoStats,
    /// By parameter, in the order of the flat vector.
    pub gradient: Vec<f32>,
}

impl Learner {
    /// One update on a batch. `reference` is a frozen policy, such as the imitated teacher, to stay
    /// close to.
    ///
    /// # Errors
    /// [`Diverged`] when a gradient is not finite; the weights are those before that minibatch.
    ///
    /// # Panics
    /// When slices do not agree on the number of rows.
    pub fn ppo(
        &mut self,
        config: &PpoConfig,
        rates: PpoRates,
        batch: &PpoBatch<'_>,
        reference: Option<&Fused>,
        random: &mut impl Rng,
    ) -> Result<PpoStats, Diverged> {
        let count = batch.check(self);
        let source = self.source(batch.observations, batch.masks);
        let mut stats = PpoStats::default();
        'update: for _ in 0..config.epochs {
            for rows in Self::minibatches(count, config.minibatch, random) {
                let (terms, mut gradient) = self.evaluate(config, rates, batch, &source, reference, &rows);
                // The check comes before the step: nothing is learnt from a policy that is too far
                // already.
                if config.target_kl > 0.0 && terms.approx_kl > 1.5 * f64::from(config.target_kl) {
                    stats.stopped = true;
                    break 'update;
                }
                let norm = self.step(&mut gradient, config.max_grad_norm, rates.learning_rate, stats.minibatches)?;
                stats.add(&terms);
                stats.grad_norm += f64::from(norm);
                stats.minibatches += 1;
            }
        }
        stats.divide(stats.minibatches.max(1) as f64);
        stats.explained_variance = explained_variance(batch.values, batch.returns);
        Ok(stats)
    }

    /// Loss and gradient of the whole batch as one minibatch; the weights stay as they are.
    pub fn ppo_gradient(
        &self,
        config: &PpoConfig,
        rates: PpoRates,
        batch: &PpoBatch<'_>,
        reference: Option<&Fused>,
    ) -> PpoGradient {
        let rows: Vec<u32> = (0..batch.check(self) as u32).collect();
        let source = self.source(batch.observations, batch.masks);
        let (terms, gradient) = self.evaluate(config, rates, batch, &source, reference, &rows);
        let loss = terms.policy_loss + f64::from(config.value_coefficient) * terms.value_loss
            - f64::from(rates.entropy) * terms.entropy
            + f64::from(rates.reference_kl) * terms.reference_kl;
        PpoGradient { loss, terms, gradient }
    }

    fn evaluate(
        &self,
        config: &PpoConfig,
        rates: PpoRates,
        batch: &PpoBatch<'_>,
        source: &Source<'_>,
        reference: Option<&Fused>,
        rows: &[u32],
    ) -> (PpoStats, Vec<f32>) {
        // The moments are those of the whole minibatch, of which a shard sees only a part.
        let (mean, deviation) = moments(rows.iter().map(|&row| batch.advantages[row as usize]));
        let objective = Ppo {
            config,
            rates,
            batch,
            reference: reference.filter(|_| rates.reference_kl != 0.0),
            rows: rows.len() as f32,
            mean: mean as f32,
            deviation: deviation as f32 + 1e-8,
        };
        let (gradient, reports) = self.gradient(source, rows, &objective);
        let mut terms = PpoStats::default();
        reports.iter().for_each(|report| terms.add(report));
        (terms, gradient)
    }
}

impl PpoBatch<'_> {
    /// The number of rows, after checking that all slices agree on it.
    fn check(&self, learner: &Learner) -> usize {
        let (rows, layout) = (self.actions.len(), learner.weights().layout());
        assert!(
            self.observations.len() == rows * layout.obs_dim() && self.masks.len() == rows * layout.actions(),
            "rows of {layout:?}"
        );
        let lengths = [self.log_probs.len(), self.values.len(), self.advantages.len(), self.returns.len()];
        assert!(rows > 0 && lengths.iter().all(|&length| length == rows), "one number per row");
        rows
    }
}

impl PpoStats {
    fn terms(&mut self) -> [&mut f64; 7] {
        let Self { policy_loss, value_loss, entropy, approx_kl, clipfrac, reference_kl, grad_norm, .. } = self;
        [policy_loss, value_loss, entropy, approx_kl, clipfrac, reference_kl, grad_norm]
    }

    fn add(&mut self, other: &Self) {
        let mut other = *other;
        self.terms().into_iter().zip(other.terms()).for_each(|(sum, part)| *sum += *part);
    }

    fn divide(&mut self, by: f64) {
        self.terms().into_iter().for_each(|term| *term /= by);
    }
}

/// The objective over one minibatch.
struct Ppo<'a> {
    config: &'a PpoConfig,
    rates: PpoRates,
    batch: &'a PpoBatch<'a>,
    reference: Option<&'a Fused>,
    rows: f32,
    mean: f32,
    deviation: f32,
}

impl Objective for Ppo<'_> {
    type Report = PpoStats;

    fn actions(&self) -> &[u32] {
        self.batch.actions
    }

    fn reference(&self) -> Option<&Fused> {
        self.reference
    }

    fn loss(&self, outputs: &Outputs<'_>) -> (Tensor<1>, PpoStats) {
        let (config, batch) = (self.config, self.batch);
        let old = outputs.column(|row| batch.log_probs[row as usize]);
        let log_ratio = outputs.log_prob.clone() - old;
        let ratio = log_ratio.clone().exp();
        let advantage = outputs.column(|row| (batch.advantages[row as usize] - self.mean) / self.deviation);
        let clipped = ratio.clone().clamp(1.0 - config.clip, 1.0 + config.clip);
        let surrogate = (ratio * advantage.clone()).min_pair(clipped * advantage);
        let policy = surrogate.sum().neg() / self.rows;

        let target = outputs.column(|row| batch.returns[row as usize]);
        let value = (outputs.values.clone() - target).square().sum() / self.rows;
        let entropy = outputs.entropy.clone().sum() / self.rows;
        let mut loss = policy.clone() + value.clone() * config.value_coefficient - entropy.clone() * self.rates.entropy;

        let mut stats = PpoStats {
            policy_loss: scalar(policy),
            value_loss: scalar(value),
            entropy: scalar(entropy),
            ..PpoStats::default()
        };
        if self.reference.is_some() {
            let divergence = outputs.divergence.clone().sum() / self.rows;
            loss = loss + divergence.clone() * self.rates.reference_kl;
            stats.reference_kl = scalar(divergence);
        }
        for log_ratio in host(log_ratio) {
            // This estimator of the divergence is unbiased and never negative.
            let (log_ratio, ratio) = (f64::from(log_ratio), f64::from(log_ratio).exp());
            stats.approx_kl += (ratio - 1.0 - log_ratio) / f64::from(self.rows);
            stats.clipfrac += f64::from(u8::from((ratio - 1.0).abs() > f64::from(config.clip))) / f64::from(self.rows);
        }
        (loss, stats)
    }
}

fn scalar(tensor: Tensor<1>) -> f64 {
    host(tensor).first().copied().map_or(f64::NAN, f64::from)
}

/// Mean and standard deviation (over n - 1, as PyTorch's).
fn moments(values: impl Iterator<Item = f32> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().map(f64::from).sum::<f64>() / count;
    let variance = values.map(|v| (f64::from(v) - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, variance.sqrt())
}

/// `1 - Var(returns - values) / Var(returns)`; 0 when returns do not vary.
fn explained_variance(values: &[f32], returns: &[f32]) -> f64 {
    let (_, total) = moments(returns.iter().copied());
    let (_, left) = moments(returns.iter().zip(values).map(|(r, v)| r - v));
    if total > 0.0 { 1.0 - (left / total).powi(2) } else { 0.0 }
}
