//! Policies that look at every job at every decision, as their rules are written down.

mod srtf;
mod tiresias;

pub use srtf::NaiveSrtf;
pub use tiresias::NaiveTiresias;
