//! How jobs on one card are kept apart, and what they cost each other.
//!
//! The interference figures are assumptions, marked as such: no public measurement covers all three kinds on the same jobs.

use serde::{Deserialize, Serialize};

use super::ShareRequest;

/// What keeps jobs on one card apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Nothing: the driver gives every job with work an equal slice of time, whatever it asked for.
    TimeSlice,
    /// Compute is limited to each job's percentage (as CUDA MPS' active threads or HAMi's limiter do), memory bandwidth and caches are not.
    Mps {
        /// Part of its speed that a job would lose beside others that use the whole card. Assumption: 0.1 where nothing was measured.
        contention: f64,
    },
    /// Slices of the hardware of their own (NVIDIA MIG): nobody notices the others; shares are rounded up to a profile.
    Mig,
}

/// A profile of NVIDIA MIG on cards of seven compute and eight memory slices (A100, H100; NVIDIA Multi-Instance GPU User Guide, supported profiles).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigProfile {
    /// Compute slices, of seven.
    pub compute: u32,
    /// Memory slices, of eight.
    pub memory: u32,
}

impl MigProfile {
    /// All profiles, smallest first.
    pub const ALL: [Self; 5] = [
        Self { compute: 1, memory: 1 },
        Self { compute: 2, memory: 2 },
        Self { compute: 3, memory: 4 },
        Self { compute: 4, memory: 4 },
        Self { compute: 7, memory: 8 },
    ];

    /// The smallest profile that holds a request on a card of `total_mib`; `None` where none does.
    pub fn of(request: &ShareRequest, total_mib: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| {
            100 * profile.compute >= 7 * request.compute_percent
                && u64::from(profile.memory) * u64::from(total_mib) >= 8 * u64::from(request.memory_mib)
        })
    }
}

impl Isolation {
    /// Speed of a job on a card, relative to having the card alone, with `compute_percent` of its own beside others with `others` percent each, all of
    /// them busy. In (0, 1] for shares that fit a card; 0 % runs on what others leave.
    pub fn speed(self, compute_percent: u32, others: &[u32]) -> f64 {
        let taken: u32 = others.iter().sum();
        match self {
            Self::TimeSlice => 1.0 / (1.0 + others.len() as f64),
            Self::Mps { contention } => {
                let own = if compute_percent == 0 { 100_u32.saturating_sub(taken) } else { compute_percent.min(100) };
                f64::from(own) / 100.0 * (1.0 - contention * f64::from(taken.min(100)) / 100.0)
            }
            Self::Mig => {
                let request = ShareRequest { compute_percent: compute_percent.min(100), memory_mib: 0 };
                MigProfile::of(&request, 0).map_or(0.0, |profile| f64::from(profile.compute) / 7.0)
            }
        }
    }
}
