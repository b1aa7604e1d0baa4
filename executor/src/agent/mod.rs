//! The agent of one node: it starts and stops jobs, watches accelerators, and lives on its own when
//! the daemon is gone.
//!
//! Each attempt has a *keeper* ([`keeper`]), a small process of its own that is parent to
//! everything the attempt starts, writes down how it ended, and kills what does not leave. The
//! agent may die and come back: it finds its attempts in the spool ([`spool`]), checks that they
//! are the processes they were, and goes on.
//!
//! - [`api`]: what the daemon says and hears; [`AgentClient`] is its side of the wire.
//! - [`tls`]: identities: both sides show certificates of one private authority, with the name of
//!   the node or of the daemon in them.
//! - [`Agent`]: attempts and accelerators of the node. Every call that changes something carries
//!   the leader's term; lower terms are refused.
//! - `cgroup`: the control group of each attempt, out of which no process gets by itself.
//! - [`socket`], and the plain HTTP server for jobs: the calls of jobs.

pub mod api;
mod attempt;
mod cgroup;
mod client;
mod clock;
mod disk;
mod error;
mod guardian;
mod jobs;
pub mod keeper;
mod lease;
mod mps;
mod node;
mod process;
pub mod record;
mod run;
mod server;
mod socket;
pub mod spool;
mod status;
pub mod tls;

pub(crate) use clock::{boot_ms, unix_ms};

pub use client::{AgentClient, ClientError};
pub use error::AgentError;
pub use node::Agent;
pub use process::ProcessId;
pub use run::{Running, SERVING, run, serve};
