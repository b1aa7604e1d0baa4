//! One accelerator for several jobs: integer shares of compute (1 %) and memory (1 MiB), who fits where, and what neighbours cost.
//!
//! Fit and score are those of HAMi (github.com/Project-HAMi/HAMi, `pkg/device/nvidia` and `pkg/scheduler/score.go`). A request names how
//! much it needs in total and may span cards of one node without caring how many; see [`place`]. Amounts are integers and are added and subtracted
//! only, so what is given back leaves exactly nothing.

mod card;
mod isolation;
mod spanning;

pub use card::{Card, CardScore, Misfit};
pub use isolation::{Isolation, MigProfile};
pub use spanning::{Grant, Spread, place};

use serde::{Deserialize, Serialize};

/// A part of one accelerator, or of several: compute in percent of one, memory in MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareRequest {
    /// Percent of one accelerator's compute; 0 takes what others leave. On a single card more than 100 counts as 100.
    pub compute_percent: u32,
    /// Device memory, MiB.
    pub memory_mib: u32,
}
