//! Residual paths of past forecasts, and the scenarios that they make of a new one.
//!
//! A residual is divided by the size of its forecast and by the scale of errors at its origin, and multiplied by those
//! of the new forecast, as in the conformal layer of [`Adaptive`](crate::Adaptive). Nearer origins weigh more (Barber,
//! Candes, Ramdas, Tibshirani, "Conformal prediction beyond exchangeability", Annals of Statistics 51(2), 2023), and so
//! do origins at the present minute of the hour, because scheduled jobs burst by the clock.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::Scenarios;
use super::steps::MeasuredSteps;

/// Days of residual paths that are kept, and half-life of their weight in days.
const KEEP_DAYS: usize = 28;
const HALF_LIFE_DAYS: f64 = 14.0;
/// Power of the size of a forecast that its residuals grow with.
const SIZE_POWER: f64 = 0.5;
/// Power of the scale of recent errors, and its half-life in days.
const SCALE_POWER: f64 = 0.3;
const SCALE_DAYS: f64 = 0.25;
/// Half-life of what errors are usually like, in days.
const USUAL_DAYS: f64 = 7.0;
/// Cap on an error of a step, in multiples of the usual one, in the scale of recent errors.
const CAP: f64 = 10.0;
/// Width in minutes of the weight by the minute of the hour, and the weight of an origin at quite another minute.
const CLOCK_MINUTES: f64 = 2.5;
const CLOCK_FLOOR: f64 = 0.1;
/// Paths of a day from which scenarios are made, at most.
const PATHS_A_DAY: usize = 288;
/// Number of complete paths from which scenarios are made.
const ENOUGH: usize = 20;

/// Forecast of steps that are still to come.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenPath {
    origin: usize,
    point: Vec<f64>,
    scale: f64,
    residuals: MeasuredSteps,
}

/// Residual paths of past forecasts of one series.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResidualPaths {
    /// Steps of a path, at least 1, and of a day.
    width: usize,
    day: usize,
    /// Load at which the size of a forecast is 1.
    unit: f64,
    now: usize,
    open: VecDeque<OpenPath>,
    /// Complete paths by origin, oldest first.
    closed: VecDeque<(usize, MeasuredSteps)>,
    recent: f64,
    usual: f64,
    learnt: f64,
}

impl ResidualPaths {
    /// No path yet: paths of `width` steps, of a load of mean size `mean` with `day` steps a day.
    pub fn new(width: usize, day: usize, mean: f64) -> Self {
        Self {
            width: width.max(1),
            day: day.max(1),
            unit: if mean > 0.0 { mean } else { 1.0 },
            now: 0,
            open: VecDeque::new(),
            closed: VecDeque::new(),
            recent: 0.0,
            usual: 0.0,
            learnt: 0.0,
        }
    }

    /// Takes in the forecast `point` of the next steps, the present one first.
    pub fn issue(&mut self, point: &[f64]) {
        let point: Vec<f64> = point.iter().copied().take(self.width).collect();
        // A shorter forecast is no path of the window.
        if point.len() < self.width {
            return;
        }
        let residuals = MeasuredSteps(Vec::with_capacity(self.width));
        self.open.push_back(OpenPath { origin: self.now, scale: self.scale(), point, residuals });
    }

    /// Takes in the load of the present step, `None` for a gap, and goes to the next step.
    pub fn learn(&mut self, load: Option<f64>) {
        let load = load.unwrap_or(f64::NAN);
        if let Some(newest) = self.open.back().filter(|path| path.origin == self.now && load.is_finite()) {
            let error = ((load - newest.point[0]) / self.size(newest.point[0])).abs();
            self.rescale(error);
        }
        for index in 0..self.open.len() {
            let OpenPath { point, scale, residuals, .. } = &self.open[index];
            let expected = point[residuals.0.len()];
            let residual = (load - expected) / (self.size(expected) * scale);
            self.open[index].residuals.0.push(residual);
        }
        while self.open.front().is_some_and(|path| path.residuals.0.len() == path.point.len()) {
            let path = self.open.pop_front();
            self.closed.extend(path.map(|path| (path.origin, path.residuals)));
        }
        self.now += 1;
        while self.closed.front().is_some_and(|(origin, _)| origin + KEEP_DAYS * self.day < self.now) {
            self.closed.pop_front();
        }
    }

