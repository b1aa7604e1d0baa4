//! Actor and critic perceptrons without a tensor framework.

use goodput_env::gym::Layout;

use super::Scratch;
use super::dense::{Activation, Dense};
use crate::learned::weights::Weights;

/// The layers of the actor, then as many of the critic.
#[derive(Clone, Debug)]
pub(super) struct MlpForward {
    layers: Vec<Dense>,
    layout: Layout,
}

impl MlpForward {
    pub fn new(weights: &Weights) -> Self {
        Self { layers: super::dense_layers(weights), layout: *weights.layout() }
    }

    pub fn layers_mut(&mut self) -> &mut [Dense] {
        &mut self.layers
    }

    /// Scores of all actions.
    pub fn logits(&self, observation: &[f32], scratch: &mut Scratch) {
        self.chain(&self.layers[..self.layers.len() / 2], observation, scratch);
        let actions = scratch.logits.len();
        scratch.logits.copy_from_slice(&scratch.a[..actions]);
    }

    /// Value of the state.
    pub fn value(&self, observation: &[f32], scratch: &mut Scratch) -> f32 {
        self.chain(&self.layers[self.layers.len() / 2..], observation, scratch);
        scratch.a[0]
    }

    /// Runs `layers` in turn and leaves the output in `scratch.a`. The first one passes over slots after the last occupied one.
    fn chain(&self, layers: &[Dense], observation: &[f32], scratch: &mut Scratch) {
        let Layout { slots, slot_features, .. } = self.layout;
        let parts = [0..self.layout.extent(observation) * slot_features, slots * slot_features..observation.len()];
        for (i, layer) in layers.iter().enumerate() {
            match (i, i + 1 == layers.len()) {
                (0, false) => layer.forward_parts(observation, &parts, &mut scratch.b),
                (0, true) => layer.forward(1, observation, 0, Activation::None, &mut scratch.b),
                (_, false) => layer.forward(1, &scratch.a, 0, Activation::Relu, &mut scratch.b),
                (_, true) => layer.forward(1, &scratch.a, 0, Activation::None, &mut scratch.b),
            }
            std::mem::swap(&mut scratch.a, &mut scratch.b);
        }
    }
}
