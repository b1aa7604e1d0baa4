//! The nets in burn: built from [`Weights`] for one gradient, then dropped. Those without attention
//! have a faster gradient in [`crate::nets::backward`], which is tested against these; `explain`
//! differentiates all of them along what they read.
//!
//! Plain structs of tensors rather than `Module`s: the host owns the parameters, so ids, records
//! and visitors would have nothing to do.

pub(crate) mod affine;
mod attention;
mod mlp;
mod set;

use burn::tensor::{Device, Gradients, Tensor};

use crate::nets::layers::affine::{Affine, host};
use crate::nets::layers::mlp::MlpNet;
use crate::nets::layers::set::SetNet;
use crate::nets::shard::{Inputs, Shard, Source};
use crate::nets::weights::{NetConfig, Weights};

/// A net of either kind.
pub(crate) enum Net {
    Set(SetNet),
    Mlp(MlpNet),
}

impl Net {
    /// The net of `weights`; its parameters are tracked when the device has autodiff.
    pub fn new(weights: &Weights, device: &Device) -> Self {
        let layers = Affine::all(weights.layers(), weights.data(), device);
        match weights.config() {
            NetConfig::Set(config) => Self::Set(SetNet { layers, heads: config.heads() }),
            NetConfig::Mlp(_) => Self::Mlp(MlpNet { layers }),
        }
    }

    /// Scores `[rows, actions]` and values `[rows]`.
    pub fn forward(&self, inputs: &Inputs) -> (Tensor<2>, Tensor<1>) {
        match (self, inputs) {
            (Self::Set(net), Inputs::Set(inputs)) => net.forward(inputs),
            (Self::Mlp(net), Inputs::Flat(inputs)) => net.forward(inputs),
            _ => unreachable!("inputs are gathered for the net's own kind"),
        }
    }

    /// The gradient of every parameter in the order of the flat vector; 0 where the loss does not
    /// reach.
    pub fn gradient(&self, gradients: &mut Gradients) -> Vec<f32> {
        let layers = match self {
            Self::Set(net) => &net.layers,
            Self::Mlp(net) => &net.layers,
        };
        Affine::gradient(layers, gradients)
    }
}

/// Scores `[rows, actions]` (0 where not allowed) and values `[rows]` of flat observations, by
/// burn: what [`crate::nets::fused::Fused`] must equal.
pub fn forward(weights: &Weights, observations: &[f32], masks: &[u8]) -> (Vec<f32>, Vec<f32>) {
    let layout = *weights.layout();
    let device = Device::flex();
    let source = Source::new(layout, observations, masks);
    let net = Net::new(weights, &device);
    let (mut logits, mut values) = (Vec::new(), Vec::new());
    for row in 0..observations.len() / layout.obs_dim() {
        let shard = Shard::gather(&source, &[row as u32], layout.slots);
        let (scores, value) = net.forward(&shard.inputs(weights.config(), &device));
        let scores = host(scores);
        let mask = &masks[row * layout.actions()..(row + 1) * layout.actions()];
        for (action, &allowed) in mask.iter().enumerate() {
            logits.push(if allowed == 0 { 0.0 } else { scores[shard.local_action(&layout, action)] });
        }
        values.extend(host(value));
    }
    (logits, values)
}
