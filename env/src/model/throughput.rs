//! Duration of a step of data-parallel SGD, and the samples per second that follow from it.
//!
//! Pollux (OSDI'21, system throughput) models a step as a linear compute time and an affine
//! all-reduce time, combined by a p-norm with a fitted exponent `gamma`. At 1 the two run one after
//! the other; at infinity the longer one hides the shorter one completely.

use serde::{Deserialize, Serialize};

use super::batch::BatchConfig;

/// Stand-in for zero in the published code: it keeps logarithms finite for a single replica, which
/// has no all-reduce.
pub(super) const TINY: f64 = 1e-8;

/// Fitted constants of one application on one accelerator type (Pollux, theta_perf; artifact
/// `PerfParams`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughputParams {
    /// Constant part of a forward and backward pass, seconds.
    pub alpha_c: f64,
    /// Compute time per sample, seconds.
    pub beta_c: f64,
    /// All-reduce between nodes with two replicas, seconds.
    pub alpha_n: f64,
    /// All-reduce between nodes, added by each replica beyond two, seconds.
    pub beta_n: f64,
    /// All-reduce inside a node with two replicas, seconds.
    pub alpha_r: f64,
    /// All-reduce inside a node, added by each replica beyond two, seconds.
    pub beta_r: f64,
    /// Degree of overlap of compute and all-reduce, at least 1: 1 none, infinity complete.
    pub gamma: f64,
}

impl ThroughputParams {
    /// Seconds of one forward and backward pass over `atomic` samples: `alpha_c + beta_c * atomic`
    /// (Pollux, T_grad).
    #[must_use]
    pub fn grad_time(&self, atomic: u32) -> f64 {
        self.alpha_c + self.beta_c * f64::from(atomic)
    }

    /// Seconds of the all-reduce among `replicas` on `nodes` (Pollux, T_sync).
    ///
    /// As in the artifact 1e-8 stands in for 0 (one replica, or none beyond two), so that fitted
    /// and predicted times agree.
    #[must_use]
    pub fn sync_time(&self, nodes: u32, replicas: u32) -> f64 {
        let beyond_two = replicas_beyond_two(replicas);
        match (nodes > 1, replicas > 1) {
            (true, _) => self.alpha_n + self.beta_n * beyond_two,
            (false, true) => self.alpha_r + self.beta_r * beyond_two,
            (false, false) => TINY + TINY * beyond_two,
        }
    }

    /// Seconds of the last pass of a step, in which the gradients are synchronised: the
    /// `gamma`-norm of compute and all-reduce (Pollux, T_iter without accumulation).
    #[must_use]
    pub fn optim_time(&self, nodes: u32, replicas: u32, atomic: u32) -> f64 {
        overlap(self.grad_time(atomic), self.sync_time(nodes, replicas), self.gamma)
    }

    /// Seconds of a whole step with gradient accumulation: `accumulation` passes without
    /// synchronisation and one with it (Pollux, T_iter).
    #[must_use]
    pub fn iter_time(&self, nodes: u32, replicas: u32, batch: BatchConfig) -> f64 {
        f64::from(batch.accumulation) * self.grad_time(batch.atomic) + self.optim_time(nodes, replicas, batch.atomic)
    }

    /// Samples processed per second (Pollux, THROUGHPUT).
    #[must_use]
    pub fn throughput(&self, nodes: u32, replicas: u32, batch: BatchConfig) -> f64 {
        batch.total(replicas) as f64 / self.iter_time(nodes, replicas, batch)
    }
}

/// Number of replicas beyond the second, or a tiny positive number where there are none.
pub(super) fn replicas_beyond_two(replicas: u32) -> f64 {
    f64::from(replicas.saturating_sub(2)).max(TINY)
}

/// `(a^gamma + b^gamma)^(1/gamma)` for non-negative `a`, `b`, with the larger factored out so that
/// no power can overflow.
pub(super) fn overlap(a: f64, b: f64, gamma: f64) -> f64 {
    let (short, long) = if a < b { (a, b) } else { (b, a) };
    if short <= 0.0 {
        return long;
    }
    if gamma == 1.0 {
        return long + short;
    }
    long * (1.0 + (short / long).powf(gamma)).powf(1.0 / gamma)
}
