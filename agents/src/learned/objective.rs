//! The gradient of a loss over a minibatch, computed shard by shard.
//!
//! Shards have a fixed size and their gradients are added in order, so the sum does not depend on how many threads computed
//! them. Small shards also stay in cache and waste less on empty slots.

use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};

use super::net::{Net, host};
use super::shard::{Shard, Source};
use super::weights::{NetConfig, Weights};

/// Rows of a shard of a set encoder.
const SET_ROWS: usize = 64;
/// Rows of a shard of a perceptron, whose first matrix is copied for each: fewer save less than they cost.
const MLP_ROWS: usize = 512;

/// What a net said about the rows of a shard.
pub(super) struct Outputs<'a> {
    /// Which rows of the batch.
    pub rows: &'a [u32],
    pub shard: &'a Shard,
    /// `[rows, actions kept]`, about -1e9 where not allowed.
    pub scores: Tensor<2>,
    /// `[rows, actions kept]`, about -1e9 where not allowed.
    pub log_probs: Tensor<2>,
    /// `[rows]`.
    pub values: Tensor<1>,
    pub device: &'a Device,
}

impl Outputs<'_> {
    /// A constant `[rows]` tensor from one number per row.
    pub fn column(&self, of: impl Fn(u32) -> f32) -> Tensor<1> {
        let values: Vec<f32> = self.rows.iter().map(|&row| of(row)).collect();
        Tensor::from_data(TensorData::new(values, [self.rows.len()]), self.device)
    }

    /// `[rows]` log-probabilities of one action per row.
    pub fn log_prob(&self, source: &Source<'_>, actions: &[u32]) -> Tensor<1> {
        self.pick(&self.log_probs, source, actions)
    }

    /// `[rows]` scores of one action per row.
    pub fn score(&self, source: &Source<'_>, actions: &[u32]) -> Tensor<1> {
        self.pick(&self.scores, source, actions)
    }

    /// The one number of a tensor.
    pub fn number(&self, tensor: &Tensor<1>) -> f64 {
        host(tensor.clone()).first().copied().map_or(f64::NAN, f64::from)
    }

    fn pick(&self, from: &Tensor<2>, source: &Source<'_>, actions: &[u32]) -> Tensor<1> {
        let local = |&row: &u32| self.shard.local_action(&source.layout, actions[row as usize] as usize) as i32;
        let indices: Vec<i32> = self.rows.iter().map(local).collect();
        let indices = Tensor::<2, Int>::from_data(TensorData::new(indices, [self.rows.len(), 1]), self.device);
        from.clone().gather(1, indices).reshape([self.rows.len()])
    }

    /// `[rows]` entropies, each divided by the logarithm of the number of allowed actions; 0 where only one is allowed.
    pub fn entropy(&self) -> Tensor<1> {
        let scale: Vec<f32> =
            self.shard.allowed.iter().map(|&n| if n > 1 { -1.0 / (n as f32).ln() } else { 0.0 }).collect();
        let scale = Tensor::<1>::from_data(TensorData::new(scale, [self.rows.len()]), self.device);
        let mean = self.log_probs.clone().exp() * self.log_probs.clone();
        mean.sum_dim(1).reshape([self.rows.len()]) * scale
    }
}

/// A loss that is a sum over rows.
pub(super) trait Objective: Sync {
    /// What is measured on the way.
    type Report: Send;

    /// The part of the loss that the rows of one shard make up.
    fn loss(&self, outputs: &Outputs<'_>) -> (Tensor<1>, Self::Report);
}

/// The gradient of `objective` over `rows`, in the order of the flat vector, and the shards' reports.
pub(super) fn gradient<O: Objective>(
    weights: &Weights,
    source: &Source<'_>,
    rows: &[u32],
    device: &Device,
    threads: usize,
    objective: &O,
) -> (Vec<f32>, Vec<O::Report>) {
    let mut sorted: Vec<(usize, u32)> = rows.iter().map(|&row| (source.extent(row), row)).collect();
    sorted.sort_unstable();
    let sorted: Vec<u32> = sorted.into_iter().map(|(_, row)| row).collect();
    let size = match weights.config() {
        NetConfig::Set(_) => SET_ROWS,
        NetConfig::Mlp(_) => MLP_ROWS,
    };
    let shards: Vec<&[u32]> = sorted.chunks(size).collect();
    let one = |rows: &[u32]| {
        let shard = Shard::gather(source, rows, device);
        let net = Net::new(weights, device);
        let (logits, values) = net.forward(&shard.inputs);
        let scores = logits + shard.penalty.clone();
        let log_probs = log_softmax(scores.clone(), 1);
        let (loss, report) = objective.loss(&Outputs { rows, shard: &shard, scores, log_probs, values, device });
        (net.gradient(&mut loss.backward()), report)
    };

    total(weights.data().len(), deal(&shards, threads, |rows| one(rows)))
}

/// The sum of gradients in order, and what was reported with them.
pub(super) fn total<R>(parameters: usize, of_shards: Vec<(Vec<f32>, R)>) -> (Vec<f32>, Vec<R>) {
    let mut total = vec![0.0; parameters];
    let mut reports = Vec::with_capacity(of_shards.len());
    for (gradient, report) in of_shards {
        total.iter_mut().zip(&gradient).for_each(|(sum, part)| *sum += part);
        reports.push(report);
    }
    (total, reports)
}

/// The result of each shard, in order, computed by so many threads. The neediest shards come last: dealing from the end gives every thread its
/// share of them.
pub(super) fn deal<T: Sync, R: Send>(shards: &[T], threads: usize, one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads.clamp(1, shards.len().max(1));
    if threads == 1 {
        return shards.iter().map(one).collect();
    }
    let mut results: Vec<Option<R>> = shards.iter().map(|_| None).collect();
    let mut hands: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
    for (i, task) in results.iter_mut().zip(shards).rev().enumerate() {
        hands[i % threads].push(task);
    }
    let one = &one;
    std::thread::scope(|scope| {
        for hand in hands {
            scope.spawn(move || hand.into_iter().for_each(|(result, shard)| *result = Some(one(shard))));
        }
    });
    results.into_iter().flatten().collect()
}
