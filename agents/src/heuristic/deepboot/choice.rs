//! Multiple-choice knapsack of ATS-T: speedups in, sizes out.

use crate::allocation::knapsack::{Item, Knapsack};

/// Solver that chooses a size for each job.
#[derive(Clone, Debug, Default)]
pub struct SizeChoice {
    knapsack: Knapsack,
    sizes: Vec<Vec<u32>>,
}

impl SizeChoice {
    /// Sizes within `gpus` accelerators with the largest sum of values. `values` has a row for each
    /// job of (size, value), in ascending order of size. Of several optima the one that the
    /// artifact's back-tracking finds: from the last job to the first, the smallest size that an
    /// optimum can contain.
    pub fn sizes(&mut self, gpus: u32, values: impl IntoIterator<Item = Vec<(u32, f64)>>) -> Vec<u32> {
        self.knapsack.clear();
        self.sizes.clear();
        for row in values {
            self.knapsack.group(row.iter().map(|&(weight, value)| Item { weight, value }));
            self.sizes.push(row.into_iter().map(|(size, _)| size).collect());
        }
        let chosen = self.knapsack.solve(gpus);
        chosen.iter().zip(&self.sizes).map(|(at, sizes)| at.map_or(0, |at| sizes[at])).collect()
    }

    /// Sum of values of the last choice.
    pub fn value(&self) -> f64 {
        self.knapsack.value()
    }
}
