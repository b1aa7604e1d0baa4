//! Gradients of the nets without a tensor framework: plain matrix products of ndarray, and nothing
//! kept of slots that are empty.
//!
//! Of a minibatch's time a framework spent most beside the products: copies, masks, one pass over
//! memory for each elementary operation. Here a forward pass keeps what its way back needs. Equal
//! to burn's gradients for any shape (a test) and to PyTorch's on a saved batch; nets with
//! attention still go back through burn.

mod mlp;
mod part;
mod set;

use burn::tensor::{Device, Tensor, TensorData};

use self::mlp::MlpPass;
use self::set::SetPass;
use crate::nets::layers::Net;
use crate::nets::layers::affine::host;
use crate::nets::shard::Shard;
use crate::nets::simd::widest;
use crate::nets::weights::{NetConfig, Weights};

/// Outputs of a net for the rows of a shard.
pub(crate) struct NetOutput {
    /// `[rows, actions kept]`, whether allowed or not; those of empty slots mean nothing.
    pub scores: Vec<f32>,
    /// Values of shape `[rows]`.
    pub values: Vec<f32>,
}

/// A net that was evaluated on a shard and knows the way back.
pub(crate) trait Pass {
    /// Adds the gradient of every parameter to `gradient`, in the order of the flat vector, from those of scores and
    /// values.
    fn backward(self: Box<Self>, slopes: &NetOutput, gradient: &mut [f32]);
}

/// Evaluates a net.
pub(crate) fn forward<'a>(weights: &'a Weights, shard: &'a Shard, device: &Device) -> (NetOutput, Box<dyn Pass + 'a>) {
    match weights.config() {
        NetConfig::Mlp(_) => MlpPass::forward(weights, shard),
        NetConfig::Set(config) if config.heads == 0 => SetPass::forward(weights, shard),
        NetConfig::Set(_) => BurnPass::forward(weights, shard, device),
    }
}

/// Adds `part` to `sum`.
pub(crate) fn add(sum: &mut [f32], part: &[f32]) {
    widest(|| sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
}

/// A net in burn.
struct BurnPass {
    net: Net,
    scores: Tensor<2>,
    values: Tensor<1>,
}

impl BurnPass {
    fn forward<'a>(weights: &Weights, shard: &Shard, device: &Device) -> (NetOutput, Box<dyn Pass + 'a>) {
        let net = Net::new(weights, device);
        let (scores, values) = net.forward(&shard.inputs(weights.config(), device));
        let output = NetOutput { scores: host(scores.clone()), values: host(values.clone()) };
        (output, Box::new(Self { net, scores, values }))
    }
}

impl Pass for BurnPass {
    fn backward(self: Box<Self>, slopes: &NetOutput, gradient: &mut [f32]) {
        let device = self.scores.device();
        let of_scores = Tensor::<2>::from_data(TensorData::new(slopes.scores.clone(), self.scores.dims()), &device);
        let of_values = Tensor::<1>::from_data(TensorData::new(slopes.values.clone(), self.values.dims()), &device);
        let along = (self.scores * of_scores).sum() + (self.values * of_values).sum();
        add(gradient, &self.net.gradient(&mut along.backward()));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use goodput_env::gym::Layout;
    use proptest::prelude::*;

    use super::*;
    use crate::nets::shard::Source;
    use crate::nets::weights::{MlpConfig, SetConfig};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn gradients_equal_burns_for_any_shape(
            slots in 1usize..9, slot_features in 1usize..7, globals in 0usize..4, verbs in 1usize..4, width in 1usize..12,
            depth in 0usize..3, flat in any::<bool>(), rows in 1usize..7, seed in any::<u64>()
        ) {
            let mut state = seed | 1;
            let mut noise = move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
            };
            let layout = Layout { slots, slot_features, globals, verbs, services: 0, pools: false, types: 0 };
            let width = NonZeroUsize::new(width).unwrap();
            let config = match flat {
                true => NetConfig::Mlp(MlpConfig { hidden: vec![width; depth] }),
                false => NetConfig::Set(SetConfig::new(width)),
            };
            let mut weights = Weights::new(&config, layout, seed);
            weights.data_mut().iter_mut().for_each(|w| *w += 0.3 * noise());
            let mut observations: Vec<f32> = (0..rows * layout.obs_dim()).map(|_| noise()).collect();
            let mut masks = vec![1; rows * layout.actions()];
            for row in 0..rows {
                for slot in 0..slots {
                    let features = &mut observations[row * layout.obs_dim() + slot * slot_features..][..slot_features];
                    if noise() < 0.0 {
                        features.fill(0.0);
                        masks[row * layout.actions() + slot * verbs..][..verbs].fill(0);
                    } else {
                        features[0] = 1.0;
                    }
                }
            }
            let source = Source::new(layout, &observations, &masks);
            let all: Vec<u32> = (0..rows as u32).collect();
            let kept = all.iter().map(|&row| source.extent(row)).max().unwrap_or(1);
            // Slots at the end that no row uses are left out by hand; burn has all of them.
            let (cut, whole) = (Shard::gather(&source, &all, kept), Shard::gather(&source, &all, slots));
            let device = Device::flex().autodiff();
            let (output, pass) = forward(&weights, &cut, &device);
            let (want, by_burn) = BurnPass::forward(&weights, &whole, &device);
            let values: Vec<f32> = (0..rows).map(|_| noise()).collect();
            let room = |shard: &Shard| NetOutput { scores: vec![0.0; shard.penalty.len()], values: values.clone() };
            let (mut of_cut, mut of_whole) = (room(&cut), room(&whole));
            let close = |one: f32, other: f32| (one - other).abs() <= 2e-5 * other.abs().max(1.0);
            for (row, action) in (0..rows).flat_map(|row| (0..layout.actions()).map(move |action| (row, action))) {
                let here = row * cut.actions() + cut.local_action(&layout, action);
                let there = row * layout.actions() + action;
                if masks[there] == 1 {
                    prop_assert!(close(output.scores[here], want.scores[there]), "score of {action} in row {row}");
                    let slope = noise();
                    (of_cut.scores[here], of_whole.scores[there]) = (slope, slope);
                }
            }
            prop_assert!(output.values.iter().zip(&want.values).all(|(one, other)| close(*one, *other)));
            let mut both = [vec![0.0; weights.data().len()], vec![0.0; weights.data().len()]];
            pass.backward(&of_cut, &mut both[0]);
            by_burn.backward(&of_whole, &mut both[1]);
            for (at, (&one, &other)) in both[0].iter().zip(&both[1]).enumerate() {
                prop_assert!(close(one, other), "parameter {at}: {one} {other}");
            }
        }
    }
}
