//! Distribution of a statistic of the load ahead: weighted values, with a tail beyond the largest of them.
//!
//! Up to the share [`TAIL`] from the top, a quantile is that of the weighted values. Beyond, the exceedances are taken
//! for exponential with their mean excess: the peaks-over-threshold model with shape 0 (Pickands, "Statistical
//! inference using extreme order statistics", Annals of Statistics 3(1), 1975). A level such as 0.999 thus has an
//! answer
//! where few errors are known, and the answer grows without a bound as the level goes to 1.

/// Share of the weight that lies in the tail.
const TAIL: f64 = 0.05;

/// Weighted values in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    values: Vec<f64>,
    /// Weight of the values up to and with each, relative to all.
    cumulative: Vec<f64>,
    /// Value at which the tail begins, and mean excess over it.
    threshold: f64,
    excess: f64,
}

impl Distribution {
    /// Distribution of pairs `(value, weight)`; `None` where no weight is above 0. Values are finite.
    pub fn new(mut pairs: Vec<(f64, f64)>) -> Option<Self> {
        pairs.retain(|(value, weight)| value.is_finite() && *weight > 0.0);
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = pairs.iter().map(|(_, weight)| weight).sum();
        let mut below = 0.0;
        let running = |(_, weight): &(f64, f64)| {
            below += weight;
            below / total
        };
        let cumulative: Vec<f64> = pairs.iter().map(running).collect();
        let values: Vec<f64> = pairs.iter().map(|(value, _)| *value).collect();
        values.first()?;
        let mut known = Self { values, cumulative, threshold: 0.0, excess: 0.0 };
        known.threshold = known.empirical(1.0 - TAIL);
        let beyond = pairs.iter().filter(|(value, _)| *value > known.threshold);
        let (sum, weight) = beyond
            .fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + weight * (value - known.threshold), all + weight));
        known.excess = if weight > 0.0 { sum / weight } else { 0.0 };
        Some(known)
    }

    /// Value that is exceeded with probability `tail`, in `[0, 1]`; infinite for 0.
    pub fn exceeded_with(&self, tail: f64) -> f64 {
        if tail <= 0.0 {
            f64::INFINITY
        } else if tail < TAIL {
            self.threshold + self.excess * (TAIL / tail).ln()
        } else {
            self.empirical(1.0 - tail)
        }
    }

    /// Smallest value with at least the share `level` of the weight up to it.
    fn empirical(&self, level: f64) -> f64 {
        // The share is compared with a tolerance, because sums of weights are rounded.
        let at = self.cumulative.partition_point(|&share| share < level - 1e-12);
        self.values[at.min(self.values.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_weighted_values() {
        let uniform = Distribution::new((1..=100).rev().map(|value| (f64::from(value), 1.0)).collect()).unwrap();
        assert_eq!([0.9, 0.5, 0.1, 0.05].map(|tail| uniform.exceeded_with(tail)), [10.0, 50.0, 90.0, 95.0]);
        let weighted = Distribution::new(vec![(1.0, 1.0), (2.0, 8.0), (3.0, 1.0), (4.0, 0.0)]).unwrap();
        assert_eq!([0.95, 0.5, 0.1].map(|tail| weighted.exceeded_with(tail)), [1.0, 2.0, 2.0]);
        assert_eq!(Distribution::new(vec![(f64::NAN, 1.0)]), None);
    }

    #[test]
    fn the_tail_of_exponential_values_is_exponential() {
        let n = 20_000;
        let values = (0..n).map(|index| (-((f64::from(index) + 0.5) / f64::from(n)).ln(), 1.0)).collect();
        let exponential = Distribution::new(values).unwrap();
        for tail in [0.01_f64, 1e-3, 1e-5] {
            let expected = -tail.ln();
            assert!((exponential.exceeded_with(tail) - expected).abs() < 0.01 * expected, "{tail}");
        }
        assert_eq!(exponential.exceeded_with(0.0), f64::INFINITY);
    }
}
