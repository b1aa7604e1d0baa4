//! One affine layer over a few rows, written so that plain x86-64 vectorises it.
//!
//! Columns are stored in panels of eight; a block of four rows by one panel, or one row by four
//! panels, keeps its sums in registers. Each output is `bias + x0 w0 + x1 w1 + ...` in that order
//! whatever the blocking, so results do not depend on how many rows are computed together.

use std::ops::Range;

use pulp::NullaryFnOnce;

use crate::nets::simd::widest;

/// Columns of a panel.
const LANES: usize = 8;
/// Rows, or panels of a single row, computed together.
const BLOCK: usize = 4;

type Panel = [f32; LANES];

/// Room that `outputs` columns take in a row.
pub(crate) const fn padded(outputs: usize) -> usize {
    outputs.div_ceil(LANES) * LANES
}

/// Activation that is applied to the sums.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    None,
    Relu,
}

/// An affine layer with its matrix in panels. Rows of its output are [`padded`] long; the padding
/// is 0.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    inputs: usize,
    outputs: usize,
    panels: Vec<Panel>,
    bias: Vec<f32>,
}

impl Dense {
    /// Copies a matrix `[inputs, outputs]` and its bias.
    pub fn new(inputs: usize, outputs: usize, (matrix, bias): (&[f32], &[f32])) -> Self {
        let width = padded(outputs);
        let mut dense =
            Self { inputs, outputs, panels: vec![[0.0; LANES]; width / LANES * inputs], bias: vec![0.0; width] };
        dense.load((matrix, bias));
        dense
    }

    /// Replaces the parameters; allocates nothing.
    pub fn load(&mut self, (matrix, bias): (&[f32], &[f32])) {
        for (input, row) in matrix.chunks_exact(self.outputs).enumerate() {
            for (panel, columns) in row.chunks(LANES).enumerate() {
                self.panels[panel * self.inputs + input][..columns.len()].copy_from_slice(columns);
            }
        }
        self.bias[..self.outputs].copy_from_slice(bias);
    }

    /// The bias, padded.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Length of a row of output.
    pub fn width(&self) -> usize {
        self.bias.len()
    }

    /// `y = activation(x W + b)` for `rows` rows of `x`, each `stride` long.
    pub fn forward(&self, rows: usize, x: &[f32], stride: usize, activation: Activation, y: &mut [f32]) {
        self.forward_from(&self.bias, rows, x, stride, activation, y);
    }

    /// As [`Self::forward`] with another padded bias.
    pub fn forward_from(
        &self,
        bias: &[f32],
        rows: usize,
        x: &[f32],
        stride: usize,
        activation: Activation,
        y: &mut [f32],
    ) {
        match activation {
            Activation::None => self.run::<false>(0..self.inputs, bias, rows, x, stride, y),
            Activation::Relu => self.run::<true>(0..self.inputs, bias, rows, x, stride, y),
        }
    }

    /// `y = activation(x W + b)` for one row of which only the inputs in these two ranges are not
    /// 0: the same bits as [`Self::forward`]. `sums` is room for a row of output.
    pub fn forward_ends(
        &self,
        x: &[f32],
        ends: [Range<usize>; 2],
        activation: Activation,
        sums: &mut [f32],
        y: &mut [f32],
    ) {
        let [head, tail] = ends;
        self.run::<false>(head.clone(), &self.bias, 1, &x[head], 0, sums);
        // The tail goes on from the sums of the head, which keeps the order of additions.
        match activation {
            Activation::None => self.run::<false>(tail.clone(), sums, 1, &x[tail], 0, y),
            Activation::Relu => self.run::<true>(tail.clone(), sums, 1, &x[tail], 0, y),
        }
    }

    /// `x` has only the inputs in `used`.
    fn run<const RELU: bool>(
        &self,
        used: Range<usize>,
        bias: &[f32],
        rows: usize,
        x: &[f32],
        stride: usize,
        y: &mut [f32],
    ) {
        widest(Sums::<RELU> { dense: self, used, bias, rows, x, stride, y });
    }
}

/// One call of [`Dense::run`]: a type and no closure, since the compiler does not inline so long a closure.
struct Sums<'a, const RELU: bool> {
    dense: &'a Dense,
    used: Range<usize>,
    bias: &'a [f32],
    rows: usize,
    x: &'a [f32],
    stride: usize,
    y: &'a mut [f32],
}

