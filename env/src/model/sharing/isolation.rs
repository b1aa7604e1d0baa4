//! Isolation of jobs on one card, and the interference that remains.
//!
//! The interference figures are assumptions and marked as such: no public measurement covers all
//! three kinds of isolation on equal jobs.

use serde::{Deserialize, Serialize};

use super::ShareRequest;

/// Mechanism that isolates jobs on one card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// No isolation: the driver gives each job with work an equal time slice, whatever share it
    /// requested.
    TimeSlice,
    /// Compute limits only: each job is limited to its percentage (as by CUDA MPS active threads or
    /// HAMi's limiter), while memory bandwidth and caches are shared.
    Mps {
        /// Fraction of its speed that a job would lose beside other jobs that use the whole card.
        /// Assumption: 0.1 where nothing was measured.
        contention: f64,
    },
    /// Separate slices of the hardware (NVIDIA MIG): no interference, and shares are rounded up to
    /// a profile.
    Mig,
}

/// Profile of NVIDIA MIG on cards of seven compute and eight memory slices (A100, H100; NVIDIA
/// Multi-Instance GPU User Guide, supported profiles).
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

    /// Smallest profile that holds a request on a card of `total_mib`; `None` where none does.
    pub fn of(request: &ShareRequest, total_mib: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| {
            100 * profile.compute >= 7 * request.compute_percent
                && u64::from(profile.memory) * u64::from(total_mib) >= 8 * u64::from(request.memory_mib)
        })
    }
}

impl Isolation {
    /// Speed of a job on a shared card, relative to the speed alone on the card.
    ///
    /// The job has `compute_percent` of the compute and the other jobs have `others` percent each,
    /// all of them busy. The speed is in (0, 1] for shares that fit a card. A job with 0 % runs on
    /// the compute that the others leave.
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
