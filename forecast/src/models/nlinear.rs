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
    /// `lookback + 1` rows (the last one is the constant) of `horizon`.
    weights: Vec<f64>,
}

impl NLinear {
    pub fn new(lookback: usize, horizon: usize) -> Self {
        Self { lookback, horizon, ridge: None, weights: vec![] }
    }

    /// Weights from windows that lie in `y`.
    fn solve(&self, y: &[f64], ridges: &[f64]) -> Vec<Vec<f64>> {
        let (l, h) = (self.lookback, self.horizon);
        let Some(gram) = WindowGram::new(y, l + h) else { return vec![] };
        let n = gram.windows as f64;
        // Inputs are lags 0..l-1 minus the last one, which is itself no input; then the constant.
        let last = l - 1;
        let p = l;
        let centred = |i: usize, j: usize| {
            gram.at(i, j) - gram.at(i, last) - gram.at(last, j) + gram.at(last, last)
        };
        let mut a = vec![0.0; p * p];
        for i in 0..last {
            for j in 0..=i {
                a[i * p + j] = centred(i, j);
            }
            a[last * p + i] = gram.sum(i) - gram.sum(last);
        }
        a[last * p + last] = n;
        let mut b = vec![0.0; p * h];
        for step in 0..h {
            for i in 0..last {
                b[i * h + step] = centred(i, l + step);
            }
            b[last * h + step] = gram.sum(l + step) - gram.sum(last);
        }
        let scale = (0..last).map(|i| a[i * p + i]).sum::<f64>() / last.max(1) as f64;
        let solve = |ridge: &f64| {
            let mut a = a.clone();
            let mut b = b.clone();
            for i in 0..last {
                a[i * p + i] += ridge * scale;
            }
            linalg::solve_spd(&mut a, p, &mut b, h);
            b
        };
        ridges.iter().map(solve).collect()
    }

    fn apply(&self, weights: &[f64], x: &[f64], out: &mut [f64]) {
        let last = x[x.len() - 1];
        let h = self.horizon;
        let constant = &weights[(self.lookback - 1) * h..];
        for (out, c) in out.iter_mut().zip(constant) {
            *out = last + c;
        }
        for (x, row) in x[..x.len() - 1].iter().zip(weights.chunks_exact(h)) {
            let x = x - last;
            for (out, w) in out.iter_mut().zip(row) {
                *out += w * x;
            }
        }
    }

    fn choose(&self, y: &[f64]) -> f64 {
        let train = y.len() - (y.len() / 5).max(self.horizon);
        let candidates = self.solve(&y[..train], &RIDGES);
        let mut out = vec![0.0; self.horizon];
        let mut best = (f64::INFINITY, RIDGES[3]);
        for (weights, ridge) in candidates.iter().zip(RIDGES) {
            let mut error = 0.0;
            for origin in (train..(y.len() + 1).saturating_sub(self.horizon)).step_by((self.horizon / 24).max(1)) {
                self.apply(weights, &y[origin - self.lookback..origin], &mut out);
                error += out.iter().zip(&y[origin..]).map(|(f, y)| (y - f).abs()).sum::<f64>();
            }
            if error < best.0 {
                best = (error, ridge);
            }
        }
        best.1
    }
}

impl Path for NLinear {
    fn refit(&mut self, past: &History) {
        let y = past.values();
        if y.len() < self.lookback + 2 * self.horizon {
            return;
        }
        let ridge = self.ridge.unwrap_or_else(|| self.choose(y));
        self.ridge = Some(ridge);
        if let Some(weights) = self.solve(y, &[ridge]).pop() {
            self.weights = weights;
        }
    }

    fn push(&mut self, _: &History) {}

    fn path(&self, past: &History, out: &mut [f64]) {
        let y = past.values();
        if self.weights.is_empty() || y.len() < self.lookback {
            return out.fill(past.lag(1));
        }
        self.apply(&self.weights, &y[y.len() - self.lookback..], out);
    }
}

/// `sum over windows of x_i x_j`, for all windows of `width` values.
struct WindowGram {
    width: usize,
    windows: usize,
    products: Vec<f64>,
    sums: Vec<f64>,
}

impl WindowGram {
    fn new(y: &[f64], width: usize) -> Option<Self> {
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

    fn at(&self, i: usize, j: usize) -> f64 {
        let (high, low) = if i > j { (i, j) } else { (j, i) };
        self.products[high * self.width + low]
    }

    fn sum(&self, i: usize) -> f64 {
        self.sums[i]
    }
}
