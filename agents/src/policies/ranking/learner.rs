//! Proximal policy optimisation of a ranking (Schulman et al. 2017): one transition a round, its action the sequence of pairs taken.
//!
//! There is no critic. Advantages come from rollouts that met the same arrivals (Mao et al., arXiv:1807.02264), and are the caller's.

use burn::tensor::{Device, Tensor, TensorData};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::loss::{Terms, Weighing, bounds};
use super::net::{Inputs, Net};
use super::observation::Observation;
use super::sampled::Transition;
use super::weights::RankingNet;
use crate::learning::adam::{Adam, AdamConfig};
use crate::learning::learner::{CheckpointError, Diverged, Learner, cut};
use crate::learning::objective::{deal, total};
use crate::nets::archive::{Archive, write};
use crate::nets::layers::affine::host;
use crate::nets::weights::SetConfig;

pub use super::net::residuals;

/// Rounds of a shard.
const ROUNDS: usize = 64;
/// Key of the header in the file.
const HEADER: &str = "goodput.ranking";

/// The constants of an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankingConfig {
    /// Scores are divided by it.
    pub temperature: f64,
    /// Passes over a batch.
    pub epochs: usize,
    /// Rounds of a minibatch.
    pub minibatch: usize,
    /// How far a probability ratio may move from 1.
    pub clip: f64,
    /// Largest norm of a gradient.
    pub max_grad_norm: f32,
    /// The update ends when the approximate KL divergence from the acting policy exceeds 1.5 times this; 0 for never.
    pub target_kl: f64,
    /// Step size of Adam.
    pub learning_rate: f32,
    /// Weight of the entropy bonus; entropies are divided by the largest there could be.
    pub entropy: f64,
    /// Weight of `KL(start || policy)`, the start being the policy whose net says nothing.
    pub reference_kl: f64,
}

/// Means over the rounds of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankingStats {
    /// Clipped surrogate, negated.
    pub policy_loss: f64,
    /// Entropy over its maximum.
    pub entropy: f64,
    /// Divergence from the start; 0 where it has no weight.
    pub reference_kl: f64,
    /// `mean(r - 1 - ln r)` of the probability ratio `r`.
    pub approx_kl: f64,
    /// Share of rounds whose ratio lies outside the clip.
    pub clipfrac: f64,
    /// Norm of the gradient before it is cut.
    pub grad_norm: f64,
    /// Steps of the optimiser made.
    pub minibatches: usize,
    /// Whether the divergence ended the update early.
    pub stopped: bool,
}

/// A ranking's net under training. Deterministic: the same batch and random stream give the same bits on any number of threads.
#[derive(Clone, Debug)]
pub struct RankingLearner {
    net: RankingNet,
    adam: Adam,
    device: Device,
    threads: usize,
}

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    net: SetConfig,
    adam: AdamConfig,
    step: u64,
}

impl RankingLearner {
    /// This net and a fresh optimiser.
    pub fn new(net: RankingNet) -> Self {
        let adam = Adam::new(AdamConfig::default(), net.data().len());
        Self { net, adam, device: Device::flex().autodiff(), threads: 1 }
    }

    /// Uses `threads` threads for each update; results do not depend on it.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// The net as it is now.
    pub const fn net(&self) -> &RankingNet {
        &self.net
    }

