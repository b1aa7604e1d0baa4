//! .

pub mod bundle;
pub mod heuristic;
pub mod learned;
pub mod placement;
