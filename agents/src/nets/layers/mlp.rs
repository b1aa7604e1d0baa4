//! Actor and critic perceptrons in burn, over all slots.

use burn::tensor::{Tensor, activation::relu};

use crate::nets::layers::affine::Affine;
use crate::nets::shard::FlatInputs;

/// The layers of the actor, then as many of the critic.
pub(crate) struct MlpNet {
    pub layers: Vec<Affine>,
}

impl MlpNet {
    /// Scores `[rows, actions]` and values `[rows]`.
    pub fn forward(&self, inputs: &FlatInputs) -> (Tensor<2>, Tensor<1>) {
        let (actor, critic) = self.layers.split_at(self.layers.len() / 2);
        let mut parts = vec![inputs.features.clone()];
        parts.extend(inputs.globals.clone());
        let observations = Tensor::cat(parts, 1);
        let rows = observations.dims()[0];
        let through = |layers: &[Affine]| {
            let Some((first, rest)) = layers.split_first() else { return observations.clone() };
            rest.iter().fold(first.forward(observations.clone()), |x, layer| layer.forward(relu(x)))
        };
        (through(actor), through(critic).reshape([rows]))
    }
}
