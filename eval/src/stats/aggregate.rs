//! One number from a matrix of shape seeds x tasks.

use ndarray::{ArrayView2, Axis};

/// Mean over tasks of the mean over seeds; NaN for an empty matrix.
pub fn mean_of_tasks(scores: ArrayView2<'_, f64>) -> f64 {
    let tasks = scores.axis_iter(Axis(1)).map(|task| task.sum() / task.len() as f64);
    tasks.sum::<f64>() / scores.ncols() as f64
}

/// Interquartile mean: the mean of what is left when a quarter of all runs, rounded down, is cut
/// from either end (rliable's `aggregate_iqm`). More robust than the mean, and surer than the
/// median. NaN for an empty matrix.
pub fn interquartile_mean(scores: ArrayView2<'_, f64>) -> f64 {
    let mut all: Vec<f64> = scores.iter().copied().collect();
    all.sort_by(f64::total_cmp);
    let cut = all.len() / 4;
    let middle = &all[cut..all.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_task_weighs_the_same_however_large_its_numbers_of_seeds() {
        assert_eq!(mean_of_tasks(array![[1.0, 10.0], [3.0, 30.0]].view()), 11.0);
    }

    #[test]
    fn cuts_a_quarter_from_either_end() {
        // 9 values: 2 cut from either end, the mean of 3, 4, 5, 6, 7.
        let scores = array![[100.0, 7.0, 3.0], [4.0, -50.0, 5.0], [6.0, 2.0, 60.0]];
        assert_eq!(interquartile_mean(scores.view()), 5.0);
    }
}
