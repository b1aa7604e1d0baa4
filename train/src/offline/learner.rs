//! Learners from a log: one interface over the algorithms.

use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::imitation::{ImitationBatch, ImitationConfig};
use goodput_agents::learning::iql::Iql;
use goodput_agents::learning::learner::{Diverged, Learner};
use goodput_agents::learning::offline::OfflineBatch;
use goodput_agents::nets::weights::Weights;
use goodput_env::gym::Layout;
use goodput_env::seed::{Stream, rng};

use crate::checkpoint::LEARNER;
use crate::error::TrainError;
use goodput_configs::experiment::{Algorithm, OfflineAgent};

/// A learner by its algorithm.
pub enum OfflineLearner {
    Clone(Box<Learner>),
    Implicit(Box<Iql>),
}

/// Figures of an update, by the names of columns.
pub type Figures = Vec<(&'static str, f64)>;

impl OfflineLearner {
    /// Fresh nets from `seed`.
    pub fn new(agent: &OfflineAgent, layout: Layout, seed: u64, threads: usize) -> Self {
        let learner = Learner::new(&agent.net, layout, AdamConfig::default(), seed).with_threads(threads);
        match agent.algorithm {
            Algorithm::Bc | Algorithm::FilteredBc => Self::Clone(Box::new(learner)),
            Algorithm::Iql => Self::Implicit(Box::new(Iql::new(learner, seed))),
        }
    }

    /// One step on a minibatch.
    pub fn update(&mut self, agent: &OfflineAgent, rate: f32, batch: &OfflineBatch<'_>) -> Result<Figures, Diverged> {
        match self {
            Self::Clone(learner) => {
                let rows = batch.actions.len();
                let config = ImitationConfig { epochs: 1, minibatch: rows, ..ImitationConfig::default() };
                let OfflineBatch { observations, masks, actions, .. } = *batch;
                let batch = ImitationBatch { observations, masks, actions, weights: None, returns: None };
                // All rows are in one minibatch, so the order that the stream draws has no effect.
                let stats = learner.imitate(&config, rate, &batch, &mut rng(0, Stream::Exploration))?;
                Ok(vec![("train/cross_entropy", stats.cross_entropy), ("train/accuracy", stats.accuracy)])
            }
            Self::Implicit(iql) => {
                let stats = iql.update(&agent.iql, rate, batch)?;
                Ok(vec![
                    ("train/value_loss", stats.value_loss),
                    ("train/critic_loss", stats.critic_loss),
                    ("train/policy_loss", stats.policy_loss),
                    ("train/value", stats.value),
                    ("train/advantage_rms", stats.advantage),
                ])
            }
        }
    }

    /// The policy as it is now.
    pub fn weights(&self) -> &Weights {
        match self {
            Self::Clone(learner) => learner.weights(),
            Self::Implicit(iql) => iql.policy.weights(),
        }
    }

    /// Everything, as files of a checkpoint.
    pub fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        match self {
            Self::Clone(learner) => vec![(LEARNER, learner.to_bytes())],
            Self::Implicit(iql) => {
                let [first, second] = &iql.critics;
                let [slow_first, slow_second] = &iql.targets;
                vec![
                    (LEARNER, iql.policy.to_bytes()),
                    ("critic-1.bin", first.to_bytes()),
                    ("critic-2.bin", second.to_bytes()),
                    ("target-1.bin", file(slow_first)),
                    ("target-2.bin", file(slow_second)),
                ]
            }
        }
    }

    /// Restores the learner from the files that [`Self::files`] made; `read` gives the learner in
    /// the file of a name.
    pub fn restore(
        &mut self,
        threads: usize,
        read: &dyn Fn(&str) -> Result<Learner, TrainError>,
    ) -> Result<(), TrainError> {
        let learner = |name: &str| Ok::<_, TrainError>(read(name)?.with_threads(threads));
        let weights = |name: &str| Ok::<_, TrainError>(read(name)?.weights().clone());
        match self {
            Self::Clone(own) => **own = learner(LEARNER)?,
            Self::Implicit(iql) => {
                **iql = Iql {
                    policy: learner(LEARNER)?,
                    critics: [learner("critic-1.bin")?, learner("critic-2.bin")?],
                    targets: [weights("target-1.bin")?, weights("target-2.bin")?],
                };
            }
        }
        Ok(())
    }
}

/// Weights as a file.
pub fn file(weights: &Weights) -> Vec<u8> {
    Learner::from_weights(weights.clone(), AdamConfig::default()).to_bytes()
}
