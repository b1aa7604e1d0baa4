//! Least squares on sums of products, which rounds add up.

use goodput_forecast::linalg::solve_spd;
use serde::{Deserialize, Serialize};

/// Sums of products of samples: of a constant, the features and the target, each with each. Together they hold all
/// that a linear fit by least squares asks of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Products {
    features: usize,
    /// Symmetric matrix of `features + 2` rows: the constant, the features, the target.
    sums: Vec<f64>,
}

/// Linear fit: the target is about the intercept and the weighted sum of the features.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvantageFit {
    /// Value where all features are zero.
    pub intercept: f64,
    /// Weights of the features; zero for a feature that does not vary.
    pub weights: Vec<f64>,
    /// Share of the variance of the target that the fit explains.
    pub explained: f64,
}

impl Products {
    /// No samples, of so many features.
    pub fn new(features: usize) -> Self {
        let size = features + 2;
        Self { features, sums: vec![0.0; size * size] }
    }

    /// Whether the sums are about so many features.
    pub fn hold(&self, features: usize) -> bool {
        self.features == features && self.sums.len() == (features + 2).pow(2)
    }

    /// Lets the samples so far count `share` as much.
    pub fn fade(&mut self, share: f64) {
        self.sums.iter_mut().for_each(|sum| *sum *= share);
    }

    /// Adds a sample.
    pub fn add(&mut self, features: &[f64], target: f64) {
        let row: Vec<f64> = std::iter::once(1.0).chain(features.iter().copied()).chain([target]).collect();
        let size = self.features + 2;
        for (at, one) in row.iter().enumerate() {
            for (sum, other) in self.sums[at * size..].iter_mut().zip(&row) {
                *sum += one * other;
            }
        }
    }

    /// Fit with a penalty on the squared weights of the standardised features, `ridge` times the number of samples
    /// (Hoerl and Kennard, Technometrics 12, 1970). `None` without samples or without variance of the target.
    pub fn fit(&self, ridge: f64) -> Option<AdvantageFit> {
        let (size, count) = (self.features + 2, self.sums[0]);
        if count <= 0.0 {
            return None;
        }
        let (mean, covariance) = (|at| self.mean(at), |one, other| self.covariance(one, other));
        let target = size - 1;
        let deviation = |at: usize| covariance(at, at).max(0.0).sqrt();
        // What rounding leaves of a constant is no variance.
        let varies = |at: usize| deviation(at) > 1e-7 * (1.0 + mean(at).abs());
        if !varies(target) {
            return None;
        }
        let used: Vec<usize> = (1..target).filter(|&at| varies(at)).collect();
        let scaled = |one: usize, other: usize| covariance(one, other) / (deviation(one) * deviation(other));
        let row = |&one: &usize| {
            let penalty = move |other: usize| if one == other { ridge } else { 0.0 };
            used.iter().map(move |&other| scaled(one, other) + penalty(other)).collect::<Vec<f64>>()
        };
        let mut matrix: Vec<f64> = used.iter().flat_map(row).collect();
        let mut solved: Vec<f64> = used.iter().map(|&at| covariance(at, target) / deviation(at)).collect();
        solve_spd(&mut matrix, used.len(), &mut solved, 1);
        let mut weights = vec![0.0; self.features];
        used.iter().zip(&solved).for_each(|(&at, value)| weights[at - 1] = value / deviation(at));
        let sum = |at: usize| (1..target).map(|other| weights[other - 1] * covariance(at, other)).sum::<f64>();
        let left = covariance(target, target) - 2.0 * sum(target) + self.spread(&weights).powi(2);
        Some(AdvantageFit {
            intercept: mean(target) - (1..target).map(|at| weights[at - 1] * mean(at)).sum::<f64>(),
            weights,
            explained: 1.0 - left / covariance(target, target),
        })
    }

    /// Standard deviation of a weighted sum of the features over the samples.
    pub fn spread(&self, weights: &[f64]) -> f64 {
        let sum = |one: usize| {
            let each = weights.iter().enumerate();
            each.map(|(other, weight)| weight * self.covariance(one + 1, other + 1)).sum::<f64>()
        };
        weights.iter().enumerate().map(|(at, weight)| weight * sum(at)).sum::<f64>().max(0.0).sqrt()
    }

    fn mean(&self, at: usize) -> f64 {
        self.sums[at] / self.sums[0]
    }

    fn covariance(&self, one: usize, other: usize) -> f64 {
        self.sums[one * (self.features + 2) + other] / self.sums[0] - self.mean(one) * self.mean(other)
    }
}
