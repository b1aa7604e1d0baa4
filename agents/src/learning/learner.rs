//! Learner: weights and the optimiser's state, which is all that a checkpoint needs.

use burn::tensor::Device;
use goodput_env::gym::Layout;
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::learning::adam::{Adam, AdamConfig};
use crate::learning::objective::{Objective, gradient};
use crate::nets::archive::{Archive, ArchiveError, write};
use crate::nets::shard::Source;
use crate::nets::simd::widest;
use crate::nets::weights::{NetConfig, Weights, WeightsError};

/// Weights under training.
///
/// Update rules ([`Self::ppo`], [`Self::imitate`]) take batches and own no loop over the
/// environment. They are deterministic: the same batch and random stream give the same bits on any
/// number of threads.
#[derive(Clone, Debug)]
pub struct Learner {
    weights: Weights,
    adam: Adam,
    device: Device,
    threads: usize,
}

/// An update that produced no usable gradient.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "the gradient is not finite in minibatch {minibatch}: lower the learning rate, or look for NaN in observations or rewards"
)]
pub struct Diverged {
    /// Minibatches done before it in this update.
    pub minibatch: usize,
}

/// A checkpoint that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Not the file of a learner.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Numbers that do not fit its own net.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    net: NetConfig,
    layout: Layout,
    adam: AdamConfig,
    step: u64,
}

/// Key of the header in the file.
const HEADER: &str = "goodput.learner";

impl Learner {
    /// A new net and a fresh optimiser.
    pub fn new(net: &NetConfig, layout: Layout, adam: AdamConfig, seed: u64) -> Self {
        Self::from_weights(Weights::new(net, layout, seed), adam)
    }

    /// Given weights and a fresh optimiser.
    pub fn from_weights(weights: Weights, adam: AdamConfig) -> Self {
        let adam = Adam::new(adam, weights.data().len());
        Self { weights, adam, device: Device::flex().autodiff(), threads: 1 }
    }

    /// Uses `threads` threads for each update; results do not depend on it.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// The weights as they are now.
    pub const fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Takes other weights of the net; the optimiser keeps its moments.
    pub(super) fn set_weights(&mut self, weights: Weights) {
        self.weights = weights;
    }

    /// Device of the tensor framework.
    pub(super) const fn device(&self) -> &Device {
        &self.device
    }

    /// The optimiser as it is now.
    pub const fn adam(&self) -> &Adam {
        &self.adam
    }

    /// The optimiser forgets its moments: a new phase of learning begins.
    pub fn reset_optimiser(&mut self) {
        self.adam = Adam::new(self.adam.config, self.weights.data().len());
    }

    /// Bytes of a checkpoint, exact to the bit.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            net: self.weights.config().clone(),
            layout: *self.weights.layout(),
            adam: self.adam.config,
            step: self.adam.step,
        };
        let shape = vec![self.weights.data().len()];
        let tensors =
            [("weights", self.weights.data()), ("adam.first", &self.adam.first), ("adam.second", &self.adam.second)];
        write(HEADER, &header, &tensors.map(|(name, data)| (name.to_owned(), shape.clone(), data)))
    }

    /// Learner from the bytes of [`Self::to_bytes`].
    ///
    /// # Errors
    /// When the bytes are not those of a learner or do not fit together.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let archive = Archive::read(bytes)?;
        let header: Header = archive.header(HEADER)?;
        let length = header.net.parameters(&header.layout);
        let read = |name: &str| archive.tensor(name, &[length]);
        let weights = Weights::from_data(&header.net, header.layout, read("weights")?)?;
        let mut learner = Self::from_weights(weights, header.adam);
        learner.adam =
            Adam { config: header.adam, step: header.step, first: read("adam.first")?, second: read("adam.second")? };
        Ok(learner)
    }

    /// Rows of a batch, as the net reads them.
    pub(super) fn source<'a>(&self, observations: &'a [f32], masks: &'a [u8]) -> Source<'a> {
        Source::new(*self.weights.layout(), observations, masks)
    }

    /// The gradient of `objective` over `rows`.
    pub(super) fn gradient<O: Objective>(
        &self,
        source: &Source<'_>,
        rows: &[u32],
        objective: &O,
    ) -> (Vec<f32>, Vec<O::Report>) {
        gradient(&self.weights, source, rows, &self.device, self.threads, objective)
    }

    /// Cuts the gradient to `max_norm` and makes one step. Gives the norm before the cut.
    pub(super) fn step(
        &mut self,
        gradient: &mut [f32],
        max_norm: f32,
        learning_rate: f32,
        minibatch: usize,
    ) -> Result<f32, Diverged> {
        let norm = cut(gradient, max_norm).ok_or(Diverged { minibatch })?;
        self.adam.step(self.weights.data_mut(), gradient, learning_rate);
        Ok(norm)
    }

    /// Rows `0..count` in random order, divided as evenly as possible into minibatches of about
    /// `size`.
    pub(super) fn minibatches(count: usize, size: usize, random: &mut impl Rng) -> Vec<Vec<u32>> {
        use rand::seq::SliceRandom;
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.shuffle(random);
        let parts = ((count as f64 / size.max(1) as f64).round() as usize).clamp(1, count.max(1));
        (0..parts).map(|part| order[part * count / parts..(part + 1) * count / parts].to_vec()).collect()
    }
}

/// Cuts `gradient` to `max_norm` and gives the norm that it had; `None` where that is not finite.
fn cut(gradient: &mut [f32], max_norm: f32) -> Option<f32> {
    // Squares of single precision may overflow or vanish, so they are summed in double.
    let norm = widest(|| sum_of_squares(gradient)).sqrt() as f32;
    if norm > max_norm {
        // PyTorch's `clip_grad_norm_` adds the 1e-6 too.
        let scale = max_norm / (norm + 1e-6);
        widest(|| gradient.iter_mut().for_each(|g| *g *= scale));
    }
    norm.is_finite().then_some(norm)
}

/// Sum of squares in double precision. Eight sums side by side do not wait for one another.
#[inline(always)]
fn sum_of_squares(values: &[f32]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, &value)| *sum += f64::from(value) * f64::from(value));
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>()
}
