//! NLinear in closed form: `y[T+h] = y[T] + W (x - y[T]) + c` with `x` the last `L` values.
//!
//! Zeng, Chen, Zhang, Xu, "Are transformers effective for time series forecasting?", AAAI 2023.
//! Ridge regression takes the place of their training loop: `W = (X'X + lambda I)^-1 X'Y`. All sums
//! come from the Gram matrix of sliding windows of `L + H` values. The penalty is chosen once, at
//! the first fit.

use serde::{Deserialize, Serialize};

use super::Path;
use super::window_gram::WindowGram;
use crate::history::LoadHistory;
use crate::linalg;

/// Penalties that are tried on the newest fifth of the known values.
const RIDGES: [f64; 5] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// Closed-form NLinear as a model of the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NLinear {
    lookback: usize,
    horizon: usize,
    /// Penalty relative to the mean square of the inputs, chosen at the first fit.
    ridge: Option<f64>,
    map: Option<LinearMap>,
}

impl NLinear {
    pub fn new(lookback: usize, horizon: usize) -> Self {
        Self { lookback, horizon, ridge: None, map: None }
    }

    /// Maps of `y`, one for each of `ridges`, which are relative to the mean square of the inputs.
    fn maps(&self, y: &[f64], ridges: &[f64]) -> Vec<LinearMap> {
        LinearMap::fit(&[y], self.lookback, self.horizon, |scale| ridges.iter().map(|ridge| ridge * scale).collect())
    }

    /// Penalty of the map that has the least absolute error on the newest fifth, when fitted on the
    /// older values.
    fn least_error(&self, y: &[f64]) -> f64 {
        let Self { lookback, horizon, .. } = *self;
        let train = y.len() - (y.len() / 5).max(horizon);
        let mut out = vec![0.0; horizon];
        let mut best = (f64::INFINITY, RIDGES[3]);
        for (map, ridge) in self.maps(&y[..train], &RIDGES).iter().zip(RIDGES) {
            let mut error = 0.0;
            // About 24 origins a horizon tell penalties apart; every origin would cost more than
            // the fits.
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

impl Path for NLinear {
    fn refit(&mut self, past: &LoadHistory) {
        let y = past.values();
        // Fewer values leave no window for training beside one for the choice of the penalty.
        if y.len() < self.lookback + 2 * self.horizon {
            return;
        }
        let ridge = self.ridge.unwrap_or_else(|| self.least_error(y));
        self.ridge = Some(ridge);
        if let Some(map) = self.maps(y, &[ridge]).pop() {
            self.map = Some(map);
        }
    }

    fn push(&mut self, _: &LoadHistory) {}

    /// Writes the path; beyond the horizon, the last step is repeated.
    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
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

/// A linear map from the last values to the next ones, both relative to the last value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearMap {
    lookback: usize,
    horizon: usize,
    /// One row of `horizon` an input; the row of the last value, which is 0 relative to itself,
    /// holds the constants.
    weights: Vec<f64>,
}

impl LinearMap {
    /// Maps shared by all `channels`, one for each penalty that `penalties` makes of the mean
    /// square of an input summed over windows; none where no window fits.
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
        // Products relative to the last value follow from the plain products; no pass over the data
        // is needed.
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
