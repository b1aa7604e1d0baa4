//! Adam (Kingma and Ba 2015) over one flat vector of parameters.
//!
//! Ours rather than burn's, because its state is then two vectors and a counter that a checkpoint
//! stores as they are. burn keys optimiser state by random parameter ids, which a checkpoint would
//! have to carry and restore along with the module.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nets::simd::widest;

/// Decay rates and the constant that keeps the division finite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdamConfig {
    /// Decay of the mean of gradients.
    pub beta1: f32,
    /// Decay of the mean of squared gradients.
    pub beta2: f32,
    /// Added to the root of the second moment; 1e-5 as in the original PPO.
    pub epsilon: f32,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-5 }
    }
}

/// State of the optimiser.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Constants of the optimiser.
    pub config: AdamConfig,
    /// Number of steps made so far.
    pub step: u64,
    /// Mean of gradients, one per parameter.
    pub first: Vec<f32>,
    /// Mean of squared gradients, one per parameter.
    pub second: Vec<f32>,
}

impl Adam {
    /// No steps made yet on `parameters` parameters.
    pub fn new(config: AdamConfig, parameters: usize) -> Self {
        Self { config, step: 0, first: vec![0.0; parameters], second: vec![0.0; parameters] }
    }

    /// Moves `parameters` against `gradient` by one step of size `learning_rate`.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], learning_rate: f32) {
        assert_eq!(
            (parameters.len(), gradient.len()),
            (self.first.len(), self.first.len()),
            "one moment per parameter"
        );
        let AdamConfig { beta1, beta2, epsilon } = self.config;
        self.step += 1;
        let correction = |beta: f32| 1.0 - f64::from(beta).powf(self.step as f64);
        let size = (f64::from(learning_rate) / correction(beta1)) as f32;
        let root = correction(beta2).sqrt() as f32;
        let moments = self.first.iter_mut().zip(&mut self.second);
        widest(|| {
            for ((parameter, &g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
                *m = beta1 * *m + (1.0 - beta1) * g;
                *v = beta2 * *v + (1.0 - beta2) * g * g;
                *parameter -= size * *m / (v.sqrt() / root + epsilon);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_has_the_size_of_the_learning_rate() {
        let mut adam = Adam::new(AdamConfig { epsilon: 0.0, ..AdamConfig::default() }, 2);
        let mut p = [1.0, 1.0];
        adam.step(&mut p, &[3.0, -0.01], 0.1);
        assert!((p[0] - 0.9).abs() < 1e-6 && (p[1] - 1.1).abs() < 1e-6, "{p:?}");
    }
}
