//! Adam with decoupled weight decay over one flat vector: Kingma and Ba, ICLR 2015; Loshchilov and
//! Hutter, ICLR 2019.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// State of Adam with decoupled weight decay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdamW {
    /// Number of steps made so far.
    pub step: u64,
    /// Mean of gradients, one a parameter.
    pub first: Vec<f32>,
    /// Mean of squared gradients, one a parameter.
    pub second: Vec<f32>,
}

impl AdamW {
    /// Optimiser of `parameters` parameters that has made no step.
    pub fn new(parameters: usize) -> Self {
        Self { step: 0, first: vec![0.0; parameters], second: vec![0.0; parameters] }
    }

    /// Moves `parameters` against `gradient` by one step of size `learning_rate`, after shrinking
    /// them by `decay` of it.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], learning_rate: f64, decay: f64) {
        self.step += 1;
        let correction = |beta: f32| 1.0 - f64::from(beta).powf(self.step as f64);
        let size = (learning_rate / correction(BETA1)) as f32;
        let root = correction(BETA2).sqrt() as f32;
        let keep = (1.0 - learning_rate * decay) as f32;
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, &g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *m = BETA1 * *m + (1.0 - BETA1) * g;
            *v = BETA2 * *v + (1.0 - BETA2) * g * g;
            // Dividing by `root` first puts epsilon where the paper has it, beside the corrected
            // root.
            *parameter = *parameter * keep - size * *m / (v.sqrt() / root + EPSILON);
        }
    }
}
