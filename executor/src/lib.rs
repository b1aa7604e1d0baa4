//! A policy driving real machines.
//!
//! What `env` may not do happens here: threads, clocks, processes and drivers.
//!
//! # Layout
//! - [`daemon`]: looks at a cluster, asks a policy, carries out what the guard lets pass.
//! - [`engine`]: the seam to whatever runs jobs on machines: Slurm, Kubernetes, our own agents, the simulator.
//! - [`agent`]: the agent of a node.
//! - [`etcd`]: the store that daemons of several hosts share.
//! - [`bench_job`]: a job of known speed, to test and measure with.
//! - [`forecasts`]: forecasts of loads as a service, for autoscalers.
//! - [`devices`]: the accelerators of this machine, through NVML or whatever else implements
//!   [`devices::DeviceSource`].
//! - [`http`]: the one HTTP server of every port, with its limits and TLS.
//! - [`job`]: job protocol v1: what a job is told, what it says, and what its end means.
//! - [`machine`]: the name and the clock of the machine that this process runs on.
//! - [`prometheus`]: a Prometheus that is asked for loads.
//! - [`private`]: files and folders that are readable by their owner only.

pub mod agent;
pub mod bench_job;
pub mod daemon;
pub mod devices;
pub mod engine;
pub mod etcd;
pub mod forecasts;
pub mod http;
pub mod job;
pub mod machine;
pub mod private;
pub mod prometheus;
