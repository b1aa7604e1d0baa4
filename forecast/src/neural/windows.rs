//! Windows of the training series: drawn at random for training, or kept for validation.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::head::NetLoss;
use super::rate::resampled;
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
    /// Steps ahead of a window that are looked at.
    pub horizon: usize,
    /// Features, shape `[rows, features]`.
    pub features: Vec<f32>,
    /// Targets in the units of each window, 0 in gaps, shape `[rows, horizon]`.
    pub targets: Vec<f32>,
    /// Weights of errors, 0 in gaps, shape `[rows, horizon]`. With them errors count in the units
    /// of the series, and as a mean over the measured values.
    pub weights: Vec<f32>,
}

/// Farthest target of a net of all series, in spreads of its window.
const FARTHEST: f32 = 6.0;
/// Windows of validation at most, evenly spaced.
const MOST_VALIDATION: usize = 2048;

impl Windows {
    /// Windows of `channels`: all of them with targets before the step that stands beside the channel for training,
    /// and those with targets from it on for validation.
    pub fn new(spec: &Spec, channels: &[(&Series, usize)]) -> Self {
        let (mut train, mut validation) = (Vec::new(), Vec::new());
        let mut known = Vec::new();
        for (number, &(series, validation_from)) in channels.iter().enumerate() {
            let channel = Channel {
                filled: series.fill_gaps(spec.day_steps).values().iter().copied().map(bounded).collect(),
                measured: series.mask().to_vec(),
            };
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
            known.push((channel, validation_from));
        }
        let kept = (0..validation.len().min(MOST_VALIDATION))
            .map(|i| validation[i * validation.len() / validation.len().min(MOST_VALIDATION)])
            .collect();
        let overall = match spec.centre {
            // Nothing of the series trained on is left in a window.
            Centre::Own => Overall { mean: 0.0, spread: 1.0 },
            _ => Overall::of(known.iter().flat_map(|(channel, from)| channel.filled.iter().take(*from).copied())),
        };
        let channels = known.into_iter().map(|(channel, _)| channel).collect();
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
        let disguises: Vec<Disguise> = match self.spec.is_global() {
            true => (0..rows).map(|_| Disguise::drawn(random)).collect(),
            false => vec![Disguise::NONE; rows],
        };
        let from = random_from(self.apart(), random);
        self.batch(&picked, &disguises, from)
    }

    /// The windows kept for validation, `rows` at a time.
    pub fn validation(&self, rows: usize) -> impl Iterator<Item = Batch> {
        self.validation.chunks(rows.max(1)).map(|windows| {
            let disguises = vec![Disguise::NONE; windows.len()];
            self.batch(windows, &disguises, self.apart() / 2)
        })
    }

    /// Distance of the steps ahead that one batch looks at: all of them, and about 24 of a net of all series, for which
    /// each step is a row of its own and neighbours are nearly alike.
    fn apart(&self) -> usize {
        if self.spec.is_global() { (self.spec.horizon / 24).max(1) } else { 1 }
    }

    /// A target as it counts in training. A window that was quiet before a jump has tiny units, in which the jump would
    /// outweigh all other windows of a net of all series.
    fn bounded(&self, target: f32) -> f32 {
        if self.spec.centre == Centre::Own { target.clamp(-FARTHEST, FARTHEST) } else { target }
    }

    /// Windows with the steps ahead from step `from` on, counted from 0.
    fn batch(&self, windows: &[(u32, u32)], disguises: &[Disguise], from: usize) -> Batch {
        let Spec { lookback, horizon, day_steps, .. } = self.spec;
        let (shape, layers) = (self.spec.shape(), self.spec.architecture.layers());
        let looked_at = || (from..horizon).step_by(self.apart());
        let (rows, steps) = (windows.len(), looked_at().count());
        let mut batch = Batch { rows, horizon: steps, features: vec![], targets: vec![], weights: vec![] };
        let mut measured_len = 0.0;
        for (&(channel, origin), disguise) in windows.iter().zip(disguises) {
            let (channel, origin) = (&self.channels[channel as usize], origin as usize);
            let known = disguise.window(&channel.filled[origin - lookback..origin], day_steps);
            let (to_come, measured) = disguise
                .targets(&channel.filled[origin..origin + horizon], &channel.measured[origin..origin + horizon]);
            let units = self.overall.units(self.spec.centre, &known);
            let window: Vec<f32> = known.iter().map(|&value| units.inward(value)).collect();
            let features = layers.features(&shape, &window);
            match steps == horizon {
                true => batch.features.extend(features),
                false => {
                    let width = features.len() / horizon;
                    looked_at().for_each(|step| batch.features.extend(&features[step * width..(step + 1) * width]));
                }
            }
            let relative = match self.spec.centre {
                Centre::Series | Centre::Own => 1.0,
                Centre::Last | Centre::Mean => units.spread / self.overall.spread,
            };
            let weight = match self.spec.loss {
                NetLoss::Pinball => relative,
                NetLoss::Squared => relative * relative,
            } as f32;
            for (value, measured) in looked_at().map(|step| (to_come[step], measured[step])) {
                measured_len += f32::from(u8::from(measured));
                batch.targets.push(if measured { self.bounded(units.inward(value)) } else { 0.0 });
                batch.weights.push(if measured { weight } else { 0.0 });
            }
        }
        let count = f32::max(measured_len, 1.0);
        batch.weights.iter_mut().for_each(|weight| *weight /= count);
        batch
    }
}

/// A first step below `apart`; none is drawn where all are looked at.
fn random_from(apart: usize, random: &mut ChaCha8Rng) -> usize {
    if apart == 1 { 0 } else { random.random_range(0..apart) }
}

/// Disguise of a training window of a net of all series: a history of fewer days, and a series of longer steps. So the
/// net meets in training what it will meet in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Disguise {
    /// Days that are known; the days before are copies of them. 0 for all days.
    days: usize,
    /// Steps that are taken together.
    together: usize,
}

impl Disguise {
    const NONE: Self = Self { days: 0, together: 1 };

    /// Half of the windows have all their days, and three of five have steps as they are.
    fn drawn(random: &mut ChaCha8Rng) -> Self {
        let days = if random.random_range(0..2) == 0 { 0 } else { random.random_range(1..7) };
        Self { days, together: [1, 1, 1, 3, 6][random.random_range(0..5)] }
    }

    fn window(self, known: &[f64], day: usize) -> Vec<f64> {
        let mut window = together(known, self.together);
        if self.days > 0 {
            for at in (0..window.len().saturating_sub(self.days * day)).rev() {
                window[at] = window[at + day];
            }
        }
        window
    }

    /// Values to come, and whether they are measured: a longer step is where all of it is.
    fn targets(self, to_come: &[f64], measured: &[bool]) -> (Vec<f64>, Vec<bool>) {
        let whole = measured.chunks(self.together).flat_map(|chunk| {
            let whole = chunk.iter().all(|&measured| measured);
            std::iter::repeat_n(whole, chunk.len())
        });
        (together(to_come, self.together), whole.collect())
    }
}

/// Each value replaced by the mean over the longer step that it is in.
fn together(values: &[f64], steps: usize) -> Vec<f64> {
    if steps == 1 || !values.len().is_multiple_of(steps) {
        return values.to_vec();
    }
    resampled(&resampled(values, steps, 1), 1, steps)
}
