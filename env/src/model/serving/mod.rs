//! Latency of the requests to a service, from the throughput-latency profile of its replicas.
//!
//! A replica works on up to `k` requests at a time, and the more it works on the longer each takes (its profile). So `c` replicas are a
//! queue with `c * k` places whose service slows down as they fill; [`queueing`] says how many are taken, how often all of them are, and how
//! long requests wait then.
//!
//! Demand above capacity leaves a backlog that later intervals work off, first come, first served: a fluid. Requests that find a backlog
//! wait until it is gone, on top of the random wait.
//!
//! `env/tests/serving.rs` holds all this against a simulation of single requests; the errors found are in its tables.

mod fleet;
pub mod queueing;

pub use fleet::{BINS, Demand, Fleet, Interval, edge};
