//! One file a command.

pub mod advise;
pub mod config;
mod conventions;
pub mod data;
pub mod env;
pub mod eval;
pub mod explain;
pub mod export;
pub mod federate;
pub mod forecast;
pub mod init;
pub mod list;
pub mod man;
mod programs;
pub mod reference;
pub mod reproduce;
pub mod results;
mod run;
pub mod sim;
mod sim_inputs;
mod sim_pods;
mod slurm;
mod study;
pub mod sweep;
pub mod train;
pub mod ui;
