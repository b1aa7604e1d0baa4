//! Statistical efficiency: the worth of a sample when the batch grows.
//!
//! A larger batch averages gradient noise away. Once the noise is small compared with the gradient,
//! more samples bring no progress. Two numbers determine that point: the squared norm of the true
//! gradient and the variance of its estimate (McCandlish et al. 2018; Pollux, OSDI'21; AdaScale,
//! Johnson et al. 2020).

use serde::{Deserialize, Serialize};

/// Gradient statistics of a job at its initial batch size `M0`, in any common unit (only their
/// ratio matters).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradientStats {
    /// Squared norm of the true gradient.
    pub sqr: f64,
    /// Variance of the gradient estimated from `M0` samples.
    pub var: f64,
}

impl GradientStats {
    /// Preconditioned gradient noise scale in samples: `var / sqr * M0` (Pollux, PGNS). Infinite
    /// for a vanished gradient.
    #[must_use]
    pub fn pgns(&self, init: u32) -> f64 {
        self.var / self.sqr * f64::from(init)
    }

    /// Steps at `M0` that one step at `scale * M0` replaces: `(var + sqr) / (var / scale + sqr)`,
    /// between 1 and `scale` (AdaScale gain ratio).
    ///
    /// SGD multiplies its learning rate by this gain, and Adam by the square root of the gain.
    /// Without usable statistics (the denominator is not positive) the gain is 1, as in the
    /// artifact.
    #[must_use]
    pub fn gain(&self, scale: f64) -> f64 {
        let denominator = self.var / scale + self.sqr;
        if denominator > 0.0 { (self.var + self.sqr) / denominator } else { 1.0 }
    }

    /// Progress per sample at a total batch of `total` samples relative to one of `init`: `gain /
    /// scale`, which equals `(pgns + M0) / (pgns + M)` (Pollux, statistical efficiency). In (0, 1]
    /// for `total >= init`.
    #[must_use]
    pub fn efficiency(&self, total: u64, init: u32) -> f64 {
        let scale = total as f64 / f64::from(init);
        self.gain(scale) / scale
    }
}
