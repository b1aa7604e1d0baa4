//! PatchTST in a small size: a transformer over overlapping patches of the window as tokens.
//!
//! Nie, Nguyen, Sinthong, Kalagnanam, "A time series is worth 64 words: long-term forecasting with
//! transformers", ICLR 2023: instance normalisation, the last patch repeated at the end, learnt
//! positions, one head over all tokens. Ours differs in layer normalisation before each part
//! (theirs: batch normalisation after it) and ReLU (theirs: GELU, which is slow in burn).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameters::{InitialValues, Matrix, Parameter, ParameterReader, affine, relu};
use super::spec::{Layers, NetShape, within};

/// Settings of PatchTST.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PatchTst {
    /// Values of a patch.
    pub patch: usize,
    /// Steps from one patch to the next.
    pub stride: usize,
    /// Width of a token, a multiple of the number of heads.
    pub width: usize,
    /// Number of heads of the attention.
    pub heads: usize,
    /// Number of units of the hidden layer after the attention.
    pub hidden: usize,
    /// Number of layers.
    pub layers: usize,
    /// Fraction of numbers that are left out in training.
    pub dropout: f64,
}

impl Default for PatchTst {
    fn default() -> Self {
        Self { patch: 16, stride: 8, width: 64, heads: 4, hidden: 128, layers: 2, dropout: 0.2 }
    }
}

const EPSILON: f32 = 1e-5;

impl PatchTst {
    /// Patches of two hours (a twelfth of a day of `day_steps`), one an hour.
    pub fn daily(day_steps: usize) -> Self {
        let stride = (day_steps / 24).max(1);
        Self { patch: 2 * stride, stride, ..Self::default() }
    }

    fn words(&self, shape: &NetShape) -> usize {
        // One patch more than fits: the paper repeats the last value to fill another stride.
        (shape.lookback - self.patch) / self.stride + 2
    }
}

impl Layers for PatchTst {
    fn check(&self, shape: &NetShape) -> Result<(), (&'static str, String)> {
        within("patch", self.patch, 1, shape.lookback)?;
        within("stride", self.stride, 1, self.patch)?;
        within("heads", self.heads, 1, 64)?;
        within("width", self.width, self.heads, 4096)?;
        within("hidden", self.hidden, 1, 16_384)?;
        within("layers", self.layers, 1, 32)?;
        if !self.width.is_multiple_of(self.heads) {
            return Err(("width", format!("a multiple of the {} heads", self.heads)));
        }
        if (0.0..0.95).contains(&self.dropout) { Ok(()) } else { Err(("dropout", "0 to 0.95".into())) }
    }

    fn parameters(&self, shape: &NetShape) -> Vec<Parameter> {
        let (width, words) = (self.width, self.words(shape));
        let norm = |name: String| {
            [
                Parameter::new(format!("{name}.gain"), 1, width, InitialValues::Constant(1.0)),
                Parameter::new(format!("{name}.bias"), 1, width, InitialValues::Constant(0.0)),
            ]
        };
        let mut list = affine("embedding", self.patch, width).to_vec();
        list.push(Parameter::new("positions", words, width, InitialValues::Uniform(0.02)));
        for layer in 0..self.layers {
            list.extend(norm(format!("layer{layer}.attention.norm")));
            for part in ["query", "key", "value", "out"] {
                list.extend(affine(&format!("layer{layer}.attention.{part}"), width, width));
            }
            list.extend(norm(format!("layer{layer}.hidden.norm")));
            list.extend(affine(&format!("layer{layer}.hidden"), width, self.hidden));
            list.extend(affine(&format!("layer{layer}.out"), self.hidden, width));
        }
        list.extend(norm("norm".into()));
        list.extend(affine("head", words * width, shape.outputs()));
        list
    }

    fn features(&self, shape: &NetShape, window: &[f32]) -> Vec<f32> {
        let last = shape.lookback - 1;
        let starts = (0..self.words(shape)).map(|word| word * self.stride);
        // The last patch may reach beyond the window, where the last value is repeated as in the
        // paper.
        starts.flat_map(|start| (start..start + self.patch).map(|at| window[at.min(last)])).collect()
    }

