//! Actor and critic perceptrons in burn.

use burn::tensor::{Tensor, activation::relu};

use super::net::Affine;

/// The layers of the actor, then as many of the critic.
pub(super) struct MlpNet {
    pub layers: Vec<Affine>,
}

impl MlpNet {
    /// Scores `[rows, actions]` and values `[rows]` of observations `[rows, obs_dim]`.
    pub fn forward(&self, x: &Tensor<2>) -> (Tensor<2>, Tensor<1>) {
        let (actor, critic) = self.layers.split_at(self.layers.len() / 2);
        let rows = x.dims()[0];
        (chain(actor, x.clone()), chain(critic, x.clone()).reshape([rows]))
    }
}

fn chain(layers: &[Affine], mut x: Tensor<2>) -> Tensor<2> {
    for (i, layer) in layers.iter().enumerate() {
        x = layer.forward(x);
        if i + 1 < layers.len() {
            x = relu(x);
        }
    }
    x
}
