//! Gavel.

pub mod instance;
pub mod isolated;
pub mod objectives;
pub mod program;
pub mod water_filling;
