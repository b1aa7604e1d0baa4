//! One file a command.

pub mod advise;
mod assumptions;
pub mod config;
mod conventions;
pub mod data;
mod data_export;
pub mod env;
pub mod eval;
pub mod explain;
pub mod export;
pub mod federate;
pub mod forecast;
pub mod init;
pub mod list;
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
