//! Damped additive Holt-Winters.
//!
//! With `e = y - (l + phi b + s[t-m])`: `l' = l + phi b + alpha e`, `b' = phi b + alpha beta e`,
//! `s' = s + gamma (1 - alpha) e`; the path is `l + b (phi + ... + phi^h) + s`. Hyndman, Koehler,
//! Ord, Snyder, "Forecasting with Exponential Smoothing", 2008, chapter 2 (damped trend, additive
//! season). The parameters minimise the sum of one-step errors by Nelder-Mead from three starts,
//! through logistic maps into their ranges.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::LoadHistory;
use crate::nelder_mead;

/// Damped Holt-Winters over one season.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HoltWinters {
    season: usize,
    parameters: [f64; 4],
    state: Option<SmoothingState>,
    /// Best point of the last search, from which the next search starts.
    start: Option<[f64; 4]>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SmoothingState {
    level: f64,
    trend: f64,
    /// Season by phase, and the phase of the next value.
    shape: Vec<f64>,
    phase: usize,
}

const STARTS: [[f64; 4]; 3] = [[-1.0, -3.0, -1.0, 1.0], [1.0, -4.0, -2.0, 2.0], [-3.0, -4.0, 0.0, 3.0]];
/// Days of values that parameters are estimated on.
const WINDOW_SEASONS: usize = 28;

impl HoltWinters {
    pub fn new(season: usize) -> Self {
        Self { season: season.max(1), parameters: [0.3, 0.01, 0.3, 0.95], state: None, start: None }
    }
}

impl Path for HoltWinters {
    fn refit(&mut self, past: &LoadHistory) {
        let y = past.values();
        let y = &y[y.len().saturating_sub(WINDOW_SEASONS * self.season)..];
        if y.len() <= self.season {
            return;
        }
        let first = past.len() - y.len();
        let start = SmoothingState::start(y, self.season, first);
        let mut scratch = start.clone();
        let mut cost = |point: &[f64; 4]| {
            scratch.clone_from(&start);
            // The first season is not scored, because the initial shape was taken from it.
            scratch.run(y, &ranges(point), self.season)
        };
        // From a former optimum a short search suffices; without one, three starts avoid a local
        // minimum.
        let best = match self.start {
            Some(point) => nelder_mead::minimise(&mut cost, point, 0.3, 60),
            None => STARTS
                .map(|point| nelder_mead::minimise(&mut cost, point, 1.0, 150))
                .into_iter()
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .unwrap_or((STARTS[0], 0.0)),
        };
        self.start = Some(best.0);
        self.parameters = ranges(&best.0);
        let mut state = start;
        state.run(y, &self.parameters, 0);
        self.state = Some(state);
    }

    fn push(&mut self, past: &LoadHistory) {
        let y = past.lag(1);
        if let Some(state) = &mut self.state {
            state.step(y, &self.parameters);
        }
    }

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        let Some(state) = &self.state else { return out.fill(past.lag(1)) };
        let (mut level, mut trend, mut phase) = (state.level, state.trend, state.phase);
        for out in out {
            trend *= self.parameters[3];
            level += trend;
            *out = level + state.shape[phase];
            phase = (phase + 1) % self.season;
        }
    }
}

impl SmoothingState {
    /// Level and shape of the first days: the mean, and the mean deviation of each phase.
    fn start(y: &[f64], season: usize, first: usize) -> Self {
        let days = (y.len() / season).min(3);
        let level = y[..days * season].iter().sum::<f64>() / (days * season) as f64;
        let mut shape = vec![0.0; season];
        for (index, y) in y[..days * season].iter().enumerate() {
            shape[(first + index) % season] += (y - level) / days as f64;
        }
        Self { level, trend: 0.0, shape, phase: first % season }
    }

    fn step(&mut self, y: f64, &[alpha, beta, gamma, phi]: &[f64; 4]) -> f64 {
        let trend = phi * self.trend;
        let error = y - (self.level + trend + self.shape[self.phase]);
        self.level += trend + alpha * error;
        self.trend = trend + alpha * beta * error;
        // The level has taken the share alpha of the error, so the season learns from the rest
        // only.
        self.shape[self.phase] += gamma * (1.0 - alpha) * error;
        self.phase += 1;
        if self.phase == self.shape.len() {
            self.phase = 0;
        }
        error
    }

    /// Log of the sum of squared one-step errors after the first `skip`.
    fn run(&mut self, y: &[f64], parameters: &[f64; 4], skip: usize) -> f64 {
        let mut sum = 0.0;
        for (index, &y) in y.iter().enumerate() {
            let error = self.step(y, parameters);
            if index >= skip {
                sum += error * error;
            }
        }
        // A perfect fit has a very small cost, and not minus infinity.
        (sum + f64::MIN_POSITIVE).ln()
    }
}

/// Map from the real line to alpha, beta, gamma in (0, 1) and phi in (0.8, 1).
fn ranges(point: &[f64; 4]) -> [f64; 4] {
    let logistic = |x: f64| 1.0 / (1.0 + (-x.clamp(-30.0, 30.0)).exp());
    [logistic(point[0]), logistic(point[1]), logistic(point[2]), 0.8 + 0.2 * logistic(point[3])]
}
