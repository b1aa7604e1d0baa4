//! Training of nets: Adam on windows drawn at random; the weights that are best on later windows
//! are kept.
//!
//! A trainer owns no loop: its caller asks for one step after the other, records, stops. Random
//! numbers are named by (seed, purpose, step), so a checkpoint holds no generator and a resumed run
//! makes the same steps.

use burn::tensor::Device;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::adam::AdamW;
use super::graph;
use super::net::{NetError, NeuralNet};
use super::parameters::InitialValues;
use super::processor::Processor;
use super::spec::{Spec, SpecError};
use super::windows::{Batch, Windows};
use crate::Series;

/// Settings of the training of a net.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Training {
    /// Steps of the optimiser.
    pub steps: u64,
    /// Windows a step.
    pub batch: usize,
    /// Learning rate at the start; it falls to zero along a half cosine.
    pub learning_rate: f64,
    /// Share of the weights, times the learning rate, taken off each step.
    pub weight_decay: f64,
    /// Largest norm of a gradient.
    pub max_grad_norm: f64,
    /// Steps between two looks at the windows kept for validation.
    pub validate_every: u64,
    /// Device on which gradients are computed.
    pub processor: Processor,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            steps: 400,
            batch: 64,
            learning_rate: 1e-3,
            weight_decay: 0.0,
            max_grad_norm: 1.0,
            validate_every: 50,
            processor: Processor::Cpu,
        }
    }
}

/// Reasons for which a net cannot be trained.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum NetTrainError {
    /// The spec cannot work.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A setting of the training cannot work.
    #[error("`{key}`: expected {expected}")]
    Setting {
        /// Key of the setting.
        key: &'static str,
        /// Value that would be accepted.
        expected: &'static str,
    },
    /// Not one window to learn from.
    #[error(
        "{known} steps to learn from are too few for one window of {needed}: give a longer series, look back less, or forecast less"
    )]
    TooShort {
        /// Measured from the first measurement to the start of validation.
        known: usize,
        /// Lookback and horizon.
        needed: usize,
    },
    /// A loss or gradient that is not finite.
    #[error("step {step}: the gradient is not finite; lower the learning rate")]
    Diverged {
        /// Number of steps made before it.
        step: u64,
    },
    /// A graphics processor was asked for, of a build that knows none.
    #[error(
        "`processor`: gpu, but this program was built without the feature `wgpu`; set train.processor = \"cpu\", or build it with `cargo build --release --features wgpu -p goodput-cli`"
    )]
    NoGpu,
    /// A graphics processor was asked for where there is none.
    #[error(
        "`processor`: gpu, but no graphics adapter was found; it takes a driver for Vulkan, Metal or DirectX 12, or set train.processor = \"cpu\""
    )]
    NoAdapter,
    /// A checkpoint of another net.
    #[error("the checkpoint does not fit: {0}")]
    Checkpoint(#[from] NetError),
}

/// Training in progress: the weights, the optimiser and the windows.
#[derive(Debug, Clone)]
pub struct Trainer {
    net: NeuralNet,
    adam: AdamW,
    best: Option<(f64, Vec<f32>)>,
    training: Training,
    windows: Windows,
    seed: u64,
    device: Device,
}

/// State from which a trainer continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetCheckpoint {
    /// The weights as they are now.
    pub weights: Vec<f32>,
    /// State of the optimiser.
    pub adam: AdamW,
    /// The least loss in validation so far and the weights that had it.
    pub best: Option<(f64, Vec<f32>)>,
}

/// Purposes of random numbers.
const START: u64 = 0;
const DRAW: u64 = 1;
const DROPOUT: u64 = 2;
/// Windows of validation at a time.
const ROWS: usize = 256;

impl Trainer {
    /// A new net for `channels`, which share it; windows with targets from step `validation_from`
    /// on are for validation.
    ///
    /// # Errors
    /// Settings that cannot work, or channels too short for one window.
    pub fn new(
        spec: &Spec,
        training: &Training,
        channels: &[Series],
        validation_from: usize,
        seed: u64,
    ) -> Result<Self, NetTrainError> {
        Self::of_many(
            spec,
            training,
            &channels.iter().map(|channel| (channel, validation_from)).collect::<Vec<_>>(),
            seed,
        )
    }

