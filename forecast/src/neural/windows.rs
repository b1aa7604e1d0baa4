//! Windows of the training series: drawn at random for training, or kept for validation.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::head::NetLoss;
use super::scale::{Centre, Overall};
use super::spec::Spec;
use crate::Series;
use crate::adaptive::bounded;

/// The series trained on, each a channel, with gaps filled causally.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    channels: Vec<Channel>,
    spec: Spec,
    overall: Overall,
    /// Pairs `(channel, origin)` of every window with targets that end before validation begins.
    train: Vec<(u32, u32)>,
    validation: Vec<(u32, u32)>,
}

#[derive(Debug, Clone)]
struct Channel {
    filled: Vec<f64>,
    measured: Vec<bool>,
}

/// Windows side by side.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub rows: usize,
    /// Features, shape `[rows, features]`.
    pub features: Vec<f32>,
    /// Targets in the units of each window, 0 in gaps; shape `[rows, horizon]`.
    pub targets: Vec<f32>,
    /// Weights of errors, 0 in gaps, shape `[rows, horizon]`. With them errors count in the units
    /// of the series, and as a mean over the measured values.
    pub weights: Vec<f32>,
}

/// Windows of validation at most, evenly spaced.
const MOST_VALIDATION: usize = 2048;

impl Windows {
    /// Windows of `channels`, all of them with targets before step `validation_from` for training,
    /// and those with targets from it on for validation.
    pub fn new(spec: &Spec, channels: &[Series], validation_from: usize) -> Self {
        let channels: Vec<Channel> = channels
            .iter()
            .map(|series| Channel {
                filled: series.fill_gaps(spec.day_steps).values().iter().copied().map(bounded).collect(),
                measured: series.mask().to_vec(),
            })
            .collect();
        let (mut train, mut validation) = (Vec::new(), Vec::new());
        for (number, channel) in channels.iter().enumerate() {
            // Before the first measurement nothing is known.
            let first = channel.measured.iter().position(|&measured| measured).unwrap_or(channel.filled.len());
            for origin in first + spec.lookback..(channel.filled.len() + 1).saturating_sub(spec.horizon) {
                let window = (number as u32, origin as u32);
                if origin + spec.horizon <= validation_from {
                    train.push(window);
                } else if origin >= validation_from {
                    validation.push(window);
                }
            }
        }
        let kept = (0..validation.len().min(MOST_VALIDATION))
            .map(|i| validation[i * validation.len() / validation.len().min(MOST_VALIDATION)])
            .collect();
        let known = channels.iter().flat_map(|channel| channel.filled.iter().take(validation_from).copied());
        let overall = Overall::of(known);
        Self { channels, spec: spec.clone(), overall, train, validation: kept }
    }

    pub fn overall(&self) -> Overall {
        self.overall
    }

    pub fn train_len(&self) -> usize {
        self.train.len()
    }

    /// `rows` windows drawn with replacement.
    pub fn draw(&self, rows: usize, random: &mut ChaCha8Rng) -> Batch {
        let picked: Vec<(u32, u32)> = (0..rows).map(|_| self.train[random.random_range(0..self.train.len())]).collect();
        self.batch(&picked)
    }

    /// The windows kept for validation, `rows` at a time.
    pub fn validation(&self, rows: usize) -> impl Iterator<Item = Batch> {
        self.validation.chunks(rows.max(1)).map(|windows| self.batch(windows))
    }

    fn batch(&self, windows: &[(u32, u32)]) -> Batch {
        let Spec { lookback, horizon, .. } = self.spec;
        let (shape, layers) = (self.spec.shape(), self.spec.architecture.layers());
        let mut batch = Batch { rows: windows.len(), features: vec![], targets: vec![], weights: vec![] };
        let mut measured_len = 0.0;
        for &(channel, origin) in windows {
            let (channel, origin) = (&self.channels[channel as usize], origin as usize);
            let known = &channel.filled[origin - lookback..origin];
            let units = self.overall.units(self.spec.centre, known);
            let window: Vec<f32> = known.iter().map(|&value| units.inward(value)).collect();
            batch.features.extend(layers.features(&shape, &window));
            let relative = if self.spec.centre == Centre::Series { 1.0 } else { units.spread / self.overall.spread };
            let weight = match self.spec.loss {
                NetLoss::Pinball => relative,
                NetLoss::Squared => relative * relative,
            } as f32;
            for step in origin..origin + horizon {
                let measured = channel.measured[step];
                measured_len += f32::from(u8::from(measured));
                batch.targets.push(if measured { units.inward(channel.filled[step]) } else { 0.0 });
                batch.weights.push(if measured { weight } else { 0.0 });
            }
        }
        let count = f32::max(measured_len, 1.0);
        batch.weights.iter_mut().for_each(|weight| *weight /= count);
        batch
    }
}
