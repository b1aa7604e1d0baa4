//! Conservative Q-learning on a double deep Q network (Kumar et al. 2020, arXiv:2006.04779, the variant CQL(H) for discrete actions;
//! van Hasselt et al. 2016): `alpha (logsumexp Q(s, .) - Q(s, a))` keeps the values of what was never tried down.
//!
//! The policy is the net itself: its scores are what tells the actions of a state apart, so the action of the greatest score is that of the
//! greatest `Q`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::learning::learner::{Diverged, Learner};
use crate::learning::offline::{OfflineBatch, follow, q};
use crate::nets::distribution::argmax;
use crate::nets::fused::Fused;
use crate::nets::weights::Weights;

/// The constants of the update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CqlConfig {
    /// Weight of the conservative term.
    pub alpha: f32,
    /// Share by which the target critic follows at every step.
    pub target_rate: f32,
    /// Largest norm of a gradient.
    pub max_grad_norm: f32,
}

impl Default for CqlConfig {
    fn default() -> Self {
        Self { alpha: 1.0, target_rate: 0.005, max_grad_norm: 1.0 }
    }
}

/// Means over a minibatch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CqlStats {
    /// Squared error of the critic.
    pub critic_loss: f64,
    /// `logsumexp Q(s, .) - Q(s, a)`.
    pub gap: f64,
}

/// A critic that is the policy too, and what it bootstraps from.
#[derive(Clone, Debug)]
pub struct Cql {
    /// `Q`.
    pub critic: Learner,
    /// A slow copy.
    pub target: Weights,
}

impl Cql {
    /// From the critic's first weights.
    pub fn new(critic: Learner) -> Self {
        Self { target: critic.weights().clone(), critic }
    }

    /// One step on a minibatch.
    ///
    /// # Errors
    /// [`Diverged`] when a gradient is not finite.
    ///
    /// # Panics
    /// When slices do not agree on the number of rows.
    pub fn update(&mut self, config: &CqlConfig, rate: f32, batch: &OfflineBatch<'_>) -> Result<CqlStats, Diverged> {
        let weights = self.critic.weights();
        let count = batch.check(weights);
        let (net, slow) = (Fused::new(weights), Fused::new(&self.target));
        let (mut scratch, mut of_slow) = (net.scratch(), slow.scratch());
        let target = |row: usize| match batch.returns {
            Some(returns) => returns[row],
            None if batch.discounts[row] == 0.0 => batch.rewards[row],
            None => {
                let [_, (then, mask)] = batch.row(row, weights);
                let best = argmax(net.logits(then, &mut scratch), mask);
                batch.rewards[row] + batch.discounts[row] * q(&slow, then, best, &mut of_slow)
            }
        };
        let targets: Vec<f32> = (0..count).map(target).collect();
        let ([critic_loss, gap], mut gradient) = self.critic.critic_gradient(batch, &targets, config.alpha);
        self.critic.step(&mut gradient, config.max_grad_norm, rate, 0)?;
        follow(&mut self.target, self.critic.weights(), if batch.returns.is_some() { 1.0 } else { config.target_rate });
        Ok(CqlStats { critic_loss, gap })
    }
}