    /// One update on rounds and their advantages.
    ///
    /// # Errors
    /// [`Diverged`] when a gradient is not finite; the weights are those before that minibatch.
    ///
    /// # Panics
    /// When there is not one advantage a round.
    pub fn update(
        &mut self,
        config: &RankingConfig,
        rounds: &[Transition],
        advantages: &[f64],
        random: &mut impl Rng,
    ) -> Result<RankingStats, Diverged> {
        assert_eq!(rounds.len(), advantages.len(), "one advantage a round");
        let (mut stats, mut seen, mut sum) = (RankingStats::default(), 0, Terms::default());
        'update: for _ in 0..config.epochs {
            for rows in
                Learner::minibatches(rounds.len(), config.minibatch, random).iter().filter(|rows| !rows.is_empty())
            {
                let (terms, mut gradient) = self.evaluate(config, rounds, advantages, rows);
                if config.target_kl > 0.0 && terms.approx_kl / rows.len() as f64 > 1.5 * config.target_kl {
                    stats.stopped = true;
                    break 'update;
                }
                let norm = cut(&mut gradient, config.max_grad_norm).ok_or(Diverged { minibatch: stats.minibatches })?;
                self.adam.step(self.net.data_mut(), &gradient, config.learning_rate);
                sum.add(&terms);
                seen += rows.len();
                stats.grad_norm += f64::from(norm);
                stats.minibatches += 1;
            }
        }
        let count = seen.max(1) as f64;
        Ok(RankingStats {
            policy_loss: sum.policy / count,
            entropy: sum.entropy / count,
            reference_kl: sum.reference_kl / count,
            approx_kl: sum.approx_kl / count,
            clipfrac: sum.clipped / count,
            grad_norm: stats.grad_norm / stats.minibatches.max(1) as f64,
            ..stats
        })
    }

    /// The mean loss of `rounds` and its gradient, in the order of the flat vector, without a step: for tests and diagnostics.
    pub fn loss_and_gradient(
        &self,
        config: &RankingConfig,
        rounds: &[Transition],
        advantages: &[f64],
    ) -> (f64, Vec<f32>) {
        let rows: Vec<u32> = (0..rounds.len() as u32).collect();
        let (terms, gradient) = self.evaluate(config, rounds, advantages, &rows);
        (config.weighing().loss(&terms) / rounds.len() as f64, gradient)
    }

    /// Sums of the terms of `rows`, and the gradient of their mean loss.
    fn evaluate(
        &self,
        config: &RankingConfig,
        rounds: &[Transition],
        advantages: &[f64],
        rows: &[u32],
    ) -> (Terms, Vec<f32>) {
        let mut sorted: Vec<(usize, u32)> =
            rows.iter().map(|&row| (rounds[row as usize].observation.groups(), row)).collect();
        sorted.sort_unstable();
        let shards: Vec<&[(usize, u32)]> = sorted.chunks(ROUNDS).collect();
        let (weighing, share) = (config.weighing(), 1.0 / rows.len() as f64);
        let of_shards = deal(&shards, self.threads, |shard| {
            let seen: Vec<&Observation> = shard.iter().map(|(_, row)| &rounds[*row as usize].observation).collect();
            let net = Net::new(&self.net, &self.device);
            let residuals = net.residuals(&Inputs::gather(&seen, &self.device));
            let (values, bounds) = (host(residuals.clone()), bounds(seen));
            let (mut sum, mut slopes) = (Terms::default(), Vec::with_capacity(values.len()));
            for ((_, row), at) in shard.iter().zip(bounds.windows(2)) {
                let row = *row as usize;
                let (terms, gradient) = weighing.round(&rounds[row], &values[at[0]..at[1]], advantages[row]);
                sum.add(&terms);
                slopes.extend(gradient.into_iter().map(|slope| (slope * share) as f32));
            }
            let wanted = Tensor::<1>::from_data(TensorData::new(slopes, [values.len()]), &self.device);
            (net.gradient(&mut (residuals * wanted).sum().backward()), sum)
        });
        let (gradient, of_shards) = total(self.net.data().len(), of_shards);
        let mut terms = Terms::default();
        of_shards.iter().for_each(|part| terms.add(part));
        (terms, gradient)
    }

    /// Everything, exactly.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header { net: self.net.config().clone(), adam: self.adam.config, step: self.adam.step };
        let shape = vec![self.net.data().len()];
        let tensors =
            [("weights", self.net.data()), ("adam.first", &self.adam.first), ("adam.second", &self.adam.second)];
        write(HEADER, &header, &tensors.map(|(name, data)| (name.to_owned(), shape.clone(), data)))
    }

    /// What [`Self::to_bytes`] stored.
    ///
    /// # Errors
    /// When the bytes are not those of such a learner or do not fit together.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let archive = Archive::read(bytes)?;
        let header: Header = archive.header(HEADER)?;
        let length = RankingNet::layers_of(&header.net).iter().map(crate::nets::weights::Layer::len).sum();
        let read = |name: &str| archive.tensor(name, &[length]);
        let mut learner = Self::new(RankingNet::from_data(&header.net, read("weights")?)?);
        learner.adam =
            Adam { config: header.adam, step: header.step, first: read("adam.first")?, second: read("adam.second")? };
        Ok(learner)
    }
}

impl RankingConfig {
    fn weighing(&self) -> Weighing {
        let Self { temperature, clip, entropy, reference_kl, .. } = *self;
        Weighing { temperature, clip, entropy, reference_kl }
    }
}
