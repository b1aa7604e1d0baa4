//! Performance profiles: what share of runs scores above each threshold.

use ndarray::ArrayView2;

use super::{Bootstrap, Estimate};

/// For each threshold the share of all runs whose score is strictly above it (rliable's score distribution), with
/// pointwise intervals. A curve that lies higher everywhere belongs to the better policy.
pub fn performance_profile(bootstrap: &Bootstrap, scores: ArrayView2<'_, f64>, thresholds: &[f64]) -> Vec<Estimate> {
    let above = |scores: ArrayView2<'_, f64>, tau: f64| {
        scores.iter().filter(|&&score| score > tau).count() as f64 / scores.len() as f64
    };
    let at = |&tau: &f64| bootstrap.estimate(above(scores, tau), |draw| above(draw.of(scores).view(), tau));
    thresholds.iter().map(at).collect()
}
