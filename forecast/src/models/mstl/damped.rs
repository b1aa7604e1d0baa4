//! Exponential smoothing with a damped trend, of what has no season.
//!
//! With `e = y - (l + phi b)`: `l' = l + phi b + alpha e`, `b' = phi b + alpha beta e`; the path is `l + b (phi + ... + phi^h)`. Gardner and McKenzie, "Forecasting trends in
//! time series", Management Science 31, 1985; Hyndman, Koehler, Ord, Snyder 2008, chapter 2.

use serde::{Deserialize, Serialize};

use crate::nelder_mead;

/// Level, trend and the parameters alpha, beta, phi.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Damped {
    level: f64,
    trend: f64,
    parameters: [f64; 3],
}

impl Damped {
    /// With the parameters of the least squared one-step errors on `y`, which is not empty, and the state at its end.
    pub fn fit(y: &[f64]) -> Self {
        let start = |point: &[f64; 3]| Self { level: y[0], trend: 0.0, parameters: ranges(point) };
        let cost = |point: &[f64; 3]| {
            let mut state = start(point);
            let sum: f64 = y.iter().map(|&y| state.step(y).powi(2)).sum();
            (sum + f64::MIN_POSITIVE).ln()
        };
        let (point, _) = nelder_mead::minimise(cost, [0.0, -3.0, 1.0], 1.0, 80);
        let mut state = start(&point);
        for &y in y {
            state.step(y);
        }
        state
    }

    /// Takes in the next value and gives its error.
    pub fn step(&mut self, y: f64) -> f64 {
        let [alpha, beta, phi] = self.parameters;
        let trend = phi * self.trend;
        let error = y - self.level - trend;
        self.level += trend + alpha * error;
        self.trend = trend + alpha * beta * error;
        error
    }

    /// Adds the path to `out`.
    pub fn add_path(&self, out: &mut [f64]) {
        let (mut level, mut trend) = (self.level, self.trend);
        for out in out {
            trend *= self.parameters[2];
            level += trend;
            *out += level;
        }
    }
}

/// From the real line to alpha and beta in (0, 1) and phi in (0.8, 0.98), the range of Hyndman and others.
fn ranges(point: &[f64; 3]) -> [f64; 3] {
    let logistic = |x: f64| 1.0 / (1.0 + (-x.clamp(-30.0, 30.0)).exp());
    [logistic(point[0]), logistic(point[1]), 0.8 + 0.18 * logistic(point[2])]
}
