//! Actor and critic perceptrons. Empty slots at the end are left out: their features are 0 and
//! their actions are not allowed, so the rows of the first matrix and the columns of the actor's
//! last one that belong to them have no part in the result and a gradient of 0.

use ndarray::{Array2, ArrayView2};

use super::part::{Part, relu, through};
use super::{NetOutput, Pass};
use crate::nets::shard::Shard;
use crate::nets::weights::Weights;

/// Both perceptrons, evaluated.
pub(super) struct MlpPass<'a> {
    /// Features of slots `[rows, slots kept * slot_features]` and of the cluster `[rows, globals]`.
    x: [ArrayView2<'a, f32>; 2],
    actor: Perceptron<'a>,
    critic: Perceptron<'a>,
}

/// The layers of one, and what came out of each but the last.
struct Perceptron<'a> {
    layers: Vec<Part<'a>>,
    hidden: Vec<Array2<f32>>,
}

impl<'a> MlpPass<'a> {
    pub fn forward(weights: &'a Weights, shard: &'a Shard) -> (NetOutput, Box<dyn Pass + 'a>) {
        let layout = weights.layout();
        let kept = shard.slots * layout.slot_features;
        let view = |width, data| ArrayView2::from_shape((shard.rows, width), data).expect("gathered in this shape");
        let x = [view(kept, &shard.features), view(layout.globals, &shard.globals)];
        let depth = weights.layers().len() / 2;
        let layer = |index: usize| {
            let (layer, whole) = (&weights.layers()[index], Part::of(weights, index));
            let ends = |first: usize, tail: usize, all: usize| vec![0..first, all - tail..all];
            let cut = match index % depth {
                0 => whole.rows(ends(kept, layout.globals, layer.inputs)),
                _ => whole,
            };
            match index + 1 == depth {
                true => cut.columns(ends(shard.slots * layout.verbs, layout.others(), layer.outputs)),
                false => cut,
            }
        };
        let (actor, scores) = Perceptron::forward((0..depth).map(layer).collect(), &x);
        let (critic, values) = Perceptron::forward((depth..2 * depth).map(layer).collect(), &x);
        let output =
            NetOutput { scores: scores.into_raw_vec_and_offset().0, values: values.into_raw_vec_and_offset().0 };
        (output, Box::new(Self { x, actor, critic }))
    }
}

impl Pass for MlpPass<'_> {
    fn backward(self: Box<Self>, slopes: &NetOutput, gradient: &mut [f32]) {
        let rows = slopes.values.len();
        for (perceptron, slopes) in [(&self.actor, &slopes.scores), (&self.critic, &slopes.values)] {
            let slopes = ArrayView2::from_shape((rows, slopes.len() / rows), slopes).expect("one for each output");
            perceptron.backward(&self.x, slopes.to_owned(), gradient);
        }
    }
}

impl<'a> Perceptron<'a> {
    fn forward(layers: Vec<Part<'a>>, x: &[ArrayView2<'_, f32>]) -> (Self, Array2<f32>) {
        let mut hidden: Vec<Array2<f32>> = Vec::with_capacity(layers.len());
        for (depth, layer) in layers.iter().enumerate() {
            let y = match hidden.last() {
                Some(before) => layer.forward(&[before.view()]),
                None => layer.forward(x),
            };
            hidden.push(if depth + 1 == layers.len() { y } else { relu(y) });
        }
        let out = hidden.pop().expect("a perceptron has a layer");
        (Self { layers, hidden }, out)
    }

    fn backward(&self, x: &[ArrayView2<'_, f32>], mut slopes: Array2<f32>, gradient: &mut [f32]) {
        let (first, rest) = self.layers.split_first().expect("a perceptron has a layer");
        for (layer, before) in rest.iter().zip(&self.hidden).rev() {
            layer.collect(&[before.view()], &slopes, gradient);
            slopes = through(before, layer.pull(&slopes));
        }
        first.collect(x, &slopes, gradient);
    }
}
