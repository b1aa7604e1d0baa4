//! Tables of the files of live clusters: the deployment that a daemon runs, and the agent of a
//! node.
//!
//! Layout:
//!
//! - [`deployment`]: the whole file of a deployment, and how far its daemon may act.
//! - [`engine`]: the machines that run the jobs. [`policy`]: the policies that decide.
//! - [`leader`]: the lease of the daemon that acts.
//! - [`guard`]: bounds on what one decision may do. [`api`]: the interface for users, and [`token`]: the
//!   tokens that they show.
//! - [`node_agent`]: the whole file of the agent of a node. [`devices`]: the accelerators of a node.
//!   [`dcgm`]: their health by another source.
//! - [`report`]: evidence for the report of the mode `observe`. [`rollback`]: the policy before, again.
//! - [`services`]: inference services beside training jobs.
//! - [`tls`]: certificates. [`name`]: names of jobs and nodes. `times`: bounds of times.
//!
//! The executor takes these tables and adds what they do.

pub mod api;
pub mod dcgm;
pub mod deployment;
pub mod devices;
pub mod engine;
pub mod guard;
pub mod leader;
pub mod name;
pub mod node_agent;
pub mod policy;
pub mod report;
pub mod rollback;
pub mod services;
mod times;
pub mod tls;
pub mod token;
