//! Batch sizes: a total batch is replicas x micro-batches x samples, and each factor is an integer
//! with a limit.
//!
//! The rounding agrees with the published simulators to the last bit, because one more sample per
//! GPU selects another row of the profile.

use serde::{Deserialize, Serialize};

/// Slack of every ceiling, so that a quotient such as 12.000000000000002 counts as 12 (Pollux
/// artifact `goodput.py`).
const CEIL_SLACK: f64 = 1e-8;

/// Work of one replica in a step: `accumulation` micro-batches without synchronisation, then one
/// with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchConfig {
    /// Samples in one forward and backward pass of one replica (`m` in Pollux).
    pub atomic: u32,
    /// Extra passes accumulated before the gradients are synchronised (`s` in Pollux); 0 means
    /// every pass synchronises.
    pub accumulation: u32,
}

impl BatchConfig {
    /// Samples per optimiser step over all replicas: `replicas * atomic * (accumulation + 1)`
    /// (Pollux, throughput model).
    #[must_use]
    pub fn total(self, replicas: u32) -> u64 {
        u64::from(replicas) * u64::from(self.atomic) * (u64::from(self.accumulation) + 1)
    }
}

/// Batch sizes that a job may use, in samples.
///
/// The limits are serialised as a plain table and validated when they are read, so a value of this
/// type always satisfies `1 <= init <= max` and `1 <= min_local <= max_local`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawBatchLimits")]
pub struct BatchLimits {
    /// Total batch for which the user tuned the job (`M0`); the efficiency at this batch is 1 by
    /// definition.
    pub init: u32,
    /// Largest total batch with which the job is known to converge (`Mmax`).
    pub max: u32,
    /// Fewest samples that one pass of a replica may process.
    pub min_local: u32,
    /// Most samples that fit in the memory of one accelerator.
    pub max_local: u32,
}

/// Batch limits that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchLimitsError {
    /// The initial total batch is zero or above the largest one.
    #[error("initial batch size {init} is not between 1 and the maximum {max}")]
    Total {
        /// Initial total batch, samples.
        init: u32,
        /// Largest total batch, samples.
        max: u32,
    },
    /// The smallest batch per replica is zero or above the largest one.
    #[error("minimum local batch size {min_local} is not between 1 and the maximum {max_local}")]
    Local {
        /// Smallest batch of a replica, samples.
        min_local: u32,
        /// Largest batch of a replica, samples.
        max_local: u32,
    },
}

impl BatchLimits {
    /// Creates limits from the total batch sizes `init..=max` and the batch sizes of one replica
    /// `min_local..=max_local`, in samples.
    ///
    /// # Errors
    /// [`BatchLimitsError`] when a range is empty or starts at zero.
    pub fn new(init: u32, max: u32, min_local: u32, max_local: u32) -> Result<Self, BatchLimitsError> {
        if init == 0 || init > max {
            return Err(BatchLimitsError::Total { init, max });
        }
        if min_local == 0 || min_local > max_local {
            return Err(BatchLimitsError::Local { min_local, max_local });
        }
        Ok(Self { init, max, min_local, max_local })
    }

    /// Splits a given total batch over `replicas` (at least 1), as policies do that do not tune the
    /// batch size (Pollux artifact `simulator.py`, `update_local_bsz`).
    ///
    /// A single replica above `init` accumulates at least once, because the gradient noise cannot
    /// be estimated from one micro-batch. The result obeys [`capped`](Self::capped). A total below
    /// `replicas * min_local` gives an `atomic` below `min_local`, which the artifact allows too.
    #[must_use]
    pub fn split(&self, target_total: u32, replicas: u32) -> BatchConfig {
        let replicas = replicas.max(1);
        let local = ceil(f64::from(target_total) / f64::from(replicas));
        let config = self.accumulate(f64::from(local), if replicas == 1 && target_total > self.init { 2 } else { 1 });
        self.capped(config, replicas)
    }

    /// Lowers `atomic` until the total fits in `max`, as the artifact does after each choice of
    /// batch size, because rounding up per replica can push the total beyond the limit.
    ///
    /// Where not even one sample per pass fits, the number of passes falls too (the artifact would
    /// run empty passes). With more replicas than `max`, each replica processes one sample.
    #[must_use]
    pub fn capped(&self, config: BatchConfig, replicas: u32) -> BatchConfig {
        let share = (self.max / replicas.max(1)).max(1);
        let accumulation = config.accumulation.min(share - 1);
        BatchConfig { atomic: config.atomic.min(share / (accumulation + 1)), accumulation }
    }

    /// Smallest total batch that `replicas` can process together, in samples: `max(init, min_local
    /// * replicas)`.
    #[must_use]
    pub fn smallest_total(&self, replicas: u32) -> u64 {
        u64::from(self.init).max(u64::from(self.min_local) * u64::from(replicas))
    }

    /// Largest number of replicas that can all process `min_local` samples without a total above
    /// `max`.
    #[must_use]
    pub fn most_replicas(&self) -> u32 {
        self.max / self.min_local
    }

    /// Fewest passes of at most `max_local` samples that process `local` samples, and no fewer than
    /// `least` passes.
    pub(super) fn accumulate(&self, local: f64, least: u32) -> BatchConfig {
        let max_local = f64::from(self.max_local);
        // Fast path: most calls need one pass, and the two divisions below dominate the cost of a
        // call.
        if local <= max_local && least == 1 {
            return BatchConfig { atomic: ceil(local), accumulation: 0 };
        }
        let passes = ceil(local / max_local).max(least);
        BatchConfig { atomic: ceil(local / f64::from(passes)), accumulation: passes - 1 }
    }

    /// Whether a replica may process this many samples in one pass.
    pub(super) fn allows_local(&self, atomic: u32) -> bool {
        (self.min_local..=self.max_local).contains(&atomic)
    }
}

/// Ceiling with slack of a non-negative number. The casts replace `f64::ceil`, which is a library
/// call without SSE 4.1.
fn ceil(x: f64) -> u32 {
    let x = x - CEIL_SLACK;
    let floor = x as u32;
    floor + u32::from(f64::from(floor) < x)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBatchLimits {
    init: u32,
    max: u32,
    min_local: u32,
    max_local: u32,
}

impl TryFrom<RawBatchLimits> for BatchLimits {
    type Error = BatchLimitsError;

    fn try_from(raw: RawBatchLimits) -> Result<Self, Self::Error> {
        Self::new(raw.init, raw.max, raw.min_local, raw.max_local)
    }
}
