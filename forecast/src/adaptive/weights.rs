//! Weights of the models in the ensemble, by distance.
//!
//! Weights are `(1 / loss)^2` of exponentially forgotten absolute errors. Inverse-error weights are
//! the robust choice of Timmermann, "Forecast combinations", Handbook of Economic Forecasting 1,
//! 2006, section 2; they are kept apart for distances of 1, 2-3, 4-7, 8-15, ... steps, because the
//! last value is the best forecast of the next step and the worst of the next day.

use serde::{Deserialize, Serialize};

/// Power of the inverse loss.
const POWER: i32 = 2;
/// Number of outcomes up to which a distance borrows evidence from the shorter distances.
const ENOUGH: f64 = 24.0;

/// Losses of models by distance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EnsembleWeights {
    models: usize,
    /// Factor by which a loss is discounted per step.
    keep: f64,
    /// Discounted sums of absolute errors, shape `[distances, models]`.
    losses: Vec<f64>,
    counts: Vec<f64>,
}

/// Class of the distance of `step` steps ahead, counted from 0: 0, 1-2, 3-6, 7-14, ...
pub(crate) fn distance(step: usize) -> usize {
    (step + 1).ilog2() as usize
}

impl EnsembleWeights {
    /// Equal weights of `models` models for distances below `horizon`; a loss counts half after
    /// `half_life` steps.
    pub fn new(models: usize, horizon: usize, half_life: f64) -> Self {
        let distances = distance(horizon - 1) + 1;
        let keep = 0.5_f64.powf(1.0 / half_life);
        Self { models, keep, losses: vec![0.0; distances * models], counts: vec![0.0; distances] }
    }

    /// Discounts all losses by one step.
    pub fn forget(&mut self) {
        for value in self.losses.iter_mut().chain(&mut self.counts) {
            *value *= self.keep;
        }
    }

    /// Takes in the errors of all models at one distance.
    pub fn learn(&mut self, distance: usize, errors: impl Iterator<Item = f64>) {
        let losses = &mut self.losses[distance * self.models..(distance + 1) * self.models];
        for (loss, error) in losses.iter_mut().zip(errors) {
            *loss += error.abs();
        }
        self.counts[distance] += 1.0;
    }

    /// Writes one weight for each model at `distance`.
    pub fn at(&self, distance: usize, weights: &mut [f64]) {
        weights.fill(0.0);
        let mut count = 0.0;
        // Shorter distances are added until there is enough evidence to tell models apart.
        for distance in (0..=distance.min(self.counts.len() - 1)).rev() {
            let losses = &self.losses[distance * self.models..(distance + 1) * self.models];
            // All models have the same number of outcomes at a distance, so sums compare as means
            // do.
            for (sum, loss) in weights.iter_mut().zip(losses) {
                *sum += loss;
            }
            count += self.counts[distance];
            if count > ENOUGH {
                break;
            }
        }
        // Relative to the best model every weight is at most 1; the inverse square of a tiny loss
        // would overflow.
        let best = weights.iter().copied().fold(f64::INFINITY, f64::min).max(f64::MIN_POSITIVE);
        for weight in weights {
            *weight = if count > 0.0 { (best / weight.max(f64::MIN_POSITIVE)).powi(POWER) } else { 1.0 };
        }
    }
}

/// Weighted median: the smallest value with half of the weight at or below it. Sorts `pairs` of
/// value and weight.
pub(crate) fn weighted_median(pairs: &mut [(f64, f64)]) -> f64 {
    // Insertion sort: a dozen pairs, nearly in order from the step before.
    for end in 1..pairs.len() {
        let mut at = end;
        while at > 0 && pairs[at].0 < pairs[at - 1].0 {
            pairs.swap(at, at - 1);
            at -= 1;
        }
    }
    let half = pairs.iter().map(|pair| pair.1).sum::<f64>() / 2.0;
    let mut below = 0.0;
    for &(value, weight) in &*pairs {
        below += weight;
        if below >= half {
            return value;
        }
    }
    pairs.last().map_or(0.0, |pair| pair.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_error_is_four_times_the_weight() {
        let mut weights = EnsembleWeights::new(2, 8, 100.0);
        for _ in 0..30 {
            weights.learn(0, [1.0, -2.0].into_iter());
        }
        let mut at = [0.0; 2];
        weights.at(0, &mut at);
        assert_eq!(at, [1.0, 0.25]);
        weights.at(2, &mut at);
        assert_eq!(at, [1.0, 0.25], "nothing is known of that distance: it borrows");
    }

    #[test]
    fn the_median_is_where_half_of_the_weight_is() {
        assert_eq!(weighted_median(&mut [(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)]), 2.0);
        assert_eq!(weighted_median(&mut [(3.0, 1.0), (1.0, 3.0), (2.0, 1.0)]), 1.0);
        assert_eq!(weighted_median(&mut []), 0.0);
    }

    #[test]
    fn distances_double() {
        assert_eq!([0, 1, 2, 3, 6, 7, 143].map(distance), [0, 1, 1, 2, 2, 3, 7]);
    }
}
