//! Interval of a mean over values that are close in time, and so alike.
//!
//! Comparisons of one day see much the same jobs. So whole blocks of time are drawn again, not single
//! comparisons (Künsch 1989, the block bootstrap).

use std::collections::BTreeMap;

use goodput_env::seed::{Stream, rng};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Fewest blocks of time for an interval.
const BLOCKS: usize = 5;
/// Number of samples that are drawn.
const DRAWN: usize = 2000;
/// Blocks are days where there are enough, else quarters of a day; milliseconds.
const LENGTHS: [i64; 2] = [86_400_000, 21_600_000];

/// Mean with its interval of 95 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanInterval {
    /// Mean of all values.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Interval of the mean of `values`, each with its time in milliseconds; `None` where they fill too few
/// blocks of time.
pub(super) fn interval(values: &[(i64, f64)]) -> Option<MeanInterval> {
    let blocks = LENGTHS.iter().map(|length| blocks(values, *length)).find(|blocks| blocks.len() >= BLOCKS)?;
    let mean = |(sum, count): (f64, usize)| sum / count.max(1) as f64;
    let add = |(sum, count): (f64, usize), (more, other): (f64, usize)| (sum + more, count + other);
    let mut random = rng(0, Stream::Bootstrap);
    let mut means: Vec<f64> = (0..DRAWN)
        .map(|_| {
            let drawn = (0..blocks.len()).map(|_| blocks[random.random_range(0..blocks.len())]);
            mean(drawn.fold((0.0, 0), add))
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((DRAWN - 1) as f64 * share).round() as usize];
    let all = blocks.iter().copied().fold((0.0, 0), add);
    Some(MeanInterval { mean: mean(all), low: at(0.025), high: at(0.975) })
}

/// Sum and number of the values of each block.
fn blocks(values: &[(i64, f64)], length: i64) -> Vec<(f64, usize)> {
    let mut blocks: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for (at, value) in values {
        let block = blocks.entry(at.div_euclid(length)).or_default();
        *block = (block.0 + value, block.1 + 1);
    }
    blocks.into_values().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn repeated_values_of_a_day_add_no_certainty() {
        let day = |at: i64| 86_400_000 * at;
        let few: Vec<(i64, f64)> = (0..8).map(|at| (day(at), [-3.0, -1.0][at as usize % 2])).collect();
        let many: Vec<(i64, f64)> = few.iter().flat_map(|&(at, value)| (0..90).map(move |n| (at + n, value))).collect();
        let (one, other) = (interval(&few).unwrap(), interval(&many).unwrap());
        assert_eq!(one, other, "ninety equal values of a day are one");
        assert!(one.mean == -2.0 && one.low >= -3.0 && one.high <= -1.0 && one.high - one.low > 0.5, "{one:?}");
        assert_eq!(interval(&few[..4]), None, "four days are too few");
        let hours: Vec<(i64, f64)> = (0..8).map(|at| (21_600_000 * at, 1.0)).collect();
        assert_eq!(interval(&hours), Some(MeanInterval { mean: 1.0, low: 1.0, high: 1.0 }));
    }
}
