//! NLinear in closed form: `y[T+h] = y[T] + W (x - y[T]) + c` with `x` the last `L` values.
//!
//! Zeng, Chen, Zhang, Xu, "Are transformers effective for time series forecasting?", AAAI 2023; here by ridge regression, which needs no training loop:
//! `W = (X'X + lambda I)^-1 X'Y`. All sums come from one Gram matrix of sliding windows of `L + H` values, in which a diagonal differs from its neighbour
//! only at its two ends, so it costs `O(n (L + H))` and not `O(n (L + H)^2)`.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::History;
use crate::linalg;

/// Penalties tried on the newest fifth of what is known.
const RIDGES: [f64; 5] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// Closed-form NLinear.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NLinear {
    lookback: usize,
    horizon: usize,
    /// Penalty relative to the mean square of the inputs; chosen at the first fit.
    ridge: Option<f64>,
    map: Option<LinearMap>,
}

impl NLinear {
    pub fn new(lookback: usize, horizon: usize) -> Self {
        Self { lookback, horizon, ridge: None, map: None }
    }

    fn solve(&self, y: &[f64], ridges: &[f64]) -> Vec<LinearMap> {
        LinearMap::fit(&[y], self.lookback, self.horizon, |scale| ridges.iter().map(|ridge| ridge * scale).collect())
    }
}

/// Of the penalties tried, the one whose map, fitted on the older values, has the least absolute error on the newest fifth.
pub(super) fn least_error<M>(
    y: &[f64],
    lookback: usize,
    horizon: usize,
    solve: impl FnOnce(&[f64], &[f64]) -> Vec<M>,
    apply: impl Fn(&M, &[f64], &mut [f64]),
) -> f64 {
    let train = y.len() - (y.len() / 5).max(horizon);
    let mut out = vec![0.0; horizon];
    let mut best = (f64::INFINITY, RIDGES[3]);
    for (map, ridge) in solve(&y[..train], &RIDGES).iter().zip(RIDGES) {
        let mut error = 0.0;
        for origin in (train..(y.len() + 1).saturating_sub(horizon)).step_by((horizon / 24).max(1)) {
            apply(map, &y[origin - lookback..origin], &mut out);
            error += out.iter().zip(&y[origin..]).map(|(f, y)| (y - f).abs()).sum::<f64>();
        }
        if error < best.0 {
            best = (error, ridge);
        }
    }
    best.1
}

impl Path for NLinear {
    fn refit(&mut self, past: &History) {
        let y = past.values();
        if y.len() < self.lookback + 2 * self.horizon {
            return;
        }
        let ridge = self.ridge.unwrap_or_else(|| {
            least_error(y, self.lookback, self.horizon, |y, ridges| self.solve(y, ridges), LinearMap::apply)
        });
        self.ridge = Some(ridge);
        if let Some(map) = self.solve(y, &[ridge]).pop() {
            self.map = Some(map);
        }
    }

    fn push(&mut self, _: &History) {}

    fn path(&self, past: &History, out: &mut [f64]) {
        let y = past.values();
        match &self.map {
            Some(map) if y.len() >= self.lookback => map.apply(&y[y.len() - self.lookback..], out),
            _ => out.fill(past.lag(1)),
        }
    }
}

/// A linear map from the last values to the next ones, both relative to the last value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearMap {
    lookback: usize,
    horizon: usize,
    /// One row of `horizon` an input; the row of the last value, which is 0 relative to itself, holds the constants.
    weights: Vec<f64>,
}

impl LinearMap {
    /// Maps shared by all `channels`, one for each penalty that `penalties` makes of the mean square of an input summed over windows; none where no window fits.
    pub fn fit(
        channels: &[&[f64]],
        lookback: usize,
        horizon: usize,
        penalties: impl FnOnce(f64) -> Vec<f64>,
    ) -> Vec<Self> {
        let (l, h) = (lookback.max(1), horizon);
        let mut sums: Option<WindowGram> = None;
        for gram in channels.iter().filter_map(|y| WindowGram::new(y, l + h)) {
            match &mut sums {
                Some(sums) => sums.add(&gram),
                None => sums = Some(gram),
            }
        }
        let Some(gram) = sums else { return vec![] };
        let last = l - 1;
        let centred = |i: usize, j: usize| gram.at(i, j) - gram.at(i, last) - gram.at(last, j) + gram.at(last, last);
        let mut a = vec![0.0; l * l];
        let mut b = vec![0.0; l * h];
        for i in 0..last {
            for j in 0..=i {
                a[i * l + j] = centred(i, j);
            }
            a[last * l + i] = gram.sums[i] - gram.sums[last];
            for step in 0..h {
                b[i * h + step] = centred(i, l + step);
            }
        }
        a[last * l + last] = gram.windows as f64;
        for step in 0..h {
            b[last * h + step] = gram.sums[l + step] - gram.sums[last];
        }
        let scale = (0..last).map(|i| a[i * l + i]).sum::<f64>() / last.max(1) as f64;
        let solve = |penalty: f64| {
            let (mut a, mut weights) = (a.clone(), b.clone());
            for i in 0..l {
                a[i * l + i] += penalty;
            }
            linalg::solve_spd(&mut a, l, &mut weights, h);
            Self { lookback: l, horizon: h, weights }
        };
        penalties(scale).into_iter().map(solve).collect()
    }

    /// The values after `x`, which is `lookback` long.
    ///
    /// # Panics
    /// When `x` has another length.
    pub fn apply(&self, x: &[f64], out: &mut [f64]) {
        assert_eq!(x.len(), self.lookback, "a map of {} values", self.lookback);
        let last = x[x.len() - 1];
        let (rows, constants) = self.weights.split_at((self.lookback - 1) * self.horizon);
        for (out, constant) in out.iter_mut().zip(constants) {
            *out = last + constant;
        }
        for (x, row) in x.iter().zip(rows.chunks_exact(self.horizon)) {
            let x = x - last;
            for (out, weight) in out.iter_mut().zip(row) {
                *out += weight * x;
            }
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

    fn add(&mut self, other: &Self) {
        self.windows += other.windows;
        for (sum, other) in self.products.iter_mut().zip(&other.products) {
            *sum += other;
        }
        for (sum, other) in self.sums.iter_mut().zip(&other.sums) {
            *sum += other;
        }
    }
}
