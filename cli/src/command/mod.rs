//! One file a command.

pub mod config;
pub mod data;
pub mod env;
pub mod eval;
pub mod list;
mod results;
pub mod live;
pub mod sim;
pub mod train;
