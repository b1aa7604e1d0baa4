//! What the closed-form linear models share: a map from the last `L` values to the next `H`, whose penalty is chosen once and whose sums are made anew at a refit.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::History;
use crate::linalg;

/// Penalties tried on the newest fifth of what is known.
const RIDGES: [f64; 5] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// A map that ridge regression finds.
pub(crate) trait Map: Sized {
    /// The maps of `y` for each of `ridges`, penalties relative to the mean square of the inputs; none where no window fits.
    fn solve(y: &[f64], lookback: usize, horizon: usize, ridges: &[f64]) -> Vec<Self>;

    /// The values after `x`, which is as long as the lookback; no more of them than the horizon.
    fn apply(&self, x: &[f64], out: &mut [f64]);
}

/// A linear model of the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Linear<M> {
    lookback: usize,
    horizon: usize,
    /// Penalty relative to the mean square of the inputs; chosen at the first fit.
    ridge: Option<f64>,
    map: Option<M>,
}

impl<M: Map> Linear<M> {
    pub fn new(lookback: usize, horizon: usize) -> Self {
        Self { lookback, horizon, ridge: None, map: None }
    }

    /// Of the penalties tried, the one whose map, fitted on the older values, has the least absolute error on the newest fifth.
    fn least_error(&self, y: &[f64]) -> f64 {
        let Self { lookback, horizon, .. } = *self;
        let train = y.len() - (y.len() / 5).max(horizon);
        let mut out = vec![0.0; horizon];
        let mut best = (f64::INFINITY, RIDGES[3]);
        for (map, ridge) in M::solve(&y[..train], lookback, horizon, &RIDGES).iter().zip(RIDGES) {
            let mut error = 0.0;
            for origin in (train..(y.len() + 1).saturating_sub(horizon)).step_by((horizon / 24).max(1)) {
                map.apply(&y[origin - lookback..origin], &mut out);
                error += out.iter().zip(&y[origin..]).map(|(f, y)| (y - f).abs()).sum::<f64>();
            }
            if error < best.0 {
                best = (error, ridge);
            }
        }
        best.1
    }
}

impl<M: Map> Path for Linear<M> {
    fn refit(&mut self, past: &History) {
        let y = past.values();
        if y.len() < self.lookback + 2 * self.horizon {
            return;
        }
        let ridge = self.ridge.unwrap_or_else(|| self.least_error(y));
        self.ridge = Some(ridge);
        if let Some(map) = M::solve(y, self.lookback, self.horizon, &[ridge]).pop() {
            self.map = Some(map);
        }
    }

    fn push(&mut self, _: &History) {}

    /// Beyond the horizon its last step is repeated.
    fn path(&self, past: &History, out: &mut [f64]) {
        let y = past.values();
        match &self.map {
            Some(map) if y.len() >= self.lookback => {
                let known = out.len().min(self.horizon);
                let (near, far) = out.split_at_mut(known);
                map.apply(&y[y.len() - self.lookback..], near);
                far.fill(near.last().copied().unwrap_or(0.0));
            }
            _ => out.fill(past.lag(1)),
        }
    }
}

/// `sum over windows of x_i x_j`, for all windows of `width` values.
pub(super) struct WindowGram {
    width: usize,
    pub windows: usize,
    products: Vec<f64>,
    /// `sum over windows of x_i`.
    pub sums: Vec<f64>,
}

impl WindowGram {
    pub fn new(y: &[f64], width: usize) -> Option<Self> {
        let windows = (y.len() + 1).checked_sub(width).filter(|&windows| windows > 0)?;
        let mut products = vec![0.0; width * width];
        let mut sums = vec![0.0; width];
        for lag in 0..width {
            // Along the diagonal of `lag`, one product leaves at the old end and one enters at the new one.
            let mut sum = linalg::dot(&y[lag..lag + windows], &y[..windows]);
            products[lag * width] = sum;
            for i in 1..width - lag {
                sum += y[i + windows - 1] * y[i + lag + windows - 1] - y[i - 1] * y[i + lag - 1];
                products[(i + lag) * width + i] = sum;
            }
        }
        let mut sum: f64 = y[..windows].iter().sum();
        sums[0] = sum;
        for i in 1..width {
            sum += y[i + windows - 1] - y[i - 1];
            sums[i] = sum;
        }
        Some(Self { width, windows, products, sums })
    }

    pub fn at(&self, i: usize, j: usize) -> f64 {
        let (high, low) = if i > j { (i, j) } else { (j, i) };
        self.products[high * self.width + low]
    }

    pub fn add(&mut self, other: &Self) {
        self.windows += other.windows;
        for (sum, other) in self.products.iter_mut().zip(&other.products) {
            *sum += other;
        }
        for (sum, other) in self.sums.iter_mut().zip(&other.sums) {
            *sum += other;
        }
    }
}
