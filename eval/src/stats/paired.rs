//! Differences between policies that met the same seeds.

use ndarray::ArrayView2;

use super::{Bootstrap, Estimate, mean_of_tasks};

/// Mean of `x - y`, cell by cell, with its paired bootstrap interval. Both have shape seeds x
/// tasks.
pub fn difference(bootstrap: &Bootstrap, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Estimate {
    let cells = &x - &y;
    bootstrap.estimate(mean_of_tasks(cells.view()), |draw| mean_of_tasks(draw.of(cells.view()).view()))
}

/// Ratio of the means of `x` and `y` with its paired bootstrap interval: 0.8 says that `x` is a
/// fifth smaller.
pub fn ratio_of_means(bootstrap: &Bootstrap, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Estimate {
    let value = mean_of_tasks(x) / mean_of_tasks(y);
    bootstrap.estimate(value, |draw| mean_of_tasks(draw.of(x).view()) / mean_of_tasks(draw.of(y).view()))
}
