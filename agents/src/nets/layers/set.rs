//! The set encoder in burn. Slots are rows of one matrix wherever possible: a batched product would
//! be several times slower.

use burn::tensor::{Tensor, activation::relu};

use crate::nets::layers::affine::Affine;
use crate::nets::layers::attention::Attention;
use crate::nets::shard::SetInputs;
use crate::nets::weights::{Heads, set_layer as layer};

/// A DeepSets actor-critic. Actor and critic share the slot embedding and nothing after it.
pub(crate) struct SetNet {
    pub layers: Vec<Affine>,
    pub heads: Option<Heads>,
}

impl SetNet {
    /// Scores `[rows, slots * verbs + 1]` and values `[rows]`.
    pub fn forward(&self, inputs: &SetInputs) -> (Tensor<2>, Tensor<1>) {
        let apply = |index: usize, x: Tensor<2>| self.layers[index].forward(x);
        let (rows, slots) = (inputs.rows, inputs.slots);

        let [first, second] = [layer::SLOT1, layer::SLOT2].map(|index| &self.layers[index]);
        let attention = self.heads.map(|heads| Attention::of(heads, &self.layers[layer::ATTEND..]));
        let (embedded, pooled) = encode(first, second, attention.as_ref(), inputs);
        let width = embedded.dims()[1];
        let context = apply(layer::POOL2, relu(apply(layer::POOL1, pooled.clone())));
        let projected: Tensor<3> = apply(layer::PROJECT, embedded).reshape([rows, slots, width]);
        let informed = relu(projected + context.clone().reshape([rows, 1, width]));
        let verbs = apply(layer::VERBS, informed.reshape([rows * slots, width]));
        let per_action = verbs.dims()[1] * slots;
        let wait = apply(layer::WAIT, relu(context));
        let logits = Tensor::cat(vec![verbs.reshape([rows, per_action]), wait], 1);

        let value = apply(layer::VALUE3, relu(apply(layer::VALUE2, relu(apply(layer::VALUE1, pooled)))));
        (logits, value.reshape([rows]))
    }
}

/// Embeddings `[rows * slots, width]` of all slots, and their mean, maximum and the globals `[rows,
/// 2 width + globals]`.
pub(crate) fn encode(
    first: &Affine,
    second: &Affine,
    attention: Option<&Attention<'_>>,
    inputs: &SetInputs,
) -> (Tensor<2>, Tensor<2>) {
    let (rows, slots) = (inputs.rows, inputs.slots);
    let alone = relu(second.forward(relu(first.forward(inputs.features.clone()))));
    let embedded = match attention {
        Some(attention) => attention.forward(alone, inputs),
        None => alone,
    };
    let width = embedded.dims()[1];
    let per_slot: Tensor<3> = embedded.clone().reshape([rows, slots, width]);
    // Embeddings are not negative, so zeros in place of empty slots change neither the sum nor the
    // maximum.
    let kept = match &inputs.occupied {
        Some(occupied) => per_slot * occupied.clone(),
        None => per_slot,
    };
    let mean = kept.clone().sum_dim(1).reshape([rows, width]) * inputs.share.clone();
    let max = kept.max_dim(1).reshape([rows, width]);
    let mut parts = vec![mean, max];
    parts.extend(inputs.globals.clone());
    (embedded, Tensor::cat(parts, 1))
}
