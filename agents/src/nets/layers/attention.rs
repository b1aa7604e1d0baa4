//! Attention over jobs in burn (Vaswani et al. 2017, section 3.2; over a set as in Lee et al. 2019,
//! so without positions).

use burn::tensor::{
    Tensor,
    activation::{relu, softmax},
};

use crate::nets::layers::affine::Affine;
use crate::nets::shard::SetInputs;
use crate::nets::weights::Heads;

/// Taken off scores of empty slots.
const NEVER: f32 = 1e9;

/// The layers of attention and their shape.
pub(crate) struct Attention<'a> {
    heads: Heads,
    /// Queries, keys and values side by side.
    attend: &'a Affine,
    merge: &'a Affine,
}

impl<'a> Attention<'a> {
    /// The first two of `layers`.
    pub fn of(heads: Heads, layers: &'a [Affine]) -> Self {
        Self { heads, attend: &layers[0], merge: &layers[1] }
    }

    /// `relu(x + merge(heads of x))` for embeddings `[rows * slots, width]`; empty slots are not
    /// attended to.
    pub fn forward(&self, x: Tensor<2>, inputs: &SetInputs) -> Tensor<2> {
        let (rows, slots, Heads { count, depth }) = (inputs.rows, inputs.slots, self.heads);
        let parts: Tensor<4> = self.attend.forward(x.clone()).reshape([rows, slots, 3 * count, depth]);
        // [rows, heads, slots, depth]
        let part = |at: usize| {
            let range = at * count..(at + 1) * count;
            parts.clone().slice([0..rows, 0..slots, range, 0..depth]).swap_dims(1, 2)
        };
        let mut scores = part(0).matmul(part(1).swap_dims(2, 3)) * self.heads.scale();
        if let Some(occupied) = &inputs.occupied {
            let never = (occupied.clone().reshape([rows, 1, 1, slots]) - 1.0) * NEVER;
            scores = scores + never;
        }
        let mixed = softmax(scores, 3).matmul(part(2)).swap_dims(1, 2).reshape([rows * slots, count * depth]);
        relu(x + self.merge.forward(mixed))
    }
}
