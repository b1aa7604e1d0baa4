//! Gradient boosting of pinball loss.
//!
//! `F[0]` is the quantile of all targets; each tree is grown on the gradient of the loss of `F[k]`,
//! the value of its leaf is the quantile of the residuals there, and `F[k+1] = F[k] + rate * tree`
//! (Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
//! 29(5), 2001, sections 4.3 and 4.4, with the median's least absolute deviation generalised to a
//! quantile; Koenker and Bassett, "Regression quantiles", Econometrica 46, 1978). Each tree sees
//! seven tenths of the features.

use serde::{Deserialize, Serialize};

use super::bins::Binned;
use super::mix;
use super::tree::{Limits, Tree};

/// Settings of gradient boosting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Boosting {
    pub level: f64,
    pub trees: usize,
    pub rate: f64,
    pub limits: Limits,
}

/// Boosted ensemble: a sum of regression trees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Trees {
    start: f64,
    trees: Vec<Tree>,
}

impl Boosting {
    /// Fits `targets` by rows of `width` finite features; nothing where there are no targets.
    pub fn fit(&self, rows: &[f64], width: usize, targets: &[f64]) -> Option<Trees> {
        let start = quantile(&mut targets.to_vec(), self.level)?;
        let data = Binned::new(rows, width);
        let mut residuals: Vec<f64> = targets.iter().map(|target| target - start).collect();
        let mut below = vec![false; targets.len()];
        let mut scratch = Vec::with_capacity(targets.len());
        let mut trees = Vec::with_capacity(self.trees);
        for round in 0..self.trees as u64 {
            below.iter_mut().zip(&residuals).for_each(|(below, residual)| *below = *residual < 0.0);
            // A hash of the round and the feature stands for a generator, so a fit needs no seed.
            let seen = |&feature: &usize| mix(round, feature as u64) % 10 < 7;
            let features: Vec<usize> = (0..width).filter(seen).collect();
            let (tree, leaves) = Tree::grow(&data, &below, self.level, &features, self.limits, |rows| {
                scratch.clear();
                scratch.extend(rows.iter().map(|&row| residuals[row as usize]));
                self.rate * quantile(&mut scratch, self.level).unwrap_or(0.0)
            });
            // The leaves partition the rows, so no row has to walk through the tree.
            for (leaf, value) in leaves.iter().zip(tree.values()) {
                leaf.iter().for_each(|&row| residuals[row as usize] -= value);
            }
            trees.push(tree);
        }
        Some(Trees { start, trees })
    }
}

impl Trees {
    /// The values of rows of `width` features, tree by tree so that one stays at hand.
    pub fn values(&self, rows: &[f64], width: usize, out: &mut [f64]) {
        out.fill(self.start);
        for tree in &self.trees {
            for (out, row) in out.iter_mut().zip(rows.chunks_exact(width)) {
                *out += tree.value(row);
            }
        }
    }
}

/// The smallest value with more than `level` of the values at or below it.
fn quantile(values: &mut [f64], level: f64) -> Option<f64> {
    let index = ((level * values.len() as f64) as usize).min(values.len().checked_sub(1)?);
    Some(*values.select_nth_unstable_by(index, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `y = 3 [x > 0.5] + (1 + x) u`, `u` uniform on `[0, 1)`: the quantile at `q` is
    /// `3 [x > 0.5] + (1 + x) q`. The second feature is noise.
    fn tiny() -> (Vec<f64>, Vec<f64>) {
        let uniform = |stream, i| mix(stream, i) as f64 / 2.0_f64.powi(64);
        let rows: Vec<f64> = (0..8_000).flat_map(|i| [uniform(1, i), uniform(2, i)]).collect();
        let targets = (0..8_000).map(|i| {
            let x = uniform(1, i);
            (if x > 0.5 { 3.0 } else { 0.0 }) + (1.0 + x) * uniform(3, i)
        });
        let targets = targets.collect();
        (rows, targets)
    }

    #[test]
    fn conditional_quantiles_of_a_known_distribution_are_found() {
        let (rows, targets) = tiny();
        for level in [0.1, 0.5, 0.9] {
            let boosting = Boosting { level, trees: 120, rate: 0.05, limits: Limits { leaves: 8, rows: 100 } };
            let trees = boosting.fit(&rows, 2, &targets).unwrap();
            let mut error = 0.0;
            for step in 0..100 {
                let x = (f64::from(step) + 0.5) / 100.0;
                let truth = (if x > 0.5 { 3.0 } else { 0.0 }) + (1.0 + x) * level;
                let mut out = [0.0];
                trees.values(&[x, 0.5], 2, &mut out);
                error += (out[0] - truth).abs() / 100.0;
            }
            assert!(error < 0.1, "level {level}: off by {error} on average");
        }
    }

    #[test]
    fn fitting_twice_gives_the_same_trees() {
        let (rows, targets) = tiny();
        let boosting = Boosting { level: 0.5, trees: 10, rate: 0.05, limits: Limits { leaves: 31, rows: 50 } };
        assert_eq!(boosting.fit(&rows, 2, &targets), boosting.fit(&rows, 2, &targets));
        assert_eq!(boosting.fit(&[], 2, &[]), None);
    }
}