    fn forward(&self, shape: &NetShape, weights: &mut ParameterReader<'_>, features: &[f32]) -> Vec<f32> {
        let words = self.words(shape);
        let mut x = weights.affine(features);
        add(&mut x, weights.next().data);
        for _ in 0..self.layers {
            let normed = norm_next(&x, weights);
            let (query, key, value) = (weights.affine(&normed), weights.affine(&normed), weights.affine(&normed));
            let mixed = self.attend(words, &query, &key, &value);
            add(&mut x, &weights.affine(&mixed));
            let normed = norm_next(&x, weights);
            let mut hidden = weights.affine(&normed);
            relu(&mut hidden);
            add(&mut x, &weights.affine(&hidden));
        }
        let x = norm_next(&x, weights);
        weights.affine(&x)
    }

    #[cfg(feature = "train")]
    fn graph(&self, shape: &NetShape, graph: &mut super::graph::Graph<'_>) -> burn::tensor::Tensor<2> {
        use burn::tensor::{Tensor, activation};
        let (rows, words, width) = (graph.rows(), self.words(shape), self.width);
        let apart = width / self.heads;
        let heads = |x: Tensor<2>| -> Tensor<4> { x.reshape([rows, words, self.heads, apart]).swap_dims(1, 2) };
        let patches = graph.features.clone().reshape([rows * words, self.patch]);
        let embedded: Tensor<3> = graph.affine(patches).reshape([rows, words, width]);
        let mut x = (embedded + graph.next().reshape([1, words, width])).reshape([rows * words, width]);
        for _ in 0..self.layers {
            let normed = graph.norm(x.clone(), EPSILON);
            let query = heads(graph.affine(normed.clone()).mul_scalar(1.0 / (apart as f64).sqrt()));
            let key = heads(graph.affine(normed.clone()));
            let value = heads(graph.affine(normed));
            let shares = activation::softmax(query.matmul(key.swap_dims(2, 3)), 3);
            let mixed = shares.matmul(value).swap_dims(1, 2).reshape([rows * words, width]);
            let mixed = graph.affine(mixed);
            x = x + graph.drop(mixed, self.dropout);
            let normed = graph.norm(x.clone(), EPSILON);
            let hidden = activation::relu(graph.affine(normed));
            let hidden = graph.drop(hidden, self.dropout);
            x = x + graph.affine(hidden);
        }
        let x = graph.norm(x, EPSILON).reshape([rows, words * width]);
        let x = graph.drop(x, self.dropout);
        graph.affine(x)
    }
}

impl PatchTst {
    /// Attention, head by head: each token's mean of all values, weighed by the match of its query
    /// with their keys.
    fn attend(&self, words: usize, query: &[f32], key: &[f32], value: &[f32]) -> Vec<f32> {
        let (width, apart) = (self.width, self.width / self.heads);
        let mut mixed = vec![0.0; words * width];
        let mut shares = vec![0.0_f32; words];
        for head in 0..self.heads {
            let part = |word: usize| word * width + head * apart..word * width + (head + 1) * apart;
            for word in 0..words {
                let query = &query[part(word)];
                for (other, share) in shares.iter_mut().enumerate() {
                    let key = &key[part(other)];
                    *share = query.iter().zip(key).map(|(q, k)| q * k).sum::<f32>() / (apart as f32).sqrt();
                }
                // The softmax is taken relative to the largest score, so that no exponential
                // overflows.
                let most = shares.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                shares.iter_mut().for_each(|share| *share = (*share - most).exp());
                let sum: f32 = shares.iter().sum();
                for (other, share) in shares.iter().enumerate() {
                    let value = &value[part(other)];
                    for (mixed, value) in mixed[part(word)].iter_mut().zip(value) {
                        *mixed += share / sum * value;
                    }
                }
            }
        }
        mixed
    }
}

fn add(x: &mut [f32], more: &[f32]) {
    x.iter_mut().zip(more).for_each(|(x, more)| *x += more);
}

fn norm_next(x: &[f32], weights: &mut ParameterReader<'_>) -> Vec<f32> {
    let (gain, bias) = (weights.next(), weights.next());
    norm(x, gain, bias)
}

/// Rows with mean 0 and variance 1, times a gain, plus a bias.
fn norm(x: &[f32], gain: Matrix<'_>, bias: Matrix<'_>) -> Vec<f32> {
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks_exact(gain.columns.max(1)) {
        let mean = row.iter().sum::<f32>() / row.len() as f32;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / row.len() as f32;
        let root = (variance + EPSILON).sqrt();
        out.extend(row.iter().zip(gain.data).zip(bias.data).map(|((x, gain), bias)| (x - mean) / root * gain + bias));
    }
    out
}
