//! A policy driving real machines.
//!
//! What `env` may not do happens here: threads, clocks, processes and drivers.
//!
//! # Layout
//! - [`daemon`]: the loop that watches a cluster, asks a policy and has an engine do what it says.
//! - [`engine`]: the seam to whatever runs jobs on machines: Slurm, our own agents, the simulator.
//! - [`agent`]: the agent of a node.
//! - [`job`]: job protocol v1: what a job is told, what it says, and what its end means.
//! - [`devices`]: the accelerators of this machine, through NVML or whatever else implements [`devices::DeviceSource`].
//! - [`bench_job`]: a job of known speed, to test and measure with.

pub mod agent;
pub mod bench_job;
pub mod daemon;
pub mod devices;
pub mod engine;
pub mod job;
