//! Actor and critic perceptrons without a tensor framework.

use goodput_env::gym::Layout;

use super::Scratch;
use super::dense::{Activation, Dense};
use crate::nets::weights::Weights;

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
    pub fn logits(&self, layout: &Layout, observation: &[f32], scratch: &mut Scratch) {
        chain(&self.layers[..self.layers.len() / 2], layout, observation, scratch);
        let actions = scratch.logits.len();
        scratch.logits.copy_from_slice(&scratch.a[..actions]);
    }

    /// Value of the state.
    pub fn value(&self, layout: &Layout, observation: &[f32], scratch: &mut Scratch) -> f32 {
        chain(&self.layers[self.layers.len() / 2..], layout, observation, scratch);
        scratch.a[0]
    }
}

/// Runs `layers` in turn and leaves the output in `scratch.a`. Features of slots behind the last
/// occupied one are 0 and left out.
fn chain(layers: &[Dense], layout: &Layout, observation: &[f32], scratch: &mut Scratch) {
    let ends =
        [0..layout.extent(observation) * layout.slot_features, layout.slots * layout.slot_features..layout.obs_dim()];
    let Some((first, rest)) = layers.split_first() else { return };
    let activation = |at: usize| if at + 1 == layers.len() { Activation::None } else { Activation::Relu };
    first.forward_ends(observation, ends, activation(0), &mut scratch.b, &mut scratch.a);
    for (i, layer) in rest.iter().enumerate() {
        layer.forward(1, &scratch.a, 0, activation(i + 1), &mut scratch.b);
        std::mem::swap(&mut scratch.a, &mut scratch.b);
    }
}
