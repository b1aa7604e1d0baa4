//! Accelerator that several jobs share.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::ShareRequest;

/// Allocation state of one shared accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Most jobs at a time.
    pub slots: u32,
    /// Number of jobs on the card.
    pub jobs: u32,
    /// Allocated compute, percent.
    pub compute_percent: u32,
    /// Allocated memory, MiB.
    pub memory_mib: u32,
    /// Memory of the card, MiB.
    pub total_mib: u32,
}

/// Reason for which a request does not fit a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Misfit {
    /// All job slots are taken.
    #[error("all slots are taken")]
    Slots,
    /// Not enough memory is left.
    #[error("not enough memory is left")]
    Memory,
    /// Not enough compute is left.
    #[error("not enough compute is left")]
    Compute,
    /// The request is for all compute of a card on which another job runs.
    #[error("a whole card is asked for and this one is shared")]
    Shared,
    /// The request is for the unallocated compute of a card without any.
    #[error("all compute is given away")]
    Full,
}

/// Fill level of a card with a request: 10 x (compute + memory), each as a fraction of the card's
/// amount. The value is a fraction of integers, so comparisons are exact.
#[derive(Clone, Copy, Debug)]
pub struct CardScore {
    part: u64,
    whole: u64,
}

impl Card {
    /// Empty card of `total_mib` MiB for at most `slots` jobs.
    pub fn new(total_mib: u32, slots: u32) -> Self {
        Self { slots, jobs: 0, compute_percent: 0, memory_mib: 0, total_mib }
    }

    /// Checks whether a request fits.
    ///
    /// # Errors
    /// The first [`Misfit`] in HAMi's order.
    pub fn fit(&self, request: &ShareRequest) -> Result<(), Misfit> {
        let compute = request.compute_percent.min(100);
        if self.jobs >= self.slots {
            Err(Misfit::Slots)
        } else if self.total_mib.saturating_sub(self.memory_mib) < request.memory_mib {
            Err(Misfit::Memory)
        } else if 100_u32.saturating_sub(self.compute_percent) < compute {
            Err(Misfit::Compute)
        } else if compute == 100 && self.jobs > 0 {
            Err(Misfit::Shared)
        } else if compute == 0 && self.compute_percent == 100 {
            Err(Misfit::Full)
        } else {
            Ok(())
        }
    }

    /// Fill level of the card with the request added. HAMi's binpack policy takes the highest score
    /// and its spread policy the lowest.
    pub fn score(&self, request: &ShareRequest) -> CardScore {
        let total = u64::from(self.total_mib.max(1));
        let compute = u64::from(self.compute_percent + request.compute_percent.min(100));
        let memory = u64::from(self.memory_mib) + u64::from(request.memory_mib);
        CardScore { part: 10 * (compute * total + 100 * memory), whole: 100 * total }
    }

    /// Allocates the share of a request that fits.
    pub fn take(&mut self, request: &ShareRequest) {
        self.jobs += 1;
        self.compute_percent += request.compute_percent.min(100);
        self.memory_mib += request.memory_mib;
    }

    /// Releases a share that [`Self::take`] allocated.
    pub fn give_back(&mut self, request: &ShareRequest) {
        self.jobs = self.jobs.saturating_sub(1);
        self.compute_percent = self.compute_percent.saturating_sub(request.compute_percent.min(100));
        self.memory_mib = self.memory_mib.saturating_sub(request.memory_mib);
    }
}

impl CardScore {
    /// Score as a floating-point number.
    pub fn value(self) -> f64 {
        self.part as f64 / self.whole as f64
    }
}

impl Ord for CardScore {
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = |part: u64, whole: u64| u128::from(part) * u128::from(whole);
        cross(self.part, other.whole).cmp(&cross(other.part, self.whole))
    }
}

impl PartialOrd for CardScore {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for CardScore {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for CardScore {}
