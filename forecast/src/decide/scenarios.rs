//! Scenarios: weighted joint paths of the load ahead.

use std::ops::Range;

use super::{Distribution, Statistic};

/// Scenarios of the load ahead, each a joint path over all steps, with weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenarios {
    width: usize,
    /// Loads, shape `[scenarios, width]`; NaN in a gap.
    loads: Vec<f64>,
    weights: Vec<f64>,
}

impl Scenarios {
    /// Scenarios of `width` steps, at least one: `loads` has the shape `[scenarios, width]` with NaN for gaps.
    pub(super) fn new(width: usize, loads: Vec<f64>, weights: Vec<f64>) -> Self {
        debug_assert_eq!(loads.len(), width * weights.len());
        Self { width, loads, weights }
    }

    /// Distribution of a statistic over the steps `window`; `None` where no scenario has a load in it.
    pub fn distribution(&self, window: &Range<usize>, statistic: Statistic) -> Option<Distribution> {
        let window = window.start.min(self.width)..window.end.min(self.width);
        let paths = self.loads.chunks_exact(self.width).map(|path| &path[window.clone()]).zip(&self.weights);
        let pairs = match statistic {
            Statistic::EachStep => {
                paths.flat_map(|(path, &weight)| path.iter().map(move |&load| (load, weight))).collect()
            }
            // `f64::max` passes over gaps. A path that was seen in part has that part of its weight, because its
            // largest load may have been in a gap.
            Statistic::Largest => {
                let seen =
                    |path: &[f64]| path.iter().filter(|load| load.is_finite()).count() as f64 / path.len() as f64;
                let largest = |path: &[f64]| path.iter().copied().fold(f64::NAN, f64::max);
                paths.map(|(path, &weight)| (largest(path), weight * seen(path))).collect()
            }
        };
        Distribution::new(pairs)
    }
}
