//! DLinear in closed form: `y = W_t MA + W_s (x - MA) + c` with `MA` the mean of 25 values around each of the last `L`, ends repeated.
//!
//! Zeng, Chen, Zhang, Xu, "Are transformers effective for time series forecasting?", AAAI 2023. Both parts are linear in `x`: with `A x = MA` and `M = [A; I - A]` the map is
//! `V = W M`, and of all `W` with that `V` the smallest has `|W|^2 = tr V (M'M)^-1 V'`. So a ridge on both parts of the decomposition is one regression on `x` alone,
//! `V = Y X' (X X' + lambda (A'A + (I-A)'(I-A))^-1)^-1`, which needs the Gram matrix of windows that [`NLinear`](super::nlinear) has and no inputs twice as long.

use serde::{Deserialize, Serialize};

use super::linear::{Linear, Map, WindowGram};
use crate::linalg;

/// Steps of the moving average.
const KERNEL: usize = 25;

/// Closed-form DLinear.
pub(crate) type DLinear = Linear<Centred>;

/// `out = centre + constants + V (x - centre)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Centred {
    centre: f64,
    constants: Vec<f64>,
    /// One row of the horizon an input.
    weights: Vec<f64>,
}

impl Map for Centred {
    fn solve(y: &[f64], lookback: usize, horizon: usize, ridges: &[f64]) -> Vec<Self> {
        let (l, h) = (lookback, horizon);
        let centre = y.iter().sum::<f64>() / y.len().max(1) as f64;
        let centred: Vec<f64> = y.iter().map(|y| y - centre).collect();
        let Some(gram) = WindowGram::new(&centred, l + h) else { return vec![] };
        // The constant has no penalty: it is what makes every input relative to its own mean.
        let windows = gram.windows as f64;
        let about_means = |i: usize, j: usize| gram.at(i, j) - gram.sums[i] * gram.sums[j] / windows;
        let mut a = vec![0.0; l * l];
        let mut b = vec![0.0; l * h];
        for i in 0..l {
            for j in 0..=i {
                a[i * l + j] = about_means(i, j);
            }
            for step in 0..h {
                b[i * h + step] = about_means(i, l + step);
            }
        }
        let scale = (0..l).map(|i| a[i * l + i]).sum::<f64>() / l as f64;
        let penalty = penalty(l);
        let solve = |ridge: &f64| {
            let mut a = a.clone();
            for (a, penalty) in a.iter_mut().zip(&penalty) {
                *a += ridge * scale * penalty;
            }
            let mut weights = b.clone();
            linalg::solve_spd(&mut a, l, &mut weights, h);
            let mut constants: Vec<f64> = gram.sums[l..].iter().map(|sum| sum / windows).collect();
            for (row, sum) in weights.chunks_exact(h).zip(&gram.sums) {
                for (constant, weight) in constants.iter_mut().zip(row) {
                    *constant -= weight * sum / windows;
                }
            }
            Self { centre, constants, weights }
        };
        ridges.iter().map(solve).collect()
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        for (out, constant) in out.iter_mut().zip(&self.constants) {
            *out = self.centre + constant;
        }
        for (x, row) in x.iter().zip(self.weights.chunks_exact(self.constants.len())) {
            for (out, weight) in out.iter_mut().zip(row) {
                *out += weight * (x - self.centre);
            }
        }
    }
}

/// The moving average as a matrix, ends repeated.
fn average(l: usize) -> Vec<f64> {
    let mut a = vec![0.0; l * l];
    for row in 0..l {
        for offset in 0..KERNEL {
            let column = (row + offset).saturating_sub(KERNEL / 2).min(l - 1);
            a[row * l + column] += 1.0 / KERNEL as f64;
        }
    }
    a
}

/// `(A'A + (I-A)'(I-A))^-1`, what the squares of both parts' weights cost the map of `x`.
fn penalty(l: usize) -> Vec<f64> {
    let a = average(l);
    let mut square = vec![0.0; l * l];
    for k in 0..l {
        // Rows are zero but for the kernel.
        let reach = KERNEL / 2 + 1;
        let near = k.saturating_sub(reach)..(k + reach).min(l);
        for i in near.clone() {
            let (x, rest) = (a[k * l + i], f64::from(i == k) - a[k * l + i]);
            for j in near.clone() {
                square[i * l + j] += x * a[k * l + j] + rest * (f64::from(j == k) - a[k * l + j]);
            }
        }
    }
    let mut inverse = vec![0.0; l * l];
    for i in 0..l {
        inverse[i * l + i] = 1.0;
    }
    linalg::solve_spd(&mut square, l, &mut inverse, l);
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_regression_on_x_is_the_ridge_on_both_parts() {
        let (l, h, ridge) = (6, 2, 0.1);
        let y: Vec<f64> = (0..60).map(|i| 5.0 + f64::from(i * i % 17) + 0.1 * f64::from(i)).collect();
        let map = Centred::solve(&y, l, h, &[ridge]).pop().unwrap();
        // The long way: 2 L inputs and a constant without penalty, by normal equations.
        let a = average(l);
        let windows: Vec<(Vec<f64>, &[f64])> = (0..=y.len() - l - h)
            .map(|start| {
                let x = &y[start..start + l];
                let trend: Vec<f64> = a.chunks(l).map(|row| linalg::dot(row, x)).collect();
                let rest = x.iter().zip(&trend).map(|(x, trend)| x - trend);
                (trend.iter().copied().chain(rest).chain([1.0]).collect(), &y[start + l..start + l + h])
            })
            .collect();
        let p = 2 * l + 1;
        let (mut gram, mut moment) = (vec![0.0; p * p], vec![0.0; p * h]);
        let mean =
            |i: usize| windows.iter().zip(0..).map(|(_, start)| y[start + i]).sum::<f64>() / windows.len() as f64;
        let scale =
            (0..l).map(|i| (0..windows.len()).map(|start| (y[start + i] - mean(i)).powi(2)).sum::<f64>()).sum::<f64>()
                / l as f64;
        for (row, target) in &windows {
            for i in 0..p {
                for j in 0..p {
                    gram[i * p + j] += row[i] * row[j];
                }
                for step in 0..h {
                    moment[i * h + step] += row[i] * target[step];
                }
            }
        }
        for i in 0..2 * l {
            gram[i * p + i] += ridge * scale;
        }
        linalg::solve_spd(&mut gram, p, &mut moment, h);
        let mut out = vec![0.0; h];
        for (start, (row, _)) in windows.iter().enumerate() {
            map.apply(&y[start..start + l], &mut out);
            for step in 0..h {
                let long: f64 = (0..p).map(|i| row[i] * moment[i * h + step]).sum();
                assert!((out[step] - long).abs() < 1e-8, "{} {long}", out[step]);
            }
        }
    }
}
