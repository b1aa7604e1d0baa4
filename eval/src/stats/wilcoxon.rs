//! Wilcoxon's signed-rank test for paired differences, and Holm's correction for testing several
//! policies.

use thiserror::Error;

use super::normal::upper_tail;

/// Largest number of differences for which the exact null distribution is counted out (scipy's
/// limit).
const EXACT_LIMIT: usize = 50;

/// Alternative hypothesis about the differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Differences that are not symmetric about zero.
    TwoSided,
    /// Differences that tend to be negative.
    Less,
    /// Differences that tend to be positive.
    Greater,
}

/// Reason for which there is nothing to test.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WilcoxonError {
    /// All differences are zero, or there are none.
    #[error("all paired differences are zero")]
    NoDifference,
    /// A difference is NaN.
    #[error("a paired difference is not a number")]
    NotANumber,
}

/// p-value of the signed-rank test of `differences`. Zeros are dropped (Wilcoxon's own treatment).
/// Exact for up to 50 differences without ties, otherwise by the normal approximation.
///
/// # Errors
/// [`WilcoxonError`] where nothing is left to rank.
pub fn wilcoxon(differences: &[f64], tail: Tail) -> Result<f64, WilcoxonError> {
    let ranks = SignedRanks::new(differences)?;
    // A dropped zero rules out exact counts as a tie does; so it is in scipy.
    let exact = ranks.tie_sizes.is_empty() && ranks.count == ranks.total && ranks.count <= EXACT_LIMIT;
    Ok(if exact { ranks.exact(tail) } else { ranks.asymptotic(tail) })
}

/// As [`wilcoxon`], always by the normal approximation with tie correction and without continuity
/// correction.
///
/// # Errors
/// [`WilcoxonError`] where nothing is left to rank.
pub fn wilcoxon_asymptotic(differences: &[f64], tail: Tail) -> Result<f64, WilcoxonError> {
    Ok(SignedRanks::new(differences)?.asymptotic(tail))
}

/// Holm's step-down adjustment of p-values, in their order: comparing with 0.05 then bounds the
/// chance of any false claim.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut floor = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        // An adjusted value is never below that of a smaller p-value.
        floor = floor.max(p_values[index] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[index] = floor;
    }
    adjusted
}

struct SignedRanks {
    /// Sum of the ranks of positive differences.
    positive: f64,
    /// Differences that are not zero.
    count: usize,
    /// Number of differences given.
    total: usize,
    tie_sizes: Vec<usize>,
}

impl SignedRanks {
    fn new(differences: &[f64]) -> Result<Self, WilcoxonError> {
        if differences.iter().any(|value| value.is_nan()) {
            return Err(WilcoxonError::NotANumber);
        }
        let mut sorted: Vec<f64> = differences.iter().copied().filter(|&value| value != 0.0).collect();
        if sorted.is_empty() {
            return Err(WilcoxonError::NoDifference);
        }
        sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let (mut positive, mut tie_sizes, mut before) = (0.0, Vec::new(), 0);
        for group in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
            // Tied values share the mean of their ranks before+1 ..= before+len.
            let rank = before as f64 + (group.len() as f64 + 1.0) / 2.0;
            positive += rank * group.iter().filter(|&&value| value > 0.0).count() as f64;
            before += group.len();
            if group.len() > 1 {
                tie_sizes.push(group.len());
            }
        }
        Ok(Self { positive, count: sorted.len(), total: differences.len(), tie_sizes })
    }

    fn exact(&self, tail: Tail) -> f64 {
        // ways[s]: number of subsets of the ranks 1..=n with sum s.
        let most = self.count * (self.count + 1) / 2;
        let mut ways = vec![0.0_f64; most + 1];
        ways[0] = 1.0;
        for rank in 1..=self.count {
            // The sums go downwards so that a rank enters a subset once.
            for sum in (rank..=most).rev() {
                ways[sum] += ways[sum - rank];
            }
        }
        // Counts stay below 2^50 and are therefore exact.
        let all = 2.0_f64.powi(self.count as i32);
        // Without ties the sum of ranks is a whole number.
        let observed = self.positive as usize;
        let at_most = ways[..=observed].iter().sum::<f64>() / all;
        let at_least = ways[observed..].iter().sum::<f64>() / all;
        match tail {
            Tail::Less => at_most,
            Tail::Greater => at_least,
            Tail::TwoSided => (2.0 * at_most.min(at_least)).min(1.0),
        }
    }

    fn asymptotic(&self, tail: Tail) -> f64 {
        let n = self.count as f64;
        let ties: f64 = self.tie_sizes.iter().map(|&size| (size as f64).powi(3) - size as f64).sum();
        let variance = (n * (n + 1.0) * (2.0 * n + 1.0) - ties / 2.0) / 24.0;
        let z = (self.positive - n * (n + 1.0) / 4.0) / variance.sqrt();
        match tail {
            Tail::Less => upper_tail(-z),
            Tail::Greater => upper_tail(z),
            Tail::TwoSided => (2.0 * upper_tail(z.abs())).min(1.0),
        }
    }
}
