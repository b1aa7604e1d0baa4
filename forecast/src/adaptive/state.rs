//! State of a fitted default forecaster, and its steps: issue a forecast, settle it, update.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::alarm::Alarm;
use super::conformal::{Conformal, ErrorScale, PastForecast, Pooling};
use super::coverage::GRID;
use super::weights::{EnsembleWeights, distance, weighted_median};
use super::window::{self, WindowPeak};
use crate::history::LoadHistory;
use crate::models::{EnsembleMember, Path, Seasons};
use crate::{Forecast, Horizon, Predict, check_levels};

/// Fitted [`Adaptive`](super::Adaptive) forecaster, which knows its series up to now. The serde
/// form is a complete snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedAdaptive {
    past: LoadHistory,
    members: Vec<EnsembleMember>,
    horizon: usize,
    /// Steps between two forecasts that are compared with the outcome.
    stride: usize,
    /// Whether every value so far was at least 0, in which case every forecast is too.
    nonnegative: bool,
    windows: Vec<Range<usize>>,
    weights: EnsembleWeights,
    conformal: Conformal,
    alarm: Alarm,
    /// Forecasts with steps that are still to come, oldest first.
    pending: VecDeque<Pending>,
}

/// Forecast that is waiting for its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pending {
    origin: usize,
    /// Paths of the models, shape `[steps, models]`.
    paths: Vec<f64>,
    point: Vec<f64>,
    /// Scales of errors by distance, at the time of the forecast.
    scales: Vec<ErrorScale>,
    /// Scaled quantiles of the grid, by track.
    given: Vec<[f64; GRID.len()]>,
    peaks: Vec<WindowPeak>,
}

/// Powers of [`Conformal::size`], itself a square root, that divide the errors of a window's
/// maximum.
const PEAK_SIZES: [i32; 3] = [0, 1, 2];
/// Forecasts per day that are compared with the outcome; more where the horizon is shorter than the
/// time between two of them.
const FORECASTS_A_DAY: usize = 12;
/// Divisor of the horizon up to which an error counts as short-range and enters the present scale.
const SHORT_RANGE: usize = 8;
/// Cap on the absolute load, so that its square is finite.
const LARGEST: f64 = 1e100;

/// Load capped at [`LARGEST`]; a gap stays a gap.
pub(crate) fn bounded(load: f64) -> f64 {
    if load.is_finite() { load.clamp(-LARGEST, LARGEST) } else { f64::NAN }
}

/// The steps of a window, at least one and none beyond `horizon`.
fn within((first, steps): (usize, usize), horizon: usize) -> Range<usize> {
    first.min(horizon - 1)..first.saturating_add(steps.max(1)).min(horizon).max(1)
}

impl FittedAdaptive {
    pub(super) fn new(
        past: LoadHistory,
        members: Vec<EnsembleMember>,
        seasons: Seasons,
        windows: &[(usize, usize)],
    ) -> Self {
        let Seasons { day, horizon, .. } = seasons;
        let known = past.values();
        let mean = known.iter().map(|y| y.abs()).sum::<f64>() / known.len().max(1) as f64;
        let windows: Vec<Range<usize>> = windows.iter().map(|&window| within(window, horizon)).collect();
        Self {
            nonnegative: known.iter().all(|&y| y >= 0.0),
            horizon,
            stride: (day / FORECASTS_A_DAY).clamp(1, horizon),
            weights: EnsembleWeights::new(members.len(), horizon, day as f64),
            conformal: Conformal::new(distance(horizon - 1) + 1, PEAK_SIZES.len() * windows.len(), day, mean),
            windows,
            members,
            past,
            alarm: Alarm::default(),
            pending: VecDeque::new(),
        }
    }

    /// Adds a window: the largest of `steps` values from step `first` ahead on, as far as the
    /// horizon reaches, is forecast too. Returns the number of the window.
    ///
    /// Until the window has errors of its own, errors of a shorter distance stand for them.
    pub fn watch(&mut self, first: usize, steps: usize) -> usize {
        let window = within((first, steps), self.horizon);
        self.windows.iter().position(|known| *known == window).unwrap_or_else(|| {
            self.windows.push(window);
            PEAK_SIZES.iter().for_each(|_| self.conformal.add_track());
            self.windows.len() - 1
        })
    }

