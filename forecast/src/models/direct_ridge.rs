//! Direct autoregression: one ridge regression for each step of the horizon.
//!
//! For each `h` the target `y[T+h] - y[T]` is regressed on the last lags, the mean of the last day,
//! the values around the same time one day before, those of two days and of one week before (all
//! minus `y[T]`) and the time of day. `beta = (X'X + lambda diag X'X)^-1 X'y`. Direct forecasts do
//! not compound their errors: Marcellino, Stock, Watson, "A comparison of direct and iterated
//! multistep AR methods", Journal of Econometrics 135, 2006. `X'X` grows by one row a target and
//! forgets slowly, so estimating anew costs only what came since and equals estimating on
//! everything.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::LoadHistory;
use crate::linalg;

const LAGS: usize = 12;
const AROUND: usize = 5;
const WEEK_MEAN: usize = LAGS + AROUND + 7;

/// Direct ridge regressions for each step of the horizon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DirectRidge {
    horizon: usize,
    ridge: f64,
    /// Weight of a row relative to a row one step newer.
    forget: f64,
    /// Whether there was a week to learn from when first fitted.
    weekly: bool,
    /// Index of the first target that is not yet in the sums.
    seen: usize,
    gram: Vec<f64>,
    moment: Vec<f64>,
    coefficients: Vec<f64>,
    /// Sine and cosine of the time of day.
    clock: Vec<(f64, f64)>,
}

impl DirectRidge {
    pub fn new(horizon: usize, ridge: f64, forget: f64) -> Self {
        Self {
            horizon,
            ridge,
            forget,
            weekly: false,
            seen: 0,
            gram: vec![],
            moment: vec![],
            coefficients: vec![],
            clock: vec![],
        }
    }

    fn width(&self) -> usize {
        // Lags; mean of the day; around yesterday; two days before; sine, cosine and one; with a
        // week, its neighbourhood and mean.
        (LAGS - 1) + 1 + AROUND + 1 + 3 + if self.weekly { 4 } else { 0 }
    }

    /// Steps before an origin that its features need.
    fn needs(&self, past: &LoadHistory) -> usize {
        (if self.weekly { past.week() + 2 } else { 0 }).max(2 * past.season()).max(LAGS)
    }

    /// Features of all horizons alike; `y` ends at the origin.
    fn common(&self, y: &[f64], past: &LoadHistory, row: &mut [f64]) {
        let last = y[y.len() - 1];
        for lag in 1..LAGS {
            row[lag - 1] = y[y.len() - 1 - lag] - last;
        }
        row[LAGS - 1] = past.mean_before(y.len(), past.season()) - last;
        if self.weekly {
            row[WEEK_MEAN] = past.mean_before(y.len(), past.week()) - last;
        }
    }

    /// Features of step `h`, counted from 1.
    fn specific(&self, y: &[f64], origin: usize, h: usize, past: &LoadHistory, row: &mut [f64]) {
        let (n, m, w) = (y.len(), past.season(), past.week());
        let last = y[n - 1];
        // Neighbours of the same time a day before may lie after the origin; the last value stands
        // for them.
        let at = |back: usize, ahead: usize| y[(n + ahead).saturating_sub(back + 1).min(n - 1)] - last;
        // Far steps go back as many whole days as it takes to reach values that are known.
        let days = h.div_ceil(m) * m;
        for (slot, around) in row[LAGS..LAGS + AROUND].iter_mut().enumerate() {
            *around = at(days + 2, h + slot);
        }
        row[LAGS + AROUND] = at(days + m, h);
        let (sin, cos) = self.clock[(origin + h - 1) % m];
        let base = LAGS + AROUND + 1;
        (row[base], row[base + 1], row[base + 2]) = (sin, cos, 1.0);
        if self.weekly {
            for (slot, around) in row[base + 3..base + 6].iter_mut().enumerate() {
                *around = at(w + 1, h + slot);
            }
        }
    }

