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
pub use spanning::{Grant, Spread, place, place_on};

pub use crate::placement::ShareRequest;
