//! Performance profiles: what share of runs scores above each threshold.

use ndarray::ArrayView2;

use super::{Bootstrap, Estimate};

/// Performance profile (rliable's score distribution): for each threshold the share of all runs
/// with a score strictly above it, with pointwise intervals. A curve that lies higher everywhere
/// belongs to the better policy.
pub fn performance_profile(bootstrap: &Bootstrap, scores: ArrayView2<'_, f64>, thresholds: &[f64]) -> Vec<Estimate> {
    let above = |scores: ArrayView2<'_, f64>, tau: f64| {
        scores.iter().filter(|&&score| score > tau).count() as f64 / scores.len() as f64
    };
    let at = |&tau: &f64| bootstrap.estimate(above(scores, tau), |draw| above(draw.of(scores).view(), tau));
    thresholds.iter().map(at).collect()
}
