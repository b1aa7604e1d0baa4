//! Score of a waiting job.

use crate::nets::slots::SlotScorer;
use crate::nets::weights::Weights;

use super::features::JOB_FEATURES;

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
    Net(Box<SlotScorer>),
}

impl Scorer {
    pub fn new(score: &QueueScore) -> Self {
        match score {
            QueueScore::Linear(weights) => Self::Linear(*weights),
            QueueScore::Net(weights) => Self::Net(Box::new(SlotScorer::new(weights))),
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
            Self::Net(net) => net.scores(features).to_vec(),
        }
    }
}
