//! The forward pass of a learned policy in plain Rust.
//!
//! Rollouts, evaluation and the executor use this one. It equals burn's to 1e-5 (a test), links no
//! tensor framework, allocates nothing, skips empty slots and gives the same bits on every x86-64:
//! sums run in a fixed order on one thread, multiplications and additions are not fused, and no
//! function of the system's maths library is called on the way to a greedy action.

pub(crate) mod attention;
pub(crate) mod dense;
mod mlp;
mod set;

use goodput_env::gym::Layout;

use self::dense::{Dense, padded};
use self::mlp::MlpForward;
use self::set::SetForward;
#[cfg(feature = "learn")]
pub(crate) use self::set::pool;
use crate::nets::distribution::{Categorical, argmax};
use crate::nets::weights::{NetConfig, Weights};

/// A net ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Fused {
    layout: Layout,
    net: Forward,
    widest: usize,
}

#[derive(Clone, Debug)]
enum Forward {
    Set(SetForward),
    Mlp(MlpForward),
}

/// Buffers of one forward pass; one per thread that evaluates.
#[derive(Clone, Debug)]
pub struct Scratch {
    occupied: Vec<usize>,
    x: Vec<f32>,
    a: Vec<f32>,
    b: Vec<f32>,
    attention: attention::Buffers,
    pooled: Vec<f32>,
    hidden: Vec<f32>,
    context: Vec<f32>,
    start: Vec<f32>,
    scores: Vec<f32>,
    out: Vec<f32>,
    logits: Vec<f32>,
    distribution: Categorical,
}

/// A sampled action and what the learner must remember of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// Index of the action.
    pub action: usize,
    /// Logarithm of its probability.
    pub log_prob: f32,
    /// Critic at the observation.
    pub value: f32,
}

impl Fused {
    /// Net with the packed layers of `weights`.
    pub fn new(weights: &Weights) -> Self {
        let net = match weights.config() {
            NetConfig::Set(config) => Forward::Set(SetForward::new(weights, config)),
            NetConfig::Mlp(_) => Forward::Mlp(MlpForward::new(weights)),
        };
        let widest = weights.layers().iter().map(|layer| padded(layer.outputs)).max().unwrap_or(0);
        Self { layout: *weights.layout(), net, widest }
    }

    /// Takes newer weights of the same net; allocates nothing.
    ///
    /// # Panics
    /// When the weights are of a net with other shapes.
    pub fn load(&mut self, weights: &Weights) {
        let layers = match &mut self.net {
            Forward::Set(net) => net.layers_mut(),
            Forward::Mlp(net) => net.layers_mut(),
        };
        assert_eq!(layers.len(), weights.layers().len(), "weights of the same net");
        for (index, dense) in layers.iter_mut().enumerate() {
            dense.load(weights.layer(index));
        }
    }

    /// Shapes of observations and actions.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Buffers that fit this net.
    pub fn scratch(&self) -> Scratch {
        let Layout { slots, slot_features, globals, .. } = self.layout;
        let rows = match &self.net {
            Forward::Set(_) => slots,
            Forward::Mlp(_) => 1,
        };
        let room = |length: usize| vec![0.0; length];
        Scratch {
            occupied: Vec::with_capacity(slots),
            x: room(slots * slot_features),
            a: room(rows * self.widest),
            b: room(rows * self.widest),
            attention: match &self.net {
                Forward::Set(net) => net.attention_buffers(slots),
                Forward::Mlp(_) => attention::Buffers::default(),
            },
            pooled: match self.net {
                Forward::Set(ref net) => room(2 * net.width() + globals),
                Forward::Mlp(_) => Vec::new(),
            },
            hidden: room(self.widest),
            context: room(self.context_width()),
            start: room(self.context_width()),
            scores: room(rows * padded(self.layout.verbs)),
            out: room(padded(self.layout.others())),
            logits: room(self.layout.actions()),
            distribution: Categorical::with_capacity(self.layout.actions()),
        }
    }

    fn context_width(&self) -> usize {
        match &self.net {
            Forward::Set(net) => padded(net.width()),
            Forward::Mlp(_) => 0,
        }
    }

