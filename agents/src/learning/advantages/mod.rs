//! Regression of the advantages of changes that were tried together.
//!
//! A run with some changes held back and others carried out differs from its opposite by the advantages of all of
//! them. The net gives each change a score, and the sum of the scores by their signs is fitted to the difference by
//! least squares, so that over many runs the score of a change becomes its own advantage.

#[cfg(feature = "learn")]
mod fit;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The constants of the fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdvantageConfig {
    /// Largest number of passes over the samples; the weights of the pass with the least error on samples that are left
    /// out of the fit are kept.
    pub epochs: usize,
    /// Samples of a minibatch.
    pub minibatch: usize,
    /// Step size of Adam.
    pub learning_rate: f32,
    /// Largest norm of a gradient.
    pub max_grad_norm: f32,
}

impl Default for AdvantageConfig {
    fn default() -> Self {
        Self { epochs: 40, minibatch: 64, learning_rate: 1e-3, max_grad_norm: 1.0 }
    }
}

/// Changes that were tried together, and what they saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSample {
    /// Features of all changes of the moment, change by change, and then those of the cluster.
    pub features: Vec<f32>,
    /// By change, 1 where the change was held back, -1 where it was carried out, and 0 where the policy chose.
    pub signs: Vec<f32>,
    /// Saving of these choices against the opposite ones.
    pub target: f32,
    /// Weight of the sample in the fit.
    pub weight: f32,
}
