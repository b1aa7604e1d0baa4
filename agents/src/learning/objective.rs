//! The gradient of a loss over a minibatch, computed shard by shard.
//!
//! Shards have a fixed size and their gradients are added in order, so the sum does not depend on
//! how many threads computed them. Small shards also stay in cache and waste less on empty slots.
//! burn differentiates the loss along five numbers a row; the nets themselves go back by hand
//! ([`crate::nets::backward`]).

use burn::tensor::{Device, Tensor, TensorData};

use crate::nets::backward::{NetOutput, add, forward};
use crate::nets::fused::Fused;
use crate::nets::layers::affine::host;
use crate::nets::shard::{Shard, Source};
use crate::nets::softmax::{Columns, Softmax};
use crate::nets::weights::{NetConfig, Weights};

/// Rows of a shard of a set encoder.
const SET_ROWS: usize = 64;
/// Rows of a shard of a perceptron: the gradient of its first matrix is written once for each.
const MLP_ROWS: usize = 128;

/// Outputs of a net for the rows of a shard. Tensors are `[rows]`, and the loss is differentiated
/// along them.
pub(super) struct Outputs<'a> {
    /// Indices of the rows in the batch.
    pub rows: &'a [u32],
    /// Values by the critic.
    pub values: Tensor<1>,
    /// Score of the action that was taken.
    pub score: Tensor<1>,
    /// Logarithm of its probability.
    pub log_prob: Tensor<1>,
    /// Entropy over the logarithm of the number of allowed actions; 0 where only one is allowed.
    pub entropy: Tensor<1>,
    /// `KL(reference || policy)`; 0 without a reference.
    pub divergence: Tensor<1>,
    /// Whether the action that was taken is the most probable.
    pub most_probable: Vec<bool>,
    device: &'a Device,
}

impl Outputs<'_> {
    /// A constant `[rows]` tensor from one number per row.
    pub fn column(&self, of: impl Fn(u32) -> f32) -> Tensor<1> {
        let values: Vec<f32> = self.rows.iter().map(|&row| of(row)).collect();
        Tensor::from_data(TensorData::new(values, [self.rows.len()]), self.device)
    }

    /// The one number of a tensor.
    pub fn number(&self, tensor: &Tensor<1>) -> f64 {
        host(tensor.clone()).first().copied().map_or(f64::NAN, f64::from)
    }
}

/// A loss that is a sum over rows.
pub(super) trait Objective: Sync {
    /// Figures that are measured with the loss.
    type Report: Send;

    /// Actions taken, by row of the batch.
    fn actions(&self) -> &[u32];

    /// A policy to stay close to.
    fn reference(&self) -> Option<&Fused> {
        None
    }

    /// The part of the loss that the rows of one shard make up.
    fn loss(&self, outputs: &Outputs<'_>) -> (Tensor<1>, Self::Report);
}

/// The gradient of `objective` over `rows`, in the order of the flat vector, and the shards'
/// reports.
pub(super) fn gradient<O: Objective>(
    weights: &Weights,
    source: &Source<'_>,
    rows: &[u32],
    device: &Device,
    threads: usize,
    objective: &O,
) -> (Vec<f32>, Vec<O::Report>) {
    let mut sorted: Vec<(usize, u32)> = rows.iter().map(|&row| (source.extent(row), row)).collect();
    // Equal extents are ordered by row, so the bits of the sum do not depend on how the rows were
    // shuffled.
    sorted.sort_unstable();
    let extents: Vec<usize> = sorted.iter().map(|(extent, _)| *extent).collect();
    let sorted: Vec<u32> = sorted.into_iter().map(|(_, row)| row).collect();
    let size = match weights.config() {
        NetConfig::Set(_) => SET_ROWS,
        NetConfig::Mlp(_) => MLP_ROWS,
    };
    let shards: Vec<(&[u32], &[usize])> = sorted.chunks(size).zip(extents.chunks(size)).collect();
    let one = |rows: &[u32], extents: &[usize], total: &mut [f32]| {
        // Rows are sorted, so the last one of a shard needs the most slots.
        let shard = Shard::gather(source, rows, extents.last().copied().unwrap_or(1));
        let (output, pass) = forward(weights, &shard, device);
        let action = |&row: &u32| shard.local_action(&source.layout, objective.actions()[row as usize] as usize);
        let reference = objective.reference().map(|net| shard.probabilities(source, rows, net));
        let (softmax, columns) = Softmax::new(output.scores, &shard, rows.iter().map(action).collect(), reference);

        let tracked =
            |column: Vec<f32>| Tensor::<1>::from_data(TensorData::new(column, [rows.len()]), device).require_grad();
        let outputs = Outputs {
            rows,
            values: tracked(output.values),
            score: tracked(columns.score),
            log_prob: tracked(columns.log_prob),
            entropy: tracked(columns.entropy),
            divergence: tracked(columns.divergence),
            most_probable: softmax.most_probable(),
            device,
        };
        let (loss, report) = objective.loss(&outputs);
        let mut gradients = loss.backward();
        // None where the loss does not depend on it.
        let mut slopes = |of: &Tensor<1>| of.grad_remove(&mut gradients).map_or_else(|| vec![0.0; rows.len()], host);
        let values = slopes(&outputs.values);
        let columns = Columns {
            score: slopes(&outputs.score),
            log_prob: slopes(&outputs.log_prob),
            entropy: slopes(&outputs.entropy),
            divergence: slopes(&outputs.divergence),
        };
        pass.backward(&NetOutput { scores: softmax.slopes(&columns), values }, total);
        report
    };

    let parameters = weights.data().len();
    let mut total = vec![0.0; parameters];
    if threads.min(shards.len()) <= 1 {
        let reports = shards.iter().map(|(rows, extents)| one(rows, extents, &mut total)).collect();
        return (total, reports);
    }
    // Each shard is added in turn to a sum that begins with 0, so that the bits are those of one thread.
    let of_shards = in_parallel(&shards, threads, |(rows, extents)| {
        let mut own = vec![0.0; parameters];
        let report = one(rows, extents, &mut own);
        (own, report)
    });
    let mut reports = Vec::with_capacity(of_shards.len());
    for (own, report) in of_shards {
        add(&mut total, &own);
        reports.push(report);
    }
    (total, reports)
}

/// Result of each shard, in order, computed by so many threads. The most expensive shards come last, so
/// shards are assigned in turn from the end: every thread gets its share of them.
fn in_parallel<T: Sync, R: Send>(shards: &[T], threads: usize, one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads.min(shards.len());
    let mut results: Vec<Option<R>> = shards.iter().map(|_| None).collect();
    let mut assigned: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
    for (i, task) in results.iter_mut().zip(shards).rev().enumerate() {
        assigned[i % threads].push(task);
    }
    let one = &one;
    std::thread::scope(|scope| {
        for tasks in assigned {
            scope.spawn(move || tasks.into_iter().for_each(|(result, shard)| *result = Some(one(shard))));
        }
    });
    results.into_iter().flatten().collect()
}
