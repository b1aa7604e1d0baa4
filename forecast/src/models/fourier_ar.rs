//! Fourier series with autoregressive errors.
//!
//! `y[t] = a0 + sum_k (a_k sin + b_k cos)(2 pi k t / m) + r[t]` by exponentially forgetting least
//! squares, `r` an AR(12) by ridge, forecast recursively. Dynamic harmonic regression: Hyndman and
//! Athanasopoulos, "Forecasting: Principles and Practice" (3rd ed.), section 10.5; the sums of the
//! regression grow by one row a step (recursive least squares with forgetting: Haykin, "Adaptive
//! Filter Theory", chapter 10), so nothing is ever fitted again in full.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::LoadHistory;
use crate::linalg;

const LAGS: usize = 12;

/// Harmonic regression on one season with AR errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FourierAr {
    season: usize,
    pairs: usize,
    forget: f64,
    gram: Vec<f64>,
    moment: Vec<f64>,
    /// Autoregression of the residuals.
    ar: Vec<f64>,
    seen: usize,
    /// Sine and cosine of the time of day.
    clock: Vec<(f64, f64)>,
}

impl FourierAr {
    /// Model with `pairs` pairs of sine and cosine on a season of `season` steps; a value counts
    /// half after `half_life` steps.
    pub fn new(season: usize, pairs: usize, half_life: f64) -> Self {
        let pairs = pairs.min(season / 2);
        let p = 2 * pairs + 1;
        let clock = (0..season).map(|phase| (TAU * phase as f64 / season as f64).sin_cos()).collect();
        let forget = 0.5_f64.powf(1.0 / half_life);
        Self { season, pairs, forget, gram: vec![0.0; p * p], moment: vec![0.0; p], ar: vec![], seen: 0, clock }
    }

    fn row(&self, index: usize, row: &mut [f64]) {
        row[0] = 1.0;
        let (sin, cos) = self.clock[index % self.season];
        // Angle addition gives the harmonics of the clock without another call of sin and cos.
        let (mut s, mut c) = (0.0, 1.0);
        for pair in 0..self.pairs {
            (s, c) = (s * cos + c * sin, c * cos - s * sin);
            (row[1 + 2 * pair], row[2 + 2 * pair]) = (s, c);
        }
    }

    fn add(&mut self, index: usize, y: f64, row: &mut [f64]) {
        self.row(index, row);
        let p = row.len();
        for i in 0..p {
            // Only the lower triangle: the solver reads nothing else, and it is half of the work.
            for (sum, x) in self.gram[i * p..i * p + i + 1].iter_mut().zip(&*row) {
                *sum = self.forget * *sum + row[i] * x;
            }
            self.moment[i] = self.forget * self.moment[i] + row[i] * y;
        }
    }

    fn coefficients(&self) -> Vec<f64> {
        let p = 2 * self.pairs + 1;
        let mut a = self.gram.clone();
        for i in 0..p {
            // A ridge of half an observation keeps the system positive definite before a whole
            // season is known.
            a[i * p + i] += 0.5;
        }
        let mut b = self.moment.clone();
        linalg::solve_spd(&mut a, p, &mut b, 1);
        b
    }
}

impl Path for FourierAr {
    fn refit(&mut self, past: &LoadHistory) {
        let y = past.values();
        let mut row = vec![0.0; 2 * self.pairs + 1];
        // After the first fit `push` adds every value, so the sums are never built again.
        if self.seen == 0 {
            for (offset, &y) in y.iter().enumerate() {
                self.add(past.first() + offset, y, &mut row);
            }
            self.seen = past.len();
        }
        let coefficients = self.coefficients();
        // Two weeks of residuals estimate twelve coefficients well, and older ones belong to old
        // seasons.
        let window = y.len().min(self.season * 14.min(self.season)).min(past.week() * 2);
        let from = y.len() - window;
        let residuals: Vec<f64> = (from..y.len())
            .map(|index| {
                self.row(past.first() + index, &mut row);
                y[index] - linalg::dot(&row, &coefficients)
            })
            .collect();
        let mut gram = [0.0; LAGS * LAGS];
        let mut moment = [0.0; LAGS];
        for t in LAGS..residuals.len() {
            for i in 0..LAGS {
                for j in 0..=i {
                    gram[i * LAGS + j] += residuals[t - 1 - i] * residuals[t - 1 - j];
                }
                moment[i] += residuals[t - 1 - i] * residuals[t];
            }
        }
        for i in 0..LAGS {
            // A ridge of 0.1 %, because residuals of smooth loads are nearly collinear.
            gram[i * LAGS + i] *= 1.001;
        }
        linalg::solve_spd(&mut gram, LAGS, &mut moment, 1);
        self.ar = moment.to_vec();
    }

    fn push(&mut self, past: &LoadHistory) {
        if self.seen > 0 {
            let mut row = vec![0.0; 2 * self.pairs + 1];
            self.add(past.len() - 1, past.lag(1), &mut row);
            self.seen = past.len();
        }
    }

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        if self.seen == 0 || past.values().len() < LAGS {
            return out.fill(past.lag(1));
        }
        let coefficients = self.coefficients();
        let mut row = vec![0.0; coefficients.len()];
        let mut residuals = [0.0; LAGS];
        for lag in 1..=LAGS {
            self.row(past.len() - lag, &mut row);
            residuals[lag - 1] = past.lag(lag) - linalg::dot(&row, &coefficients);
        }
        // The fitted AR may be explosive; a forecast residual never exceeds the known ones.
        let bound = residuals.iter().fold(0.0_f64, |bound, r| bound.max(r.abs()));
        for (step, out) in out.iter_mut().enumerate() {
            let next = linalg::dot(&residuals, &self.ar).clamp(-bound, bound);
            residuals.copy_within(..LAGS - 1, 1);
            residuals[0] = next;
            self.row(past.len() + step, &mut row);
            *out = linalg::dot(&row, &coefficients) + next;
        }
    }
}
