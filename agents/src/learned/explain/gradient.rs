//! Gradients of scores with respect to observations, by burn.

use burn::tensor::{Device, Tensor};

use crate::learned::net::{Net, host};
use crate::learned::shard::{Inputs, Shard, Source};
use crate::learned::weights::Weights;

/// Observations at once.
const ROWS: usize = 64;

/// The gradient of the score of `action` with respect to the features of `slot`, `[slot_features]`, its mean over observations `[rows, obs_dim]`
/// in all of which the slot is occupied.
pub(super) fn mean_gradient(weights: &Weights, observations: &[f32], slot: usize, action: usize) -> Vec<f64> {
    let layout = *weights.layout();
    let device = Device::flex().autodiff();
    let net = Net::new(weights, &device);
    let rows = observations.len() / layout.obs_dim().max(1);
    // Every action has a score, allowed or not.
    let masks = vec![0; rows * layout.actions()];
    let source = Source { config: weights.config(), layout, observations, masks: &masks };
    let all: Vec<u32> = (0..rows as u32).collect();
    let mut mean = vec![0.0; layout.slot_features];
    for chunk in all.chunks(ROWS) {
        let mut shard = Shard::gather(&source, chunk, &device);
        // A set encoder reads slots as rows of a matrix, a perceptron one flat row.
        let (tracked, first, stride): (Tensor<2>, usize, usize) = match &mut shard.inputs {
            Inputs::Set(inputs) => {
                inputs.features = inputs.features.clone().require_grad();
                (inputs.features.clone(), slot * layout.slot_features, shard.slots * layout.slot_features)
            }
            Inputs::Flat(flat) => {
                *flat = flat.clone().require_grad();
                (flat.clone(), slot * layout.slot_features, layout.obs_dim())
            }
        };
        let (scores, _) = net.forward(&shard.inputs);
        let local = shard.local_action(&layout, action);
        let gradients = scores.slice([0..chunk.len(), local..local + 1]).sum().backward();
        let Some(gradient) = tracked.grad(&gradients) else { continue };
        for row in host(gradient).chunks_exact(stride) {
            let here = row[first..].iter();
            mean.iter_mut().zip(here).for_each(|(mean, &slope)| *mean += f64::from(slope) / rows as f64);
        }
    }
    mean
}
