//! Probability that one policy is better than another.

use ndarray::{ArrayView2, Axis};

use super::{Bootstrap, Estimate};

/// Probability that a run of `x` scores higher than a run of `y` on the same task, ties counting
/// half, averaged over tasks: the Mann-Whitney statistic divided by the number of pairs (rliable's
/// `probability_of_improvement`). The seeds of the two are resampled independently: take
/// `bootstrap.independent(..)` for `other`.
pub fn probability_of_improvement(
    bootstrap: &Bootstrap,
    other: &Bootstrap,
    x: ArrayView2<'_, f64>,
    y: ArrayView2<'_, f64>,
) -> Estimate {
    let value = superiority(x, y);
    bootstrap.estimate_two(other, value, |dx, dy| superiority(dx.of(x).view(), dy.of(y).view()))
}

/// Share of cells where `x` scores higher than `y` on the same seed of the same task, ties counting
/// half.
pub fn win_rate(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> f64 {
    let wins: f64 = x.iter().zip(y).map(|(&x, &y)| beats(x, y)).sum();
    wins / x.len() as f64
}

fn beats(x: f64, y: f64) -> f64 {
    f64::from(u8::from(x > y)) + 0.5 * f64::from(u8::from(x == y))
}

/// Mean over tasks of `U / (n * m)`; sorting makes each task O((n + m) log m).
fn superiority(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> f64 {
    let tasks = x.axis_iter(Axis(1)).zip(y.axis_iter(Axis(1))).map(|(x, y)| {
        let mut sorted = y.to_vec();
        sorted.sort_by(f64::total_cmp);
        let wins: f64 = x
            .iter()
            .map(|&x| {
                let below = sorted.partition_point(|&y| y < x);
                let not_above = sorted.partition_point(|&y| y <= x);
                below as f64 + 0.5 * (not_above - below) as f64
            })
            .sum();
        wins / (x.len() * y.len()) as f64
    });
    tasks.sum::<f64>() / x.ncols() as f64
}