    fn begin(&mut self, past: &LoadHistory) {
        // Whether there is a week is settled once, because it sets the width of the sums.
        self.weekly = past.values().len() >= 2 * past.week() && past.week() > past.season();
        let (p, m) = (self.width(), past.season());
        self.clock = (0..m).map(|phase| (std::f64::consts::TAU * phase as f64 / m as f64).sin_cos()).collect();
        self.seen = past.first();
        self.gram = vec![0.0; self.horizon * p * p];
        self.moment = vec![0.0; self.horizon * p];
        self.coefficients = vec![0.0; self.horizon * p];
    }

    /// Adds the rows with targets that are not yet in the sums.
    fn absorb(&mut self, past: &LoadHistory) {
        let y = past.values();
        let p = self.width();
        let needs = self.needs(past);
        let begin = (self.seen.max(past.first()) - past.first()).max(needs);
        // Every new value makes the rows in the sums one step older.
        let fresh = past.len().saturating_sub(self.seen);
        let decay = self.forget.powi(i32::try_from(fresh).unwrap_or(i32::MAX));
        for sum in self.gram.iter_mut().chain(&mut self.moment) {
            *sum *= decay;
        }
        let mut row = vec![0.0; p];
        // An origin counts if its farthest target is new; each distance then takes new targets only.
        for origin in begin.saturating_sub(self.horizon).max(needs)..y.len() {
            let known = &y[..origin];
            self.common(known, past, &mut row);
            for h in 1..=self.horizon {
                let target = origin + h - 1;
                if target >= y.len() {
                    break;
                }
                self.specific(known, past.first() + origin, h, past, &mut row);
                // The target of this distance is in the sums already; only farther targets are new.
                if target + past.first() < self.seen {
                    continue;
                }
                let age = i32::try_from(y.len() - 1 - target).unwrap_or(i32::MAX);
                let weight = self.forget.powi(age);
                let gram = &mut self.gram[(h - 1) * p * p..h * p * p];
                let moment = &mut self.moment[(h - 1) * p..h * p];
                let y = y[target] - known[origin - 1];
                for i in 0..p {
                    let x = weight * row[i];
                    // The solver reads the lower triangle alone.
                    for (sum, other) in gram[i * p..i * p + i + 1].iter_mut().zip(&row) {
                        *sum += x * other;
                    }
                    moment[i] += x * y;
                }
            }
        }
        self.seen = past.len();
    }

    /// The coefficients of what has been added.
    fn solve(&mut self) {
        let p = self.width();
        let mut a = vec![0.0; p * p];
        for h in 0..self.horizon {
            a.copy_from_slice(&self.gram[h * p * p..(h + 1) * p * p]);
            for i in 0..p {
                // Relative to the diagonal, so that the penalty does not depend on the unit of the
                // load.
                a[i * p + i] *= 1.0 + self.ridge;
            }
            let b = &mut self.coefficients[h * p..(h + 1) * p];
            b.copy_from_slice(&self.moment[h * p..(h + 1) * p]);
            linalg::solve_spd(&mut a, p, b, 1);
        }
    }
}

impl Path for DirectRidge {
    fn refit(&mut self, past: &LoadHistory) {
        if self.gram.is_empty() {
            self.begin(past);
        }
        self.absorb(past);
        self.solve();
    }

    fn push(&mut self, _: &LoadHistory) {}

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        let y = past.values();
        if self.coefficients.is_empty() || y.len() < self.needs(past) {
            return out.fill(past.lag(1));
        }
        let p = self.width();
        let mut row = vec![0.0; p];
        self.common(y, past, &mut row);
        for (index, out) in out.iter_mut().enumerate() {
            let h = (index + 1).min(self.horizon);
            self.specific(y, past.len(), h, past, &mut row);
            *out = y[y.len() - 1] + linalg::dot(&row, &self.coefficients[(h - 1) * p..h * p]);
        }
    }
}
