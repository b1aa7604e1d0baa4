//! The net in burn, for gradients.

use burn::tensor::{Device, Gradients, Int, Tensor, TensorData, activation::relu};

use super::observation::{GLOBALS, JOB_FEATURES, Observation, PAIR_FEATURES};
use super::weights::{RankingNet, layer};
use crate::nets::layers::affine::{Affine, host};
use crate::nets::layers::attention::Attention;
use crate::nets::layers::set::encode;
use crate::nets::shard::SetInputs;
use crate::nets::weights::Heads;

/// The net of one gradient.
pub(super) struct Net {
    layers: Vec<Affine>,
    heads: Option<Heads>,
}

/// Some rounds as tensors: jobs padded to those of the round that has most, pairs one after the other.
pub(super) struct Inputs {
    set: SetInputs,
    /// `[pairs, PAIR_FEATURES]`.
    sizes: Tensor<2>,
    /// `[pairs]`: its job among the rows of jobs.
    jobs: Tensor<1, Int>,
}

impl Inputs {
    /// Copies `rounds` to `device`.
    pub fn gather(rounds: &[&Observation], device: &Device) -> Self {
        let (rows, slots) = (rounds.len(), rounds.iter().map(|round| round.groups()).max().unwrap_or(1));
        let two = |values: Vec<f32>, shape: [usize; 2]| Tensor::<2>::from_data(TensorData::new(values, shape), device);
        let (mut features, mut occupied) = (vec![0.0; rows * slots * JOB_FEATURES], vec![0.0; rows * slots]);
        let (mut globals, mut share) = (Vec::with_capacity(rows * GLOBALS), Vec::with_capacity(rows));
        let (mut sizes, mut jobs) = (Vec::new(), Vec::new());
        for (row, round) in rounds.iter().enumerate() {
            features[row * slots * JOB_FEATURES..][..round.jobs.len()].copy_from_slice(&round.jobs);
            occupied[row * slots..][..round.groups()].fill(1.0);
            globals.extend_from_slice(&round.globals);
            share.push(1.0 / round.groups().max(1) as f32);
            sizes.extend_from_slice(&round.sizes);
            jobs.extend(round.pairs.iter().map(|pair| (row * slots) as i32 + pair.group as i32));
        }
        let pairs = jobs.len();
        Self {
            set: SetInputs {
                rows,
                slots,
                features: two(features, [rows * slots, JOB_FEATURES]),
                globals: Some(two(globals, [rows, GLOBALS])),
                occupied: Some(Tensor::from_data(TensorData::new(occupied, [rows, slots, 1]), device)),
                share: two(share, [rows, 1]),
            },
            sizes: two(sizes, [pairs, PAIR_FEATURES]),
            jobs: Tensor::from_data(TensorData::new(jobs, [pairs]), device),
        }
    }
}

impl Net {
    /// The net of `weights`; its parameters are tracked when the device has autodiff.
    pub fn new(weights: &RankingNet, device: &Device) -> Self {
        Self { layers: Affine::all(weights.layers(), weights.data(), device), heads: weights.config().heads() }
    }

    /// `[pairs]`: what is added to the base scores.
    pub fn residuals(&self, inputs: &Inputs) -> Tensor<1> {
        let apply = |index: usize, x: Tensor<2>| self.layers[index].forward(x);
        let SetInputs { rows, slots, .. } = inputs.set;
        let [first, second] = [layer::JOB1, layer::JOB2].map(|index| &self.layers[index]);
        let attention = self.heads.map(|heads| Attention::of(heads, &self.layers[layer::ATTEND..]));
        let (embedded, pooled) = encode(first, second, attention.as_ref(), &inputs.set);
        let width = embedded.dims()[1];
        let context = apply(layer::POOL2, relu(apply(layer::POOL1, pooled)));
        let projected: Tensor<3> = apply(layer::PROJECT, embedded).reshape([rows, slots, width]);
        let given: Tensor<2> = (projected + context.reshape([rows, 1, width])).reshape([rows * slots, width]);
        let of_pairs = given.select(0, inputs.jobs.clone()) + apply(layer::PAIR, inputs.sizes.clone());
        let pairs = inputs.jobs.dims()[0];
        apply(layer::SCORE, relu(of_pairs)).reshape([pairs])
    }

    /// The gradient of every parameter in the order of the flat vector.
    pub fn gradient(&self, gradients: &mut Gradients) -> Vec<f32> {
        Affine::gradient(&self.layers, gradients)
    }
}

/// `[pairs]` residuals of one round, by burn: what [`super::Scorer`] must equal.
pub fn residuals(net: &RankingNet, observation: &Observation) -> Vec<f32> {
    let device = Device::flex();
    host(Net::new(net, &device).residuals(&Inputs::gather(&[observation], &device)))
}
