//! Least squares on sums of products, which rounds add up.

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
pub struct Fit {
    /// Value where all features are zero.
    pub intercept: f64,
    /// Weights of the features; zero for a feature that does not vary.
    pub weights: Vec<f64>,
    /// Standard deviation of the weighted sum over the samples.
    pub deviation: f64,
    /// Mean of the target.
    pub mean: f64,
    /// Share of the variance of the target that the fit explains.
    pub explained: f64,
}

impl Products {
    /// No samples, of so many features.
    pub fn new(features: usize) -> Self {
        let size = features + 2;
        Self { features, sums: vec![0.0; size * size] }
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
    pub fn fit(&self, ridge: f64) -> Option<Fit> {
        let (size, count) = (self.features + 2, self.sums[0]);
        if count <= 0.0 {
            return None;
        }
        let mean = |at: usize| self.sums[at] / count;
        let covariance = |one: usize, other: usize| self.sums[one * size + other] / count - mean(one) * mean(other);
        let target = size - 1;
        let deviation = |at: usize| covariance(at, at).max(0.0).sqrt();
        // What rounding leaves of a constant is no variance.
        let varies = |at: usize| deviation(at) > 1e-7 * (1.0 + mean(at).abs());
        if !varies(target) {
            return None;
        }
        let used: Vec<usize> = (1..target).filter(|&at| varies(at)).collect();
        let scaled = |one: usize, other: usize| covariance(one, other) / (deviation(one) * deviation(other));
        let matrix: Vec<Vec<f64>> = used
            .iter()
            .map(|&one| used.iter().map(|&other| scaled(one, other) + if one == other { ridge } else { 0.0 }).collect())
            .collect();
        let right: Vec<f64> = used.iter().map(|&at| covariance(at, target) / deviation(at)).collect();
        let solved = solve(matrix, right)?;
        let mut weights = vec![0.0; self.features];
        used.iter().zip(&solved).for_each(|(&at, value)| weights[at - 1] = value / deviation(at));
        let sum = |at: usize| (1..target).map(|other| weights[other - 1] * covariance(at, other)).sum::<f64>();
        let variance: f64 = (1..target).map(|at| weights[at - 1] * sum(at)).sum();
        let left = covariance(target, target) - 2.0 * sum(target) + variance;
        Some(Fit {
            intercept: mean(target) - (1..target).map(|at| weights[at - 1] * mean(at)).sum::<f64>(),
            weights,
            deviation: variance.max(0.0).sqrt(),
            mean: mean(target),
            explained: 1.0 - left / covariance(target, target),
        })
    }
}

/// Solution of a symmetric positive definite system by Cholesky's factorisation (Golub and Van Loan, Matrix
/// Computations, algorithm 4.2.1); `None` where the matrix is not positive definite.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for row in 0..size {
        for column in 0..=row {
            let inner: f64 = (0..column).map(|at| matrix[row][at] * matrix[column][at]).sum();
            let left = matrix[row][column] - inner;
            matrix[row][column] = if row == column {
                if left <= 1e-12 {
                    return None;
                }
                left.sqrt()
            } else {
                left / matrix[column][column]
            };
        }
    }
    for row in 0..size {
        let inner: f64 = (0..row).map(|at| matrix[row][at] * right[at]).sum();
        right[row] = (right[row] - inner) / matrix[row][row];
    }
    for row in (0..size).rev() {
        let inner: f64 = (row + 1..size).map(|at| matrix[at][row] * right[at]).sum();
        right[row] = (right[row] - inner) / matrix[row][row];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use goodput_env::seed::{Stream, rng};
    use rand::RngExt;

    use super::*;

    #[test]
    fn an_exact_line_is_found_and_a_constant_feature_has_no_weight() {
        let mut random = rng(1, Stream::Exploration);
        let mut products = Products::new(3);
        for _ in 0..50 {
            let (one, other) = (random.random::<f64>(), 100.0 * random.random::<f64>());
            products.add(&[one, 7.0, other], 2.0 - 3.0 * one + 0.25 * other);
        }
        let fit = products.fit(0.0).unwrap();
        for (found, expected) in fit.weights.iter().zip([-3.0, 0.0, 0.25]) {
            assert!((found - expected).abs() < 1e-8, "{:?}", fit.weights);
        }
        assert!((fit.intercept - 2.0).abs() < 1e-7 && (fit.explained - 1.0).abs() < 1e-9, "{fit:?}");
    }

    /// Expected values: `numpy.linalg.lstsq` (2.4.6) of the standardised features, with a row of `sqrt(0.1 * 30)` each.
    #[test]
    fn the_fit_is_that_of_numpy() {
        let mut products = Products::new(3);
        for at in 0..30u32 {
            let features = [at, at * at % 7, (at % 4).pow(2)].map(f64::from);
            products.add(&features, f64::from(3 * at % 5) + 0.1 * f64::from(at));
        }
        let fit = products.fit(0.1).unwrap();
        let expected = [0.10285772476795108, -0.002098377181893046, 0.020077295371049148];
        for (found, expected) in fit.weights.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{:?}", fit.weights);
        }
        assert!((fit.intercept - 1.8962948327858442).abs() < 1e-12, "{fit:?}");
    }

    #[test]
    fn the_gradient_of_the_penalised_loss_is_zero_at_the_fit() {
        let (mut random, ridge) = (rng(2, Stream::Exploration), 0.3);
        let samples: Vec<([f64; 2], f64)> = (0..40)
            .map(|_| {
                let x = [random.random::<f64>(), 5.0 * random.random::<f64>()];
                (x, x[0] - x[1] + random.random::<f64>())
            })
            .collect();
        let mut products = Products::new(2);
        samples.iter().for_each(|(x, y)| products.add(x, *y));
        let fit = products.fit(ridge).unwrap();
        let count = samples.len() as f64;
        let mean = |at: usize| samples.iter().map(|(x, _)| x[at]).sum::<f64>() / count;
        let variance = |at: usize| samples.iter().map(|(x, _)| (x[at] - mean(at)).powi(2)).sum::<f64>() / count;
        let penalty = [ridge * variance(0), ridge * variance(1)];
        let loss = |intercept: f64, weights: &[f64]| {
            let error = |(x, y): &([f64; 2], f64)| (intercept + weights[0] * x[0] + weights[1] * x[1] - y).powi(2);
            samples.iter().map(error).sum::<f64>() / count
                + weights.iter().zip(penalty).map(|(weight, by)| by * weight * weight).sum::<f64>()
        };
        let h = 1e-5;
        let slope = |up: f64, down: f64| (up - down) / (2.0 * h);
        assert!(slope(loss(fit.intercept + h, &fit.weights), loss(fit.intercept - h, &fit.weights)).abs() < 1e-8);
        for at in 0..2 {
            let moved = |by: f64| {
                let mut weights = fit.weights.clone();
                weights[at] += by;
                loss(fit.intercept, &weights)
            };
            assert!(slope(moved(h), moved(-h)).abs() < 1e-8, "weight {at}");
        }
    }

    #[test]
    fn faded_samples_count_less_and_no_samples_give_no_fit() {
        let mut products = Products::new(1);
        assert_eq!(products.fit(0.1), None);
        for at in 0..10 {
            products.add(&[f64::from(at)], 0.0);
        }
        assert_eq!(products.fit(0.1), None, "a target without variance");
        products.fade(1e-9);
        for at in 0..10 {
            products.add(&[f64::from(at)], f64::from(2 * at));
        }
        assert!((products.fit(0.0).unwrap().weights[0] - 2.0).abs() < 1e-6);
    }
}
