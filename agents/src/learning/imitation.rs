//! Behaviour cloning: raise the probability of the teacher's actions, and teach the critic the
//! teacher's returns.

use burn::tensor::Tensor;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::learning::learner::{Diverged, Learner};
use crate::learning::objective::{Objective, Outputs};
use crate::nets::layers::affine::host;
use crate::nets::shard::Source;

/// The constants of the update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImitationConfig {
    /// Passes over a batch.
    pub epochs: usize,
    /// Rows of a minibatch.
    pub minibatch: usize,
    /// Weight of the mean squared error of the critic.
    pub value_coefficient: f32,
    /// Largest norm of a gradient.
    pub max_grad_norm: f32,
}

impl Default for ImitationConfig {
    fn default() -> Self {
        Self { epochs: 1, minibatch: 512, value_coefficient: 0.5, max_grad_norm: 1.0 }
    }
}

/// Decisions of a teacher.
#[derive(Clone, Copy, Debug)]
pub struct ImitationBatch<'a> {
    /// Values of shape `[rows, obs_dim]`.
    pub observations: &'a [f32],
    /// Values of shape `[rows, actions]`.
    pub masks: &'a [u8],
    /// `[rows]`: what the teacher did, or would have done.
    pub actions: &'a [u32],
    /// `[rows]`: how much each decision counts; all alike without.
    pub weights: Option<&'a [f32]>,
    /// `[rows]`: targets of the critic; not taught without.
    pub returns: Option<&'a [f32]>,
}

/// Means over the minibatches of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImitationStats {
    /// Weighted mean of `-ln p(teacher's action)`.
    pub cross_entropy: f64,
    /// Weighted share of rows where the teacher's action is the most probable.
    pub accuracy: f64,
    /// Mean squared error of the critic.
    pub value_loss: f64,
    /// Norm of the gradient before it is cut.
    pub grad_norm: f64,
    /// Steps of the optimiser made.
    pub minibatches: usize,
}

impl Learner {
    /// One update on decisions of a teacher.
    ///
    /// # Errors
    /// [`Diverged`] when a gradient is not finite; the weights are those before that minibatch.
    ///
    /// # Panics
    /// When slices do not agree on the number of rows.
    pub fn imitate(
        &mut self,
        config: &ImitationConfig,
        learning_rate: f32,
        batch: &ImitationBatch<'_>,
        random: &mut impl Rng,
    ) -> Result<ImitationStats, Diverged> {
        let count = batch.check(self);
        let source = self.source(batch.observations, batch.masks);
        let mut stats = ImitationStats::default();
        for _ in 0..config.epochs {
            for rows in Self::minibatches(count, config.minibatch, random) {
                let (terms, mut gradient) = self.evaluate_imitation(config, batch, &source, &rows);
                let norm = self.step(&mut gradient, config.max_grad_norm, learning_rate, stats.minibatches)?;
                stats.add(&terms);
                stats.grad_norm += f64::from(norm);
                stats.minibatches += 1;
            }
        }
        stats.divide(stats.minibatches.max(1) as f64);
        Ok(stats)
    }

    /// Terms and gradient of the whole batch as one minibatch; the weights stay as they are.
    pub fn imitation_gradient(
        &self,
        config: &ImitationConfig,
        batch: &ImitationBatch<'_>,
    ) -> (ImitationStats, Vec<f32>) {
        let rows: Vec<u32> = (0..batch.check(self) as u32).collect();
        self.evaluate_imitation(config, batch, &self.source(batch.observations, batch.masks), &rows)
    }

    fn evaluate_imitation(
        &self,
        config: &ImitationConfig,
        batch: &ImitationBatch<'_>,
        source: &Source<'_>,
        rows: &[u32],
    ) -> (ImitationStats, Vec<f32>) {
        let total: f32 = rows.iter().map(|&row| batch.weight(row)).sum();
        // Where no row of a minibatch counts, its shares become 0 and not NaN.
        let objective = Imitation { config, batch, rows: rows.len() as f32, total: total.max(1e-8) };
        let (gradient, reports) = self.gradient(source, rows, &objective);
        let mut terms = ImitationStats::default();
        reports.iter().for_each(|report| terms.add(report));
        (terms, gradient)
    }
}

impl ImitationBatch<'_> {
    fn weight(&self, row: u32) -> f32 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }

    /// The number of rows, after checking that all slices agree on it.
    fn check(&self, learner: &Learner) -> usize {
        let (rows, layout) = (self.actions.len(), learner.weights().layout());
        assert!(
            self.observations.len() == rows * layout.obs_dim() && self.masks.len() == rows * layout.actions(),
            "rows of {layout:?}"
        );
        assert!(
            rows > 0 && self.weights.is_none_or(|w| w.len() == rows) && self.returns.is_none_or(|r| r.len() == rows),
            "one number per row"
        );
        rows
    }
}

impl ImitationStats {
    fn terms(&mut self) -> [&mut f64; 4] {
        let Self { cross_entropy, accuracy, value_loss, grad_norm, .. } = self;
        [cross_entropy, accuracy, value_loss, grad_norm]
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
struct Imitation<'a> {
    config: &'a ImitationConfig,
    batch: &'a ImitationBatch<'a>,
    rows: f32,
    total: f32,
}

impl Objective for Imitation<'_> {
    type Report = ImitationStats;

    fn actions(&self) -> &[u32] {
        self.batch.actions
    }

    fn loss(&self, outputs: &Outputs<'_>) -> (Tensor<1>, ImitationStats) {
        let weight = outputs.column(|row| self.batch.weight(row) / self.total);
        let log_prob = outputs.log_prob.clone();
        let mut loss = (log_prob.clone() * weight).sum().neg();
        let mut stats = ImitationStats::default();

        for ((&row, log_prob), &best) in outputs.rows.iter().zip(host(log_prob)).zip(&outputs.most_probable) {
            let share = f64::from(self.batch.weight(row) / self.total);
            stats.cross_entropy -= share * f64::from(log_prob);
            stats.accuracy += share * f64::from(u8::from(best));
        }
        if let Some(returns) = self.batch.returns {
            let value =
                (outputs.values.clone() - outputs.column(|row| returns[row as usize])).square().sum() / self.rows;
            loss = loss + value.clone() * self.config.value_coefficient;
            stats.value_loss = host(value).first().copied().map_or(f64::NAN, f64::from);
        }
        (loss, stats)
    }
}
