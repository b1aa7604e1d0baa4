//! Percentile bootstrap over the rows of a matrix of seeds x tasks: seeds are drawn anew, the tasks stay.
//!
//! A row may be drawn whole, or each of its tasks on its own. A workload at a higher load contains the jobs that it has
//! at a lower load under that seed, so the scores of its loads rise and fall together. If each were drawn on its own,
//! they would count as independent observations, and the intervals would be too narrow.
//!
//! The draws are made once and shared by every statistic, so that policies which met the same seeds
//! are also resampled on the same seeds: that is what makes the bootstrap of a difference a paired
//! one.

use goodput_env::seed::{Stream, rng};
use ndarray::{Array2, ArrayView2};
use rand::RngExt;

use super::{Estimate, Interval, quantile};

/// Prepared draws for matrices of one shape.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    seeds: usize,
    confidence: f64,
    draws: Vec<Array2<u32>>,
}

/// One resample: for each cell the row to take instead.
#[derive(Clone, Copy, Debug)]
pub struct Resample<'a>(ArrayView2<'a, u32>);

impl Resample<'_> {
    /// The resampled matrix.
    ///
    /// # Panics
    /// Where `scores` has another shape than the draws were made for.
    pub fn of(&self, scores: ArrayView2<'_, f64>) -> Array2<f64> {
        let rows = self.0.broadcast(scores.dim()).expect("draws fit the matrix");
        Array2::from_shape_fn(scores.dim(), |(row, task)| scores[[rows[[row, task]] as usize, task]])
    }
}

impl Bootstrap {
    /// `resamples` draws that take whole rows of a matrix with `seeds` rows, from the stream [`Stream::Bootstrap`] of
    /// `master`: the bootstrap that is clustered by seed. Intervals cover `confidence`, for example 0.95.
    pub fn of_seeds(seeds: usize, resamples: usize, confidence: f64, master: u64) -> Self {
        Self::stratified(seeds, 1, resamples, confidence, master)
    }

    /// As [`Self::of_seeds`], but each task of a matrix of shape `seeds` x `tasks` is drawn on its own, for tasks with
    /// independent scores (rliable's `StratifiedBootstrap`, which the tests compare with)
    pub fn stratified(seeds: usize, tasks: usize, resamples: usize, confidence: f64, master: u64) -> Self {
        let mut rng = rng(master, Stream::Bootstrap);
        let draw = |_| Array2::from_shape_simple_fn((seeds, tasks), || rng.random_range(0..seeds as u32));
        let draws = if seeds < 2 { Vec::new() } else { (0..resamples).map(draw).collect() };
        Self { seeds, confidence, draws }
    }

    /// Draws for a second sample that is independent of the first, as the Mann-Whitney form of
    /// improvement needs.
    pub fn independent(&self, master: u64) -> Self {
        let tasks = self.draws.first().map_or(0, |draw| draw.ncols());
        // Another master seed, so that the second sample does not repeat the draws of the first.
        Self::stratified(self.seeds, tasks, self.draws.len(), self.confidence, master ^ 0x5DEE_CE66_D1CE_5EED)
    }

    /// The number of resamples.
    pub fn resamples(&self) -> usize {
        self.draws.len()
    }

    /// `value` with the percentile interval of `statistic` over all draws; no interval where there
    /// is one seed, or where the statistic is undefined (NaN) on a draw.
    pub fn estimate(&self, value: f64, statistic: impl Fn(Resample<'_>) -> f64) -> Estimate {
        let values = self.draws.iter().map(|draw| statistic(Resample(draw.view()))).collect();
        Estimate { value, ci: self.interval(values) }
    }

    /// Two-sided p-value of the hypothesis that `statistic` is 0: twice the share of draws on the far side of 0, with
    /// one more draw there so that it is never 0 (Davison and Hinkley 1997, "Bootstrap Methods and their Application",
    /// section 4.2). It is below 1 - `confidence` about where the interval leaves out 0. 1 where there are no draws.
    pub fn p_value(&self, statistic: impl Fn(Resample<'_>) -> f64) -> f64 {
        let values: Vec<f64> = self.draws.iter().map(|draw| statistic(Resample(draw.view()))).collect();
        let share = |beyond: fn(&f64) -> bool| {
            (values.iter().filter(|value| beyond(value)).count() + 1) as f64 / (values.len() + 1) as f64
        };
        (2.0 * share(|value| *value <= 0.0).min(share(|value| *value >= 0.0))).min(1.0)
    }

    /// As [`Self::estimate`], with two independent draws at a time.
    pub fn estimate_two(
        &self,
        other: &Self,
        value: f64,
        statistic: impl Fn(Resample<'_>, Resample<'_>) -> f64,
    ) -> Estimate {
        let pairs = self.draws.iter().zip(&other.draws);
        let values = pairs.map(|(x, y)| statistic(Resample(x.view()), Resample(y.view()))).collect();
        Estimate { value, ci: self.interval(values) }
    }

    fn interval(&self, mut values: Vec<f64>) -> Option<Interval> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let tail = (1.0 - self.confidence) / 2.0;
        Some(Interval { low: quantile(&values, tail)?, high: quantile(&values, 1.0 - tail)? })
    }
}
