//! State that survives the death of a daemon or of its engine: orders, submissions, ends of jobs,
//! and the lease of the leader.
//!
//! # Layout
//! - [`journal`]: the SQLite file that holds all of it.
//! - [`leader`]: which daemon acts, by a lease in the journal or outside the host.
//! - [`led_by`]: what a daemon that stands by says to callers.
//! - `submissions`: jobs that the engine acknowledged, handed in again where the engine forgot
//!   them.
//! - [`once`]: submissions that may be tried again.
//! - `kept_mode`: the mode that a call set.
//! - `shared`: state that daemons of several hosts share, in etcd.
//! - `ends`: jobs that have ended, cancelled where the engine forgot their end.

mod ends;
pub mod journal;
pub(super) mod kept_mode;
pub mod leader;
pub(super) mod led_by;
pub mod once;
pub(super) mod shared;
mod submissions;
