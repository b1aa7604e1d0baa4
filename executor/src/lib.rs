//! A policy driving real machines.
//!
//! What `env` may not do happens here: threads, clocks and drivers. The first of it is to see what a machine has.
//!
//! # Layout
//! - [`engine`]: the seam to whatever runs jobs on machines: Slurm, our own agents, the simulator.
//! - [`devices`]: the accelerators of this machine, through NVML or whatever else implements [`devices::DeviceSource`].

pub mod daemon;
pub mod devices;
pub mod engine;