    /// Scores `[A]` of all actions and the value of the state. Scores of empty slots are 0 and mean
    /// nothing.
    pub fn forward<'s>(&self, observation: &[f32], scratch: &'s mut Scratch) -> (&'s [f32], f32) {
        let value = match &self.net {
            Forward::Set(net) => {
                net.encode(&self.layout, observation, scratch);
                net.logits(&self.layout, scratch);
                net.value(scratch)
            }
            Forward::Mlp(net) => {
                net.logits(&self.layout, observation, scratch);
                net.value(&self.layout, observation, scratch)
            }
        };
        (&scratch.logits, value)
    }

    /// Scores `[A]` of all actions; a deployed policy needs no critic.
    pub fn logits<'s>(&self, observation: &[f32], scratch: &'s mut Scratch) -> &'s [f32] {
        match &self.net {
            Forward::Set(net) => {
                net.encode(&self.layout, observation, scratch);
                net.logits(&self.layout, scratch);
            }
            Forward::Mlp(net) => net.logits(&self.layout, observation, scratch),
        }
        &scratch.logits
    }

    /// Value of the state.
    pub fn value(&self, observation: &[f32], scratch: &mut Scratch) -> f32 {
        match &self.net {
            Forward::Set(net) => {
                net.encode(&self.layout, observation, scratch);
                net.value(scratch)
            }
            Forward::Mlp(net) => net.value(&self.layout, observation, scratch),
        }
    }

    /// The allowed action of the greatest score, the first of equals.
    pub fn greedy(&self, observation: &[f32], mask: &[u8], scratch: &mut Scratch) -> usize {
        argmax(self.logits(observation, scratch), mask)
    }

    /// The last action, which ends a round, with its probability, and otherwise another one drawn
    /// from the probabilities to the power of `1 / temperature`; at 0 the most probable of the
    /// others.
    pub fn draw(
        &self,
        observation: &[f32],
        mask: &[u8],
        temperature: f32,
        uniform: f32,
        scratch: &mut Scratch,
    ) -> usize {
        self.logits(observation, scratch);
        let Scratch { logits, distribution, .. } = scratch;
        distribution.set(logits, mask);
        let (last, others) = (mask.len() - 1, &mask[..mask.len() - 1]);
        let end = distribution.probability(last);
        if uniform < end || others.iter().all(|&allowed| allowed == 0) {
            return last;
        }
        let changes = &mut logits[..last];
        // So cold that scores divided by it would overflow.
        if temperature < 1e-3 {
            return argmax(changes, others);
        }
        changes.iter_mut().for_each(|logit| *logit /= temperature);
        distribution.set(changes, others);
        // What is left of the number is uniform again, so one draw serves both choices.
        distribution.sample((uniform - end) / (1.0 - end))
    }

    /// An action drawn by inverting the cumulative distribution at `uniform` in [0, 1).
    pub fn sample(&self, observation: &[f32], mask: &[u8], uniform: f32, scratch: &mut Scratch) -> Sampled {
        let (_, value) = self.forward(observation, scratch);
        let Scratch { logits, distribution, .. } = scratch;
        distribution.set(logits, mask);
        let action = distribution.sample(uniform);
        Sampled { action, log_prob: distribution.log_probability(logits[action]), value }
    }

    /// Probabilities `[A]` of all actions, exactly 0 where not allowed.
    pub fn probabilities(&self, observation: &[f32], mask: &[u8], scratch: &mut Scratch, out: &mut [f32]) {
        self.logits(observation, scratch);
        let Scratch { logits, distribution, .. } = scratch;
        distribution.set(logits, mask);
        out.iter_mut().enumerate().for_each(|(action, p)| *p = distribution.probability(action));
    }
}

/// All layers of a net in storage order.
fn dense_layers(weights: &Weights) -> Vec<Dense> {
    weights
        .layers()
        .iter()
        .enumerate()
        .map(|(i, layer)| Dense::new(layer.inputs, layer.outputs, weights.layer(i)))
        .collect()
}
