//! Actor and critic perceptrons in burn. Empty slots at the end are left out: their features are 0 and their actions are not allowed, so the rows of the first
//! matrix and the columns of the actor's last one that belong to them have no part in the result and a gradient of 0.

use burn::tensor::{Tensor, activation::relu};

use super::net::Affine;
use super::shard::FlatInputs;

/// The layers of the actor, then as many of the critic.
pub(super) struct MlpNet {
    pub layers: Vec<Affine>,
    /// Actions about slots; others follow.
    pub slot_actions: usize,
}

impl MlpNet {
    /// Scores `[rows, actions kept]` and values `[rows]`.
    pub fn forward(&self, inputs: &FlatInputs) -> (Tensor<2>, Tensor<1>) {
        let (actor, critic) = self.layers.split_at(self.layers.len() / 2);
        let rows = inputs.features.dims()[0];
        let hidden = |layers: &[Affine]| {
            let Some((first, rest)) = layers.split_first() else { return inputs.features.clone() };
            rest.iter()
                .fold(first.forward_ends(&inputs.features, inputs.globals.as_ref()), |x, layer| layer.forward(relu(x)))
        };
        let scores = match actor.split_last() {
            Some((last, rest)) if !rest.is_empty() => {
                last.forward_columns(relu(hidden(rest)), inputs.actions, self.slot_actions)
            }
            _ => cut(hidden(actor), inputs.actions, self.slot_actions),
        };
        (scores, hidden(critic).reshape([rows]))
    }
}

/// The first `kept` columns and those from `others` on.
pub(super) fn cut(x: Tensor<2>, kept: usize, others: usize) -> Tensor<2> {
    let [rows, columns] = x.dims();
    if kept >= others {
        return x;
    }
    Tensor::cat(vec![x.clone().slice([0..rows, 0..kept]), x.slice([0..rows, others..columns])], 1)
}
