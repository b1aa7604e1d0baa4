//! Exponentially weighted mean: `l' = l + alpha (y - l)`, and the path is `l`.
//!
//! Brown, "Exponential smoothing for predicting demand", 1956; alpha of the least squared one-step errors on a grid, since the sum is flat around its minimum.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::History;

/// Weights of the newest value that are tried.
const ALPHAS: [f64; 9] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9];
/// Weeks of values that alpha is chosen on.
const WINDOW_WEEKS: usize = 4;

/// The mean and the weight of the next value in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ewma {
    alpha: f64,
    level: Option<f64>,
}

impl Ewma {
    pub fn new() -> Self {
        Self { alpha: ALPHAS[4], level: None }
    }
}

impl Path for Ewma {
    fn refit(&mut self, past: &History) {
        let y = past.values();
        let y = &y[y.len().saturating_sub(WINDOW_WEEKS * past.week())..];
        if y.is_empty() {
            return;
        }
        let start = &y[..past.season().min(y.len())];
        let first = start.iter().sum::<f64>() / start.len() as f64;
        let mut states = ALPHAS.map(|alpha| (0.0, alpha, first));
        for y in y {
            for (squares, alpha, level) in &mut states {
                let error = y - *level;
                *squares += error * error;
                *level += *alpha * error;
            }
        }
        if let Some((_, alpha, level)) = states.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)) {
            (self.alpha, self.level) = (alpha, Some(level));
        }
    }

    fn push(&mut self, past: &History) {
        if let Some(level) = &mut self.level {
            *level += self.alpha * (past.lag(1) - *level);
        }
    }

    fn path(&self, past: &History, out: &mut [f64]) {
        out.fill(self.level.unwrap_or_else(|| past.lag(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_pulled_by_its_weight_and_a_wandering_load_is_followed() {
        let mut past = History::new(4, 28, 500);
        let steady = |index: usize| if index.is_multiple_of(2) { 9.0 } else { 11.0 };
        (0..200).for_each(|index| {
            past.push(steady(index));
        });
        let mut model = Ewma::new();
        model.refit(&past);
        assert_eq!(model.alpha, ALPHAS[0], "noise around a mean is averaged away");
        let before = model.level.unwrap();
        past.push(20.0);
        model.push(&past);
        assert_eq!(model.level, Some(before + 0.01 * (20.0 - before)));
        (0..200).for_each(|index| {
            past.push(f64::from(index));
        });
        model.refit(&past);
        assert_eq!(model.alpha, ALPHAS[8], "a ramp is followed as closely as can be");
    }
}
