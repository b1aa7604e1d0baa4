//! Nets and linear policies ready to score what they see, with all buffers they need.

use crate::nets::distribution::argmax;
use crate::nets::fused::{Fused, Scratch};
use crate::nets::normaliser::Normaliser;
use crate::nets::onnx::{OnnxNet, OnnxScorer};
use crate::nets::weights::Weights;
use crate::policies::linear::Linear;

/// A policy and its buffers; deciding allocates nothing, but for an ONNX graph.
#[derive(Clone, Debug)]
pub struct Deployed {
    decider: Decider,
    normaliser: Option<Normaliser>,
    observation: Vec<f32>,
}

#[derive(Clone, Debug)]
enum Decider {
    Net(Box<(Fused, Scratch)>),
    Onnx(Box<OnnxScorer>),
    Linear(Linear, Vec<f32>),
    Waits,
}

impl Deployed {
    /// A net, which sees what `normaliser` makes of an observation.
    pub fn net(weights: &Weights, normaliser: Option<Normaliser>) -> Self {
        let net = Fused::new(weights);
        let scratch = net.scratch();
        let observation = Vec::with_capacity(weights.layout().obs_dim());
        Self { decider: Decider::Net(Box::new((net, scratch))), normaliser, observation }
    }

    /// An ONNX graph, likewise.
    pub fn onnx(net: &OnnxNet, normaliser: Option<Normaliser>) -> Self {
        let observation = Vec::with_capacity(net.layout().obs_dim());
        Self { decider: Decider::Onnx(Box::new(net.at_work())), normaliser, observation }
    }

    /// A linear policy, likewise.
    pub fn linear(linear: Linear, normaliser: Option<Normaliser>) -> Self {
        let (logits, observation) =
            (vec![0.0; linear.layout().actions()], Vec::with_capacity(linear.layout().obs_dim()));
        Self { decider: Decider::Linear(linear, logits), normaliser, observation }
    }

    /// Policy that always waits.
    pub const fn waits() -> Self {
        Self { decider: Decider::Waits, normaliser: None, observation: Vec::new() }
    }

    /// The allowed action of the greatest score for one flat observation `[obs_dim]` and its mask
    /// `[actions]`. An ONNX graph that fails takes the last action, which ends the round.
    pub fn decide(&mut self, observation: &[f32], mask: &[u8]) -> usize {
        let Self { decider, normaliser, observation: buffer } = self;
        let observation = normalised(normaliser.as_ref(), observation, buffer);
        match decider {
            Decider::Net(net) => net.0.greedy(observation, mask, &mut net.1),
            Decider::Onnx(net) => match net.logits(observation) {
                Ok(logits) => argmax(logits, mask),
                Err(_) => mask.len().saturating_sub(1),
            },
            Decider::Linear(linear, logits) => linear.greedy(observation, mask, logits),
            Decider::Waits => mask.len().saturating_sub(1),
        }
    }

    /// An allowed action of a net drawn at `uniform` in [0, 1), as [`Fused::draw`] does; of what is
    /// no net what [`Self::decide`] says.
    pub fn draw(&mut self, observation: &[f32], mask: &[u8], temperature: f32, uniform: f32) -> usize {
        let Decider::Net(net) = &mut self.decider else { return self.decide(observation, mask) };
        let observation = normalised(self.normaliser.as_ref(), observation, &mut self.observation);
        net.0.draw(observation, mask, temperature, uniform, &mut net.1)
    }

    /// The scores of all actions for one flat observation `[obs_dim]`, allowed or not; none from a
    /// utility, which scores sizes of jobs instead. They are no numbers where an ONNX graph fails.
    pub fn scores(&mut self, observation: &[f32]) -> &[f32] {
        let Self { decider, normaliser, observation: buffer } = self;
        let observation = normalised(normaliser.as_ref(), observation, buffer);
        match decider {
            Decider::Net(net) => net.0.logits(observation, &mut net.1),
            Decider::Onnx(net) => net.scores(observation),
            Decider::Linear(linear, logits) => {
                linear.logits(observation, logits);
                logits
            }
            Decider::Waits => &[],
        }
    }
}

fn normalised<'a>(normaliser: Option<&Normaliser>, observation: &'a [f32], buffer: &'a mut Vec<f32>) -> &'a [f32] {
    let Some(normaliser) = normaliser else { return observation };
    buffer.clear();
    buffer.extend_from_slice(observation);
    normaliser.apply(buffer);
    buffer
}
