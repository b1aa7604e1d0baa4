//! .

pub mod heuristic;
pub mod placement;
pub mod bundle;
pub mod learned;
