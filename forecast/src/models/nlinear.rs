//! NLinear in closed form: `y[T+h] = y[T] + W (x - y[T]) + c` with `x` the last `L` values.
//!
//! Zeng, Chen, Zhang, Xu, "Are transformers effective for time series forecasting?", AAAI 2023; here by ridge regression, which needs no training loop:
//! `W = (X'X + lambda I)^-1 X'Y`. All sums come from one Gram matrix of sliding windows of `L + H` values, in which a diagonal differs from its neighbour
//! only at its two ends, so it costs `O(n (L + H))` and not `O(n (L + H)^2)`.

use serde::{Deserialize, Serialize};

use super::linear::{Linear, Map, WindowGram};
use crate::linalg;

/// Closed-form NLinear.
pub(crate) type NLinear = Linear<LinearMap>;

impl Map for LinearMap {
    fn solve(y: &[f64], lookback: usize, horizon: usize, ridges: &[f64]) -> Vec<Self> {
        LinearMap::fit(&[y], lookback, horizon, |scale| ridges.iter().map(|ridge| ridge * scale).collect())
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        LinearMap::apply(self, x, out);
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
