//! The net without a tensor framework; see [`crate::nets::fused`].

use super::observation::{GLOBALS, JOB_FEATURES, Observation, PAIR_FEATURES};
use super::weights::{RankingNet, layer};
use crate::nets::fused::attention::{self, attend};
use crate::nets::fused::dense::{Activation, Dense, padded};
use crate::nets::fused::pool;
use crate::nets::weights::Heads;

/// Scores pairs. Buffers grow to the largest round met and stay.
#[derive(Clone, Debug)]
pub struct Scorer {
    layers: Vec<Dense>,
    width: usize,
    heads: Option<Heads>,
    attention: attention::Buffers,
    a: Vec<f32>,
    /// `[jobs, padded width]`: embeddings.
    jobs: Vec<f32>,
    /// `[jobs, padded width]`: what a job and the context give to each of its pairs.
    given: Vec<f32>,
    pooled: Vec<f32>,
    hidden: Vec<f32>,
    context: Vec<f32>,
    /// `[pairs, padded width]`.
    informed: Vec<f32>,
    scores: Vec<f32>,
    residuals: Vec<f32>,
}

impl Scorer {
    /// Packs `net`.
    pub fn new(net: &RankingNet) -> Self {
        let layers = net.layers().iter().enumerate();
        let width = net.config().width.get();
        Self {
            layers: layers.map(|(at, layer)| Dense::new(layer.inputs, layer.outputs, net.layer(at))).collect(),
            width,
            heads: net.config().heads(),
            attention: attention::Buffers::default(),
            a: Vec::new(),
            jobs: Vec::new(),
            given: Vec::new(),
            pooled: vec![0.0; 2 * width + GLOBALS],
            hidden: vec![0.0; padded(2 * width)],
            context: vec![0.0; padded(width)],
            informed: Vec::new(),
            scores: Vec::new(),
            residuals: Vec::new(),
        }
    }

    /// `[pairs]`: what is added to the base scores.
    pub fn residuals(&mut self, observation: &Observation) -> &[f32] {
        let Self {
            layers,
            width,
            heads,
            attention,
            a,
            jobs,
            given,
            pooled,
            hidden,
            context,
            informed,
            scores,
            residuals,
        } = self;
        let (groups, pairs) = (observation.groups(), observation.pairs.len());
        let stride = padded(*width);
        for (buffer, rows) in [(&mut *a, groups), (jobs, groups), (given, groups), (informed, pairs)] {
            buffer.resize(rows * stride, 0.0);
        }
        layers[layer::JOB1].forward(groups, &observation.jobs, JOB_FEATURES, Activation::Relu, a);
        layers[layer::JOB2].forward(groups, a, stride, Activation::Relu, jobs);
        if let Some(heads) = *heads {
            attend(heads, [layer::ATTEND, layer::MERGE].map(|at| &layers[at]), groups, jobs, attention);
        }
        pool(jobs, stride, groups, *width, &observation.globals, pooled);
        layers[layer::POOL1].forward(1, pooled, 0, Activation::Relu, hidden);
        layers[layer::POOL2].forward(1, hidden, 0, Activation::None, context);
        let biases = layers[layer::PROJECT].bias().iter().zip(layers[layer::PAIR].bias());
        for (context, (project, pair)) in context.iter_mut().zip(biases) {
            *context += project + pair;
        }
        layers[layer::PROJECT].forward_from(context, groups, jobs, stride, Activation::None, given);
        for (at, pair) in observation.pairs.iter().enumerate() {
            let given = &given[pair.group as usize * stride..][..stride];
            let (x, y) = (&observation.sizes[at * PAIR_FEATURES..], &mut informed[at * stride..(at + 1) * stride]);
            layers[layer::PAIR].forward_from(given, 1, x, PAIR_FEATURES, Activation::Relu, y);
        }
        let head = &layers[layer::SCORE];
        scores.resize(pairs * head.width(), 0.0);
        head.forward(pairs, informed, stride, Activation::None, scores);
        residuals.clear();
        residuals.extend(scores.chunks_exact(head.width()).map(|row| row[0]));
        residuals
    }
}