impl<const RELU: bool> NullaryFnOnce for Sums<'_, RELU> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { dense, used, bias, rows, x, stride, y } = self;
        let (inputs, width) = (used.len(), dense.width());
        let row = |r: usize| &x[r * stride..r * stride + inputs];
        let panel = |p: usize| &dense.panels[p * dense.inputs..(p + 1) * dense.inputs][used.start..used.end];
        let panels = width / LANES;
        let blocked = rows / BLOCK * BLOCK;
        for r in (0..blocked).step_by(BLOCK) {
            let x = [row(r), row(r + 1), row(r + 2), row(r + 3)];
            for p in 0..panels {
                let sums = block([panel(p)], x, [lanes(bias, p)], inputs);
                for (k, sum) in sums.iter().enumerate() {
                    store::<RELU>(&sum[0], &mut y[(r + k) * width + p * LANES..]);
                }
            }
        }
        for r in blocked..rows {
            let (x, y) = ([row(r)], &mut y[r * width..(r + 1) * width]);
            let wide = panels / BLOCK * BLOCK;
            for p in (0..wide).step_by(BLOCK) {
                let four = [panel(p), panel(p + 1), panel(p + 2), panel(p + 3)];
                let start = [lanes(bias, p), lanes(bias, p + 1), lanes(bias, p + 2), lanes(bias, p + 3)];
                for (k, sum) in block(four, x, start, inputs)[0].iter().enumerate() {
                    store::<RELU>(sum, &mut y[(p + k) * LANES..]);
                }
            }
            for p in wide..panels {
                store::<RELU>(&block([panel(p)], x, [lanes(bias, p)], inputs)[0][0], &mut y[p * LANES..]);
            }
        }
    }
}

#[inline(always)]
fn lanes(bias: &[f32], panel: usize) -> Panel {
    std::array::from_fn(|lane| bias[panel * LANES + lane])
}

/// Sums of `R` rows by `P` panels.
#[inline(always)]
fn block<const R: usize, const P: usize>(
    panels: [&[Panel]; P],
    x: [&[f32]; R],
    start: [Panel; P],
    inputs: usize,
) -> [[Panel; P]; R] {
    // Slices of one known length free the loop of checks of bounds.
    let panels = panels.map(|panel| &panel[..inputs]);
    let x = x.map(|row| &row[..inputs]);
    let mut sums = [start; R];
    for i in 0..inputs {
        for p in 0..P {
            let w = panels[p][i];
            for r in 0..R {
                let a = x[r][i];
                for lane in 0..LANES {
                    sums[r][p][lane] += a * w[lane];
                }
            }
        }
    }
    sums
}

#[inline(always)]
fn store<const RELU: bool>(sum: &Panel, y: &mut [f32]) {
    for (y, &s) in y[..LANES].iter_mut().zip(sum) {
        *y = if RELU && s <= 0.0 { 0.0 } else { s };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_shape_equals_the_plain_loop_bit_for_bit() {
        for (rows, inputs, outputs) in
            [(1, 1, 1), (3, 5, 3), (4, 7, 8), (6, 20, 32), (9, 33, 41), (1, 84, 64), (5, 0, 9)]
        {
            let value = |i: usize| ((i * 7919 % 1009) as f32 - 504.0) / 300.0;
            let matrix: Vec<f32> = (0..inputs * outputs).map(value).collect();
            let bias: Vec<f32> = (0..outputs).map(|i| value(i + 17)).collect();
            let stride = inputs + 3;
            let x: Vec<f32> = (0..rows * stride).map(|i| value(i + 5)).collect();
            let dense = Dense::new(inputs, outputs, (&matrix, &bias));
            let mut y = vec![7.0; rows * dense.width()];
            dense.forward(rows, &x, stride, Activation::Relu, &mut y);
            for r in 0..rows {
                for o in 0..dense.width() {
                    let want = if o < outputs {
                        (0..inputs).fold(bias[o], |s, i| s + x[r * stride + i] * matrix[i * outputs + o])
                    } else {
                        0.0
                    };
                    assert_eq!(y[r * dense.width() + o], want.max(0.0), "{rows}x{inputs}x{outputs} at {r},{o}");
                }
            }
            // A row of which the middle is 0.
            let (head, tail) = (inputs / 3, inputs - inputs / 4);
            let row: Vec<f32> = (0..inputs).map(|i| if (head..tail).contains(&i) { 0.0 } else { x[i] }).collect();
            let (mut whole, mut sums, mut ends) =
                (vec![0.0; dense.width()], vec![0.0; dense.width()], vec![0.0; dense.width()]);
            dense.forward(1, &row, 0, Activation::Relu, &mut whole);
            dense.forward_ends(&row, [0..head, tail..inputs], Activation::Relu, &mut sums, &mut ends);
            assert_eq!(whole, ends);
        }
    }
}
