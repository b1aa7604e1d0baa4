//! Maximum of the load over a window ahead.
//!
//! What a lender needs is a quantile of the largest load while servers are away. The maximum of
//! quantiles is not that: maxima of different steps do not come together, and their errors are
//! correlated. So the error of the maximum itself is what is kept: `max y - max f` over the window,
//! as one more distance of the conformal layer.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Running maximum of the load in a window of a past forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WindowPeak {
    /// Largest value in the window so far.
    seen: Option<f64>,
}

impl WindowPeak {
    pub fn new() -> Self {
        Self { seen: None }
    }

    /// Takes in the value `step` steps after the origin, if one was measured. Returns the maximum
    /// once the window is over.
    pub fn watch(&mut self, window: &Range<usize>, step: usize, y: Option<f64>) -> Option<f64> {
        if !window.contains(&step) {
            return None;
        }
        if let Some(y) = y {
            self.seen = Some(self.seen.map_or(y, |seen| seen.max(y)));
        }
        if step + 1 == window.end { self.seen } else { None }
    }
}

/// Largest value of `path` in `window`, or the last value of a path that ends before the window.
pub(crate) fn largest(path: &[f64], window: &Range<usize>) -> f64 {
    let end = window.end.min(path.len());
    let part = &path[window.start.min(end.saturating_sub(1))..end];
    part.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
