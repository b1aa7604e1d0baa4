//! Sharing of one accelerator by several jobs: integer shares of compute (1 %) and memory (1 MiB),
//! placement, and interference.
//!
//! Fit and score are those of HAMi (github.com/Project-HAMi/HAMi, `pkg/device/nvidia` and
//! `pkg/scheduler/score.go`). A request gives total amounts and may span any number of cards of one
//! node; see [`place`]. Amounts are integers that are only added and subtracted, so releasing all
//! shares leaves exactly zero.

mod card;
mod isolation;
mod spanning;

pub use card::{Card, CardScore, Misfit};
pub use isolation::{Isolation, MigProfile};
pub use spanning::{Grant, Spread, place};

use serde::{Deserialize, Serialize};

/// Share of one accelerator, or of several: compute in percent of one, memory in MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareRequest {
    /// Percent of one accelerator's compute; 0 takes the compute that other jobs leave idle. On a
    /// single card more than 100 counts as 100.
    pub compute_percent: u32,
    /// Device memory, MiB.
    pub memory_mib: u32,
}