    /// Scenarios of the load around the forecast `point` of the next steps; `None` before enough paths are complete.
    pub fn scenarios(&self, point: &[f64]) -> Option<Scenarios> {
        if self.closed.len() < ENOUGH || point.is_empty() {
            return None;
        }
        let width = self.width.min(point.len());
        let scale = self.scale();
        let factors: Vec<f64> = point[..width].iter().map(|&expected| self.size(expected) * scale).collect();
        // Neighbours are nearly equal. Those that are kept began a whole number of strides before now, so that
        // they share the place within a stride.
        let stride = (self.day / PATHS_A_DAY).max(1);
        let chosen = self.closed.iter().filter(|(origin, _)| (self.now - origin).is_multiple_of(stride));
        let (mut loads, mut weights) = (Vec::new(), Vec::new());
        for (origin, residuals) in chosen {
            let steps = point.iter().zip(&factors).zip(&residuals.0);
            loads.extend(steps.map(|((expected, factor), residual)| expected + factor * residual));
            weights.push(self.weight(self.now - origin));
        }
        Some(Scenarios::new(width, loads, weights))
    }

    /// Weight of a path that began `age` steps ago.
    fn weight(&self, age: usize) -> f64 {
        let newer = 0.5_f64.powf(age as f64 / (HALF_LIFE_DAYS * self.day as f64));
        let hour = self.day / 24;
        if hour < 4 {
            return newer;
        }
        let apart = (age % hour).min(hour - age % hour) as f64 * 60.0 / hour as f64;
        newer * (CLOCK_FLOOR + (-0.5 * (apart / CLOCK_MINUTES).powi(2)).exp())
    }

    fn size(&self, expected: f64) -> f64 {
        // The tenth of a unit keeps the size above 0, because residuals are divided by it.
        ((expected.max(0.0) + 0.1 * self.unit) / (1.1 * self.unit)).powf(SIZE_POWER)
    }

    /// Scale of errors now, relative to what is usual.
    fn scale(&self) -> f64 {
        if self.usual > 0.0 { (self.recent / self.usual).max(0.05).powf(SCALE_POWER) } else { 1.0 }
    }

    fn rescale(&mut self, error: f64) {
        let keep = |days: f64| 0.5_f64.powf(1.0 / (days * self.day as f64));
        // While few errors are known, both are their plain mean.
        self.learnt += 1.0;
        let toward =
            |mean: f64, days: f64, error: f64| mean + (1.0 - keep(days)).max(1.0 / self.learnt) * (error - mean);
        let capped = if self.usual > 0.0 { error.min(CAP * self.usual) } else { error };
        (self.recent, self.usual) = (toward(self.recent, SCALE_DAYS, capped), toward(self.usual, USUAL_DAYS, error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Statistic;

    /// Paths after forecasts of 10 for a load that rises and falls: 9, 11, 9, 11 and so on.
    fn sawtooth(steps: usize) -> ResidualPaths {
        let mut paths = ResidualPaths::new(2, 24, 10.0);
        for step in 0..steps {
            paths.issue(&[10.0, 10.0]);
            paths.learn(Some(if step % 2 == 0 { 9.0 } else { 11.0 }));
        }
        paths
    }

    #[test]
    fn scenarios_are_joint() {
        let paths = sawtooth(240);
        let scenarios = paths.scenarios(&[10.0, 10.0]).unwrap();
        // One of two steps is high in every scenario: the largest is always 11, and a step is 11 half of the time.
        let largest = scenarios.distribution(&(0..2), Statistic::Largest).unwrap();
        assert!((largest.exceeded_with(0.9) - 11.0).abs() < 1e-9);
        let each = scenarios.distribution(&(0..2), Statistic::EachStep).unwrap();
        assert!((each.exceeded_with(0.6) - 9.0).abs() < 1e-9 && (each.exceeded_with(0.4) - 11.0).abs() < 1e-9);
    }

    #[test]
    fn too_few_paths_make_no_scenario_and_a_gap_is_passed_over() {
        assert!(sawtooth(20).scenarios(&[10.0, 10.0]).is_none(), "19 paths are complete");
        let mut paths = sawtooth(240);
        paths.issue(&[10.0, 10.0]);
        paths.learn(None);
        assert!(paths.scenarios(&[10.0, 10.0]).is_some());
    }
}