    /// Whether and when the load last changed its regime.
    pub fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Quantiles at ascending `levels` of the largest value in window number `window` of the
    /// settings.
    ///
    /// `None` when there is no such window.
    ///
    /// # Panics
    /// When the levels do not pass [`check_levels`].
    pub fn peak(&self, window: usize, levels: &[f64]) -> Option<Vec<f64>> {
        if let Err(error) = check_levels(levels) {
            panic!("quantile levels have to be checked before predicting: {error}");
        }
        self.peaks(window, levels).map(|[quantiles, ..]| quantiles)
    }

    /// Quantiles of a window's maximum under three assumptions: errors that do not depend on the
    /// size of the forecast, that grow with its square root, and that grow with it.
    pub(crate) fn peaks(&self, window: usize, levels: &[f64]) -> Option<[Vec<f64>; PEAK_SIZES.len()]> {
        let range = self.windows.get(window)?;
        let point = window::largest(&self.point(self.horizon), range);
        Some(std::array::from_fn(|number| {
            let mut quantiles = vec![0.0; levels.len()];
            self.conformal.quantiles(self.peak_track(window, number), levels, &mut quantiles);
            for quantile in &mut quantiles {
                *quantile = self.floor(point + *quantile * self.conformal.size(point).powi(PEAK_SIZES[number]));
            }
            quantiles.sort_by(f64::total_cmp);
            quantiles
        }))
    }

    fn peak_track(&self, window: usize, number: usize) -> usize {
        self.distances() + window * PEAK_SIZES.len() + number
    }

    /// Farthest step at which errors are learnt.
    pub fn horizon(&self) -> Horizon {
        Horizon::steps(self.horizon)
    }

    /// Number of steps seen so far, gaps included.
    pub fn steps_seen(&self) -> usize {
        self.past.len()
    }

    /// Mean absolute load of the steps that are kept.
    pub fn mean_size(&self) -> f64 {
        let values = self.past.values();
        values.iter().map(|load| load.abs()).sum::<f64>() / values.len().max(1) as f64
    }

    /// Weighted median of the models' paths, without the correction by past errors: `steps` values.
    pub fn uncorrected(&self, steps: usize) -> Vec<f64> {
        self.point(steps)
    }

    /// Paths of all models, shape `[steps, models]`.
    fn paths(&self, steps: usize) -> Vec<f64> {
        let models = self.members.len();
        let mut rows = vec![0.0; steps * models];
        let mut path = vec![0.0; steps];
        for (column, member) in self.members.iter().enumerate() {
            member.path(&self.past, &mut path);
            for (row, &value) in rows.chunks_exact_mut(models).zip(&path) {
                row[column] = self.floor(value);
            }
        }
        rows
    }

    /// Weighted medians of rows of paths.
    fn combine(&self, rows: &[f64]) -> Vec<f64> {
        let models = self.members.len();
        let mut weights = vec![0.0; models];
        let mut pairs = vec![(0.0, 0.0); models];
        let mut weighed = None;
        let combined = rows.chunks_exact(models.max(1)).enumerate().map(|(step, row)| {
            // Steps of one distance share their weights, which are looked up once.
            let distance = distance(step.min(self.horizon - 1));
            if weighed != Some(distance) {
                self.weights.at(distance, &mut weights);
                weighed = Some(distance);
            }
            for ((pair, &value), &weight) in pairs.iter_mut().zip(row).zip(&weights) {
                *pair = (value, weight);
            }
            weighted_median(&mut pairs)
        });
        combined.collect()
    }

    fn point(&self, steps: usize) -> Vec<f64> {
        if self.members.is_empty() { vec![self.past.lag(1); steps] } else { self.combine(&self.paths(steps)) }
    }

