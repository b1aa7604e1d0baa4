//! Actor and critic perceptrons without a tensor framework.

use super::Scratch;
use super::dense::{Activation, Dense};
use crate::learned::weights::Weights;

/// The layers of the actor, then as many of the critic.
#[derive(Clone, Debug)]
pub(super) struct MlpForward {
    layers: Vec<Dense>,
}

impl MlpForward {
    pub fn new(weights: &Weights) -> Self {
        Self { layers: super::dense_layers(weights) }
    }

    pub fn layers_mut(&mut self) -> &mut [Dense] {
        &mut self.layers
    }

    /// Scores of all actions.
    pub fn logits(&self, observation: &[f32], scratch: &mut Scratch) {
        chain(&self.layers[..self.layers.len() / 2], observation, scratch);
        let actions = scratch.logits.len();
        scratch.logits.copy_from_slice(&scratch.a[..actions]);
    }

    /// Value of the state.
    pub fn value(&self, observation: &[f32], scratch: &mut Scratch) -> f32 {
        chain(&self.layers[self.layers.len() / 2..], observation, scratch);
        scratch.a[0]
    }
}

/// Runs `layers` in turn and leaves the output in `scratch.a`.
fn chain(layers: &[Dense], observation: &[f32], scratch: &mut Scratch) {
    for (i, layer) in layers.iter().enumerate() {
        let input = if i == 0 { observation } else { &scratch.a };
        let activation = if i + 1 == layers.len() { Activation::None } else { Activation::Relu };
        layer.forward(1, input, 0, activation, &mut scratch.b);
        std::mem::swap(&mut scratch.a, &mut scratch.b);
    }
}
