//! Gradients of scores with respect to observations, by burn.

use burn::tensor::Device;

use crate::nets::layers::Net;
use crate::nets::layers::affine::host;
use crate::nets::shard::{Inputs, Shard, Source};
use crate::nets::weights::Weights;

/// Observations at once.
const ROWS: usize = 64;

/// The gradient of the score of `action` with respect to the features of `slot`, `[slot_features]`,
/// its mean over observations `[rows, obs_dim]` in all of which the slot is occupied.
pub(super) fn mean_gradient(weights: &Weights, observations: &[f32], slot: usize, action: usize) -> Vec<f64> {
    let layout = *weights.layout();
    let device = Device::flex().autodiff();
    let net = Net::new(weights, &device);
    let rows = observations.len() / layout.obs_dim().max(1);
    // Every action has a score, allowed or not.
    let masks = vec![0; rows * layout.actions()];
    let source = Source::new(layout, observations, &masks);
    let all: Vec<u32> = (0..rows as u32).collect();
    let mut mean = vec![0.0; layout.slot_features];
    for chunk in all.chunks(ROWS) {
        let shard = Shard::gather(&source, chunk, layout.slots);
        let mut inputs = shard.inputs(weights.config(), &device);
        // A set encoder reads slots as rows of a matrix, a perceptron side by side: the same
        // numbers in the same order.
        let features = match &mut inputs {
            Inputs::Set(inputs) => &mut inputs.features,
            Inputs::Flat(inputs) => &mut inputs.features,
        };
        *features = features.clone().require_grad();
        let tracked = features.clone();
        let (scores, _) = net.forward(&inputs);
        let local = shard.local_action(&layout, action);
        // Rows do not depend on one another, so the gradient of the sum is that of each row.
        let gradients = scores.slice([0..chunk.len(), local..local + 1]).sum().backward();
        let Some(gradient) = tracked.grad(&gradients) else { continue };
        for row in host(gradient).chunks_exact(shard.slots * layout.slot_features) {
            let here = row[slot * layout.slot_features..].iter();
            mean.iter_mut().zip(here).for_each(|(mean, &slope)| *mean += f64::from(slope) / rows as f64);
        }
    }
    mean
}