    /// A new net for `channels`, each with the step from which on its windows are for validation.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_many(
        spec: &Spec,
        training: &Training,
        channels: &[(&Series, usize)],
        seed: u64,
    ) -> Result<Self, NetTrainError> {
        spec.check()?;
        training.check()?;
        let windows = Windows::new(spec, channels);
        if windows.train_len() == 0 {
            let known = channels.iter().map(|(channel, from)| channel.len().min(*from)).max().unwrap_or(0);
            return Err(NetTrainError::TooShort { known, needed: spec.lookback + spec.horizon });
        }
        let mut random = named(seed, START, 0);
        let mut weights = Vec::new();
        for parameter in spec.parameters() {
            weights.extend((0..parameter.len()).map(|_| match parameter.start {
                InitialValues::Uniform(bound) => bound * (2.0 * random.random::<f32>() - 1.0),
                InitialValues::Constant(value) => value,
            }));
        }
        let overall = windows.overall();
        let adam = AdamW::new(weights.len());
        let net = NeuralNet::from_parts(spec.clone(), overall.mean, overall.spread, weights)?;
        let device = training.processor.device()?;
        Ok(Self { net, adam, best: None, training: training.clone(), windows, seed, device })
    }

    /// Number of steps made so far.
    pub fn steps(&self) -> u64 {
        self.adam.step
    }

    /// Whether all steps are made.
    pub fn is_done(&self) -> bool {
        self.adam.step >= self.training.steps
    }

    /// The net as it is now.
    pub fn net(&self) -> &NeuralNet {
        &self.net
    }

    /// The net that was best in validation; as it is now where there was none.
    pub fn best(&self) -> NeuralNet {
        let mut net = self.net.clone();
        if let Some((_, weights)) = &self.best {
            net.weights_mut().clone_from(weights);
        }
        net
    }

    /// The learning rate of the next step.
    pub fn learning_rate(&self) -> f64 {
        // Half a cosine: large steps first, and none at the end, where the last weights are kept.
        let share = self.adam.step as f64 / self.training.steps.max(1) as f64;
        self.training.learning_rate * 0.5 * (1.0 + (std::f64::consts::PI * share.min(1.0)).cos())
    }

    /// One step of the optimiser: its loss, in units of the spread of the series, before the step.
    ///
    /// # Errors
    /// A gradient that is not finite; the weights stay as they were.
    pub fn step(&mut self) -> Result<f64, NetTrainError> {
        let step = self.adam.step;
        let batch = self.draw(self.training.batch);
        let mut dropout = named(self.seed, DROPOUT, step);
        let (loss, mut gradient) =
            graph::gradient(&self.net, &batch, Some(&mut dropout), &self.device.clone().autodiff());
        let norm = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt();
        if !norm.is_finite() || !loss.is_finite() {
            return Err(NetTrainError::Diverged { step });
        }
        // Clipping by the norm keeps the direction; a burst in one window must not throw the
        // weights.
        if norm > self.training.max_grad_norm {
            let scale = (self.training.max_grad_norm / norm) as f32;
            gradient.iter_mut().for_each(|g| *g *= scale);
        }
        let rate = self.learning_rate();
        self.adam.step(self.net.weights_mut(), &gradient, rate, self.training.weight_decay);
        Ok(loss)
    }

    /// The loss on the windows kept for validation, `None` where there are none; the best weights
    /// so far are remembered.
    pub fn validate(&mut self) -> Option<f64> {
        let (mut sum, mut rows) = (0.0, 0.0);
        for batch in self.windows.validation(ROWS) {
            sum += graph::loss(&self.net, &batch, &self.device) * batch.rows as f64;
            rows += batch.rows as f64;
        }
        let loss = (rows > 0.0).then_some(sum / rows)?;
        if self.best.as_ref().is_none_or(|(best, _)| loss < *best) {
            self.best = Some((loss, self.net.weights().to_vec()));
        }
        Some(loss)
    }

    /// Windows of the next step, more or fewer of them.
    pub(super) fn draw(&self, rows: usize) -> Batch {
        self.windows.draw(rows, &mut named(self.seed, DRAW, self.adam.step))
    }

    /// Makes all steps that are left, looking at validation on the way.
    ///
    /// # Errors
    /// A gradient that is not finite.
    pub fn run(&mut self) -> Result<(), NetTrainError> {
        while !self.is_done() {
            self.step()?;
            if self.is_due() {
                self.validate();
            }
        }
        Ok(())
    }

    /// Whether validation is due: every `validate_every` steps, and at the end.
    pub fn is_due(&self) -> bool {
        self.is_done() || self.adam.step.is_multiple_of(self.training.validate_every)
    }

    /// State from which training can continue.
    pub fn checkpoint(&self) -> NetCheckpoint {
        NetCheckpoint { weights: self.net.weights().to_vec(), adam: self.adam.clone(), best: self.best.clone() }
    }

    /// Continues from a checkpoint of the same settings.
    ///
    /// # Errors
    /// A checkpoint of another net.
    pub fn resume(&mut self, checkpoint: NetCheckpoint) -> Result<(), NetTrainError> {
        let NetCheckpoint { weights, adam, best } = checkpoint;
        let expected = self.net.weights().len();
        let lengths = [adam.first.len(), adam.second.len(), best.as_ref().map_or(expected, |(_, best)| best.len())];
        if let Some(found) = lengths.into_iter().find(|&found| found != expected) {
            return Err(NetError::Length { expected, found }.into());
        }
        let (mean, spread) = self.net.scale();
        self.net = NeuralNet::from_parts(self.net.spec().clone(), mean, spread, weights)?;
        (self.adam, self.best) = (adam, best);
        Ok(())
    }
}

impl Training {
    fn check(&self) -> Result<(), NetTrainError> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let checks = [
            ("batch", (1..=65_536).contains(&self.batch), "1 to 65536"),
            ("steps", self.steps >= 1, "at least 1"),
            ("learning_rate", positive(self.learning_rate) && self.learning_rate < 1.0, "above 0 and below 1"),
            ("weight_decay", (0.0..=1.0).contains(&self.weight_decay), "0 to 1"),
            ("max_grad_norm", positive(self.max_grad_norm), "above 0"),
            ("validate_every", self.validate_every >= 1, "at least 1"),
        ];
        match checks.into_iter().find(|(_, fine, _)| !fine) {
            Some((key, _, expected)) => Err(NetTrainError::Setting { key, expected }),
            None => Ok(()),
        }
    }
}

/// Random numbers for one purpose of one step.
fn named(seed: u64, purpose: u64, step: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // One stream for each step and purpose: a resumed run draws as an uninterrupted one does.
    random.set_stream(4 * step + purpose);
    random
}