    /// Value as a load can be: finite, and not negative where no load was.
    fn floor(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.past.lag(1) } else { value.clamp(-2.0 * LARGEST, 2.0 * LARGEST) };
        if self.nonnegative { value.max(0.0) } else { value }
    }

    /// Present scale of errors, by distance.
    fn scales(&self) -> Vec<ErrorScale> {
        let scale = self.conformal.scale();
        (0..self.distances()).map(|track| scale.at(track)).collect()
    }

    fn distances(&self) -> usize {
        distance(self.horizon - 1) + 1
    }

    /// Makes a forecast that will be compared with its outcome.
    fn issue(&mut self) {
        // Quantiles are read from merged errors alone, so the fresh ones have to go in first.
        self.conformal.absorb();
        let paths = self.paths(self.horizon);
        let point = if self.members.is_empty() { self.point(self.horizon) } else { self.combine(&paths) };
        self.pending.push_back(Pending {
            origin: self.past.len(),
            paths,
            point,
            scales: self.scales(),
            given: (0..self.distances()).map(|track| self.conformal.give(track)).collect(),
            peaks: self.windows.iter().map(|_| WindowPeak::new()).collect(),
        });
    }

    /// Compares all pending forecasts with the load `y` of this step, `None` for a gap.
    fn settle(&mut self, y: Option<f64>) {
        // The value of this step is not in the history yet, so the length of it is the step's
        // index.
        let now = self.past.len();
        let (models, distances) = (self.members.len(), self.distances());
        let mut recent = [0.0; 3];
        let mut latest = None;
        // A distance is a binary logarithm of a step, so it is below the number of bits of one.
        let mut of_distance = [0; usize::BITS as usize];
        self.weights.forget();
        for pending in &mut self.pending {
            let step = now - pending.origin;
            for (number, (peak, window)) in pending.peaks.iter_mut().zip(&self.windows).enumerate() {
                if let Some(largest) = peak.watch(window, step, y) {
                    let point = window::largest(&pending.point, window);
                    let size = self.conformal.size(point);
                    for (other, power) in PEAK_SIZES.into_iter().enumerate() {
                        let track = distances + number * PEAK_SIZES.len() + other;
                        // Bursts do not announce themselves, so the errors of a maximum carry no
                        // local scale.
                        let made = PastForecast { point, size: size.powi(power), scale: ErrorScale::ONE, given: None };
                        self.conformal.learn(track, now, Pooling::Keep, &made, largest);
                    }
                }
            }
            // A gap ends a window as any other step does, so it is skipped only after the windows.
            let Some(y) = y else { continue };
            let track = distance(step);
            let row = &pending.paths[step * models..(step + 1) * models];
            self.weights.learn(track, row.iter().map(|path| y - path));
            let number = of_distance[track];
            of_distance[track] += 1;
            // Of the forecasts at one distance, the error of only one is kept, each in turn: the
            // errors of neighbours are nearly equal and would only make the pools larger.
            let keeps = number == now % ((1 << track) / self.stride).max(1);
            let pooling = if keeps { Pooling::Keep } else { Pooling::Pass };
            let point = pending.point[step];
            let size = self.conformal.size(point);
            let made = PastForecast { point, size, scale: pending.scales[track], given: Some(&pending.given[track]) };
            let relative = self.conformal.learn(track, now, pooling, &made, y);
            if let Some(relative) = relative.filter(|_| SHORT_RANGE * step < self.horizon) {
                // Forecasts are settled oldest first, so the last one to get here is the newest.
                latest = Some(relative);
                recent[usize::from(relative > 0.0)] += relative.abs();
                recent[2] += 1.0;
            }
        }
        self.conformal.pass(now, recent);
        if let Some(relative) = latest {
            self.alarm.observe(now, relative);
        }
        while self.pending.front().is_some_and(|pending| now + 1 >= pending.origin + self.horizon) {
            self.pending.pop_front();
        }
    }
}

impl Predict for FittedAdaptive {
    fn predict(&self, horizon: Horizon, levels: &[f64]) -> Forecast {
        let (all, _) = crate::forecast::with_median(levels);
        let steps = horizon.get();
        let point = self.point(steps);
        let scales = self.scales();
        let width = all.len();
        let mut scaled = vec![0.0; self.distances() * width];
        // Scaled quantiles differ by distance and not by step, so each distance is asked once.
        for (track, row) in scaled.chunks_exact_mut(width).enumerate() {
            self.conformal.quantiles(track, &all, row);
        }
        Forecast::from_quantiles(horizon, levels, |step, level| {
            let column = all.partition_point(|&other| other < level);
            let track = distance(step.min(self.horizon - 1));
            self.floor(self.conformal.restore(point[step], scaled[track * width + column], scales[track]))
        })
    }

    fn update(&mut self, values: &[f64]) {
        for &value in values {
            // The forecast is made before the value is looked at, because it is judged by this
            // value too.
            if self.past.len().is_multiple_of(self.stride) {
                self.issue();
            }
            let value = bounded(value);
            let y = value.is_finite().then_some(value);
            self.nonnegative &= y.is_none_or(|y| y >= 0.0);
            self.settle(y);
            self.past.push(value);
            for member in &mut self.members {
                member.push(&self.past);
            }
        }
    }

    fn refresh(&mut self) {
        for member in &mut self.members {
            member.refit(&self.past);
        }
    }
}
