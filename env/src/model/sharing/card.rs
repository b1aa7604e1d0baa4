//! One accelerator that is given in parts.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::ShareRequest;

/// What is given of one accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Most jobs at a time.
    pub slots: u32,
    /// Jobs on it.
    pub jobs: u32,
    /// Compute given, percent.
    pub compute_percent: u32,
    /// Memory given, MiB.
    pub memory_mib: u32,
    /// Memory of the card, MiB.
    pub total_mib: u32,
}

/// Why a request does not fit a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Misfit {
    /// No further job.
    #[error("all slots are taken")]
    Slots,
    /// Not enough memory.
    #[error("not enough memory is left")]
    Memory,
    /// Not enough compute.
    #[error("not enough compute is left")]
    Compute,
    /// All of the compute is asked for, and somebody is there.
    #[error("a whole card is asked for and this one is shared")]
    Shared,
    /// Whatever is left of the compute is asked for, and nothing is.
    #[error("all compute is given away")]
    Full,
}

/// How full a card would be: 10 x (compute + memory), each as a part of the card's. Compared exactly.
#[derive(Clone, Copy, Debug)]
pub struct CardScore {
    part: u64,
    whole: u64,
}

impl Card {
    /// An empty card.
    pub fn new(total_mib: u32, slots: u32) -> Self {
        Self { slots, jobs: 0, compute_percent: 0, memory_mib: 0, total_mib }
    }

    /// Whether a request fits.
    ///
    /// # Errors
    /// The first [`Misfit`] in HAMi's order.
    pub fn fit(&self, request: &ShareRequest) -> Result<(), Misfit> {
        let compute = request.compute_percent.min(100);
        if self.jobs >= self.slots {
            Err(Misfit::Slots)
        } else if self.total_mib.saturating_sub(self.memory_mib) < request.memory_mib {
            Err(Misfit::Memory)
        } else if 100 - self.compute_percent < compute {
            Err(Misfit::Compute)
        } else if compute == 100 && self.jobs > 0 {
            Err(Misfit::Shared)
        } else if compute == 0 && self.compute_percent == 100 {
            Err(Misfit::Full)
        } else {
            Ok(())
        }
    }

    /// How full the card would be with the request. HAMi's binpack takes the highest, its spread the lowest.
    pub fn score(&self, request: &ShareRequest) -> CardScore {
        let total = u64::from(self.total_mib.max(1));
        let compute = u64::from(self.compute_percent + request.compute_percent.min(100));
        let memory = u64::from(self.memory_mib) + u64::from(request.memory_mib);
        CardScore { part: 10 * (compute * total + 100 * memory), whole: 100 * total }
    }

    /// Gives a request that fits its part.
    pub fn take(&mut self, request: &ShareRequest) {
        self.jobs += 1;
        self.compute_percent += request.compute_percent.min(100);
        self.memory_mib += request.memory_mib;
    }

    /// Takes back what [`Self::take`] gave.
    pub fn give_back(&mut self, request: &ShareRequest) {
        self.jobs -= 1;
        self.compute_percent -= request.compute_percent.min(100);
        self.memory_mib -= request.memory_mib;
    }
}

impl CardScore {
    /// As a number.
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
