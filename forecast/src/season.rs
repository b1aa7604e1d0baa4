//! Season of a series, found in its values.
//!
//! A season is a hill of the autocorrelation: the second step of AutoPeriod (Vlachos, Yu and Castelli, "On
//! periodicity detection and structural periodicity", SIAM Data Mining 2005). Multiples of a season are
//! hills too, so the shortest hill that is nearly as high as the highest one counts.

use crate::Series;

/// Values that are looked at, the newest ones.
const MOST_VALUES: usize = 8192;
/// Least autocorrelation of a season.
const LEAST: f64 = 0.2;
/// Share of the height of the highest hill from which a shorter one counts.
const NEARLY: f64 = 0.75;

/// Steps of the season of `series`, at least 2; `None` where no value repeats within a third of the series.
pub fn season_steps(series: &Series) -> Option<usize> {
    let values: Vec<f64> = series.fill_gaps(1).values().to_vec();
    let first = values.iter().position(|value| value.is_finite())?;
    let values = &values[first.max(values.len().saturating_sub(MOST_VALUES))..];
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count.max(1) as f64;
    let apart: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let variance: f64 = apart.iter().map(|value| value * value).sum();
    if variance <= 0.0 || !variance.is_finite() {
        return None;
    }
    // Sums of fewer pairs are not enlarged, so that a long lag has to repeat more to count as much.
    let at = |lag: usize| apart.iter().zip(&apart[lag..]).map(|(a, b)| a * b).sum::<f64>() / variance;
    let heights: Vec<f64> = (0..=count / 3).map(at).collect();
    let significant = LEAST.max(2.0 / (count as f64).sqrt());
    let is_hill = |lag: usize| {
        let reach = (lag / 10).max(1);
        let around = &heights[lag - reach..=(lag + reach).min(heights.len() - 1)];
        lag + reach < heights.len() && around.iter().all(|&height| height <= heights[lag])
    };
    let hills: Vec<usize> = (2..heights.len()).filter(|&lag| heights[lag] >= significant && is_hill(lag)).collect();
    let highest = hills.iter().map(|&lag| heights[lag]).fold(0.0, f64::max);
    hills.into_iter().find(|&lag| heights[lag] >= NEARLY * highest)
}
