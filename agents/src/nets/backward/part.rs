//! An affine layer, forward and back, of which only some rows and columns may take part.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, Zip, s};

use crate::nets::weights::{Layer, Weights};

/// Affine layer of a net, `y = x W + b`.
pub(super) struct Part<'a> {
    layer: &'a Layer,
    matrix: ArrayView2<'a, f32>,
    bias: &'a [f32],
    /// Rows of the matrix that take part: one block for each matrix of inputs.
    inputs: Vec<Range<usize>>,
    /// Columns that take part.
    outputs: Vec<Range<usize>>,
}

impl<'a> Part<'a> {
    /// Layer `index` of a net, whole.
    #[expect(clippy::single_range_in_vec_init, reason = "one block: all of it")]
    pub fn of(weights: &'a Weights, index: usize) -> Self {
        let layer = &weights.layers()[index];
        let (matrix, bias) = weights.layer(index);
        let matrix = ArrayView2::from_shape((layer.inputs, layer.outputs), matrix).expect("a layer has its shape");
        Self { layer, matrix, bias, inputs: vec![0..layer.inputs], outputs: vec![0..layer.outputs] }
    }

    /// Only these rows of the matrix, a block for each matrix of inputs: the other inputs are 0.
    pub fn rows(self, inputs: Vec<Range<usize>>) -> Self {
        Self { inputs, ..self }
    }

    /// Only these columns: the other outputs have no part in the loss.
    pub fn columns(self, outputs: Vec<Range<usize>>) -> Self {
        Self { outputs, ..self }
    }

    /// `[n, inputs] -> [n, outputs]`, for inputs side by side in several matrices.
    pub fn forward(&self, x: &[ArrayView2<'_, f32>]) -> Array2<f32> {
        let (rows, width) = (x.first().map_or(0, |x| x.nrows()), self.outputs.iter().map(Range::len).sum::<usize>());
        let bias: Vec<f32> = self.outputs.iter().flat_map(|columns| &self.bias[columns.clone()]).copied().collect();
        let mut y = Array1::from(bias).broadcast((rows, width)).expect("one row for all").to_owned();
        for (x, inputs) in x.iter().zip(&self.inputs) {
            for (columns, place) in placed(&self.outputs) {
                let block = self.matrix.slice(s![inputs.clone(), columns]);
                general_mat_mul(1.0, x, &block, 1.0, &mut y.slice_mut(s![.., place]));
            }
        }
        y
    }

    /// Adds to the layer's part of `gradient` from its inputs and the slopes of its outputs.
    pub fn collect(&self, x: &[ArrayView2<'_, f32>], slopes: &Array2<f32>, gradient: &mut [f32]) {
        let own = &mut gradient[self.layer.offset..][..self.layer.len()];
        let (matrix, bias) = own.split_at_mut(self.layer.inputs * self.layer.outputs);
        let mut matrix = ArrayViewMut2::from_shape(self.matrix.raw_dim(), matrix).expect("a layer has its shape");
        for (columns, place) in placed(&self.outputs) {
            let slopes = slopes.slice(s![.., place]);
            for (x, inputs) in x.iter().zip(&self.inputs) {
                let mut block = matrix.slice_mut(s![inputs.clone(), columns.clone()]);
                general_mat_mul(1.0, &x.t(), &slopes, 1.0, &mut block);
            }
            for (bias, sum) in bias[columns].iter_mut().zip(slopes.sum_axis(Axis(0))) {
                *bias += sum;
            }
        }
    }

    /// The slopes of the inputs `[n, inputs]`, all in one matrix, from those of the outputs.
    pub fn pull(&self, slopes: &Array2<f32>) -> Array2<f32> {
        let width = self.inputs.iter().map(Range::len).sum();
        let mut x = Array2::zeros((slopes.nrows(), width));
        for (inputs, at) in placed(&self.inputs) {
            for (columns, place) in placed(&self.outputs) {
                let block = self.matrix.slice(s![inputs.clone(), columns]);
                general_mat_mul(
                    1.0,
                    &slopes.slice(s![.., place]),
                    &block.t(),
                    1.0,
                    &mut x.slice_mut(s![.., at.clone()]),
                );
            }
        }
        x
    }
}

/// Blocks and where they lie when they are put side by side.
fn placed(blocks: &[Range<usize>]) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    blocks.iter().scan(0, |end, block| {
        let start = *end;
        *end += block.len();
        Some((block.clone(), start..*end))
    })
}

/// `max(x, 0)`, in place; what is not a number stays so, and the learner says that it diverged.
pub(super) fn relu(mut x: Array2<f32>) -> Array2<f32> {
    x.mapv_inplace(|x| if x < 0.0 { 0.0 } else { x });
    x
}

/// The slopes of what went into a [`relu`] from those of what came out, `y`.
pub(super) fn through(y: &Array2<f32>, mut slopes: Array2<f32>) -> Array2<f32> {
    Zip::from(&mut slopes).and(y).for_each(|slope, &y| *slope = if y <= 0.0 { 0.0 } else { *slope });
    slopes
}
