//! Attention over jobs without a tensor framework; quadratic in the occupied slots.

use super::dense::{Activation, Dense, padded};
use crate::nets::distribution::exp;
use crate::nets::weights::Heads;

/// Buffers of one pass. They grow to the most rows met and stay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    /// `[rows, padded 3 * heads * depth]`: queries, keys and values.
    parts: Vec<f32>,
    /// `[depth, rows]`: the keys of one head, so that scores of one query vectorise.
    keys: Vec<f32>,
    /// `[rows]`: weights of one query.
    weights: Vec<f32>,
    /// Values of shape `[rows, heads * depth]`.
    mixed: Vec<f32>,
    /// Values of shape `[rows, padded width]`.
    merged: Vec<f32>,
}

impl Buffers {
    /// Room for this many rows, so that a pass allocates nothing.
    pub fn new(heads: Heads, width: usize, rows: usize) -> Self {
        let mut buffers = Self::default();
        buffers.fit(heads, padded(width), rows);
        buffers
    }

    fn fit(&mut self, heads: Heads, stride: usize, rows: usize) {
        let Heads { count, depth } = heads;
        self.parts.resize(rows * padded(3 * count * depth), 0.0);
        self.keys.resize(depth * rows, 0.0);
        self.weights.resize(rows, 0.0);
        self.mixed.resize(rows * count * depth, 0.0);
        self.merged.resize(rows * stride, 0.0);
    }
}

/// `x = relu(x + merge(heads of x))` in place, for `rows` embeddings as the layers leave them.
pub(crate) fn attend(heads: Heads, [attend, merge]: [&Dense; 2], rows: usize, x: &mut [f32], buffers: &mut Buffers) {
    let Heads { count, depth } = heads;
    let (stride, inner) = (merge.width(), count * depth);
    buffers.fit(heads, stride, rows);
    let Buffers { parts, keys, weights, mixed, merged } = buffers;
    attend.forward(rows, x, stride, Activation::None, parts);
    let (of, scale) = (attend.width(), heads.scale());
    mixed.fill(0.0);
    for head in (0..count).map(|head| head * depth) {
        for (row, part) in parts.chunks_exact(of).take(rows).enumerate() {
            for (d, &key) in part[inner + head..][..depth].iter().enumerate() {
                keys[d * rows + row] = key * scale;
            }
        }
        for query in 0..rows {
            weights.fill(0.0);
            for (keys, &q) in keys.chunks_exact(rows).zip(&parts[query * of + head..][..depth]) {
                weights.iter_mut().zip(keys).for_each(|(score, &key)| *score += q * key);
            }
            let peak = weights.iter().fold(f32::NEG_INFINITY, |peak, &score| peak.max(score));
            weights.iter_mut().for_each(|weight| *weight = exp(*weight - peak));
            let total: f32 = weights.iter().sum();
            let mixed = &mut mixed[query * inner + head..][..depth];
            for (part, &weight) in parts.chunks_exact(of).zip(weights.iter()) {
                let (share, values) = (weight / total, &part[2 * inner + head..][..depth]);
                mixed.iter_mut().zip(values).for_each(|(mixed, &value)| *mixed += share * value);
            }
        }
    }
    merge.forward(rows, mixed, inner, Activation::None, merged);
    for (x, &merged) in x[..rows * stride].iter_mut().zip(merged.iter()) {
        *x = if *x + merged > 0.0 { *x + merged } else { 0.0 };
    }
}
