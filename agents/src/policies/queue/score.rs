//! Score of a waiting job.

use crate::nets::fused::{Fused, Scratch};
use crate::nets::weights::Weights;

use super::features::{JOB_FEATURES, layout};

/// Score of a waiting job, the greatest of which comes first.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueScore {
    /// A weighted sum of [`JOB_FEATURES`].
    Linear([f32; JOB_FEATURES.len()]),
    /// A set encoder over the queue.
    Net(Weights),
}

/// Score with the buffers that it needs.
#[derive(Clone, Debug)]
pub(super) enum Scorer {
    Linear([f32; JOB_FEATURES.len()]),
    Net(Box<NetScorer>),
}

/// Set encoder with room for as many jobs as the longest queue so far.
#[derive(Clone, Debug)]
pub(super) struct NetScorer {
    weights: Weights,
    net: Fused,
    scratch: Scratch,
    observation: Vec<f32>,
}

impl NetScorer {
    fn new(weights: &Weights) -> Self {
        let net = Fused::new(weights);
        Self { scratch: net.scratch(), net, weights: weights.clone(), observation: Vec::new() }
    }

    /// Makes room for a longer queue. The weights of a set encoder do not depend on its length.
    fn grow(&mut self, jobs: usize) {
        let wider = layout(jobs.next_power_of_two());
        if let Ok(weights) = Weights::from_data(self.weights.config(), wider, self.weights.data().to_vec()) {
            *self = Self::new(&weights);
        }
    }

    fn scores(&mut self, features: &[f32], jobs: usize) -> &[f32] {
        if jobs > self.weights.layout().slots {
            self.grow(jobs);
        }
        let (queue, globals) = features.split_at(jobs * JOB_FEATURES.len());
        let slots = self.weights.layout().slots;
        self.observation.clear();
        self.observation.extend_from_slice(queue);
        self.observation.resize(slots * JOB_FEATURES.len(), 0.0);
        self.observation.extend_from_slice(globals);
        &self.net.logits(&self.observation, &mut self.scratch)[..jobs]
    }
}

impl Scorer {
    pub fn new(score: &QueueScore) -> Self {
        match score {
            QueueScore::Linear(weights) => Self::Linear(*weights),
            QueueScore::Net(weights) => Self::Net(Box::new(NetScorer::new(weights))),
        }
    }

    /// Scores of `jobs` jobs with these features, which those of the cluster follow.
    pub fn scores(&mut self, features: &[f32], jobs: usize) -> Vec<f32> {
        match self {
            Self::Linear(weights) => {
                let (queue, _) = features[..jobs * JOB_FEATURES.len()].as_chunks::<{ JOB_FEATURES.len() }>();
                let score =
                    |job: &[f32; JOB_FEATURES.len()]| job.iter().zip(&*weights).fold(0.0, |sum, (x, w)| sum + x * w);
                queue.iter().map(score).collect()
            }
            Self::Net(net) => net.scores(features, jobs).to_vec(),
        }
    }
}
