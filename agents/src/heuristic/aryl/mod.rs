//! Aryl (Li et al., arXiv:2202.07896; as Lyra, EuroSys'23): elastic training on servers that inference lends.
//!
//! This is its training scheduler. How many servers are lent, and which return, is decided in [`crate::loaning`], so that every other
//! scheduler here can have the same.

mod phases;
mod placing;

pub use phases::{Demand, Phases};
pub use placing::{Role, Server, Servers, fragmentation, workers};
