//! Significance of a difference between two forecasters, by a block bootstrap.
//!
//! Errors of neighbouring origins depend on each other, so they are worth fewer independent
//! observations. The circular block bootstrap draws whole blocks of consecutive origins, a day of
//! them as a rule: Politis and Romano, "A circular block-resampling procedure for stationary data",
//! 1992 (after Kuensch, Annals of Statistics 17(3), 1989). It makes the claim of Diebold and
//! Mariano ("Comparing predictive accuracy", Journal of Business and Economic Statistics 13(3),
//! 1995), that the mean difference of losses is not 0, without their normal approximation.

/// Confidence interval of the mean of `differences` in their order, from `resamples` draws of
/// blocks of `block`; `None` for no difference at all.
pub fn block_bootstrap(differences: &[f64], block: usize, resamples: usize, confidence: f64) -> Option<(f64, f64)> {
    let n = differences.len();
    if n == 0 || resamples == 0 {
        return None;
    }
    let block = block.clamp(1, n);
    // With a fixed seed, equal differences always have one and the same interval.
    let mut state = 0x5eed_u64;
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let (mut sum, mut left) = (0.0, n);
            while left > 0 {
                let start = (splitmix(&mut state) % n as u64) as usize;
                // The last block is cut, so that a resample is exactly as long as the data.
                let take = block.min(left);
                sum += (0..take).map(|offset| differences[(start + offset) % n]).sum::<f64>();
                left -= take;
            }
            sum / n as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
    let at = |level: f64| crate::quantile::of_sorted(&means, level);
    Some((at(tail)?, at(1.0 - tail)?))
}

/// SplitMix64: the same draws on every machine.
/// Confidence interval of one less the ratio of the sums of `parts` and `wholes`, which are drawn in pairs; `None` for
/// less than two pairs.
pub fn saving_bootstrap(parts: &[f64], wholes: &[f64], resamples: usize, confidence: f64) -> Option<(f64, f64)> {
    let n = parts.len().min(wholes.len());
    if n < 2 || resamples == 0 {
        return None;
    }
    let mut state = 0x5eed_u64;
    let mut savings: Vec<f64> = (0..resamples)
        .map(|_| {
            let (mut part, mut whole) = (0.0, 0.0);
            for _ in 0..n {
                let at = (splitmix(&mut state) % n as u64) as usize;
                (part, whole) = (part + parts[at], whole + wholes[at]);
            }
            1.0 - part / whole
        })
        .collect();
    savings.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
    let at = |level: f64| crate::quantile::of_sorted(&savings, level);
    Some((at(tail)?, at(1.0 - tail)?))
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_mean_and_grows_with_dependence() {
        // Runs of ten equal signs: ten times fewer observations than there are.
        let differences: Vec<f64> = (0..400).map(|i| if i / 10 % 2 == 0 { 1.0 } else { -0.8 }).collect();
        let (low, high) = block_bootstrap(&differences, 20, 2_000, 0.95).unwrap();
        assert!(low <= 0.1 && 0.1 <= high, "{low} {high}");
        let uneven: Vec<f64> = (0..400).map(|i| ((i / 37 * 7919) % 11) as f64).collect();
        let width = |block| block_bootstrap(&uneven, block, 2_000, 0.95).map(|(low, high)| high - low).unwrap();
        assert!(width(40) > 2.0 * width(1), "{} {}", width(40), width(1));
    }

    #[test]
    fn no_difference_has_no_interval_and_a_constant_one_no_width() {
        assert_eq!(block_bootstrap(&[], 5, 100, 0.95), None);
        let (low, high) = block_bootstrap(&[2.0; 30], 5, 100, 0.95).unwrap();
        assert!((low - 2.0).abs() < 1e-12 && (high - 2.0).abs() < 1e-12);
    }
}
