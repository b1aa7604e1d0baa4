//! Latency of the requests to a service, from the throughput-latency profile of its replicas.
//!
//! A replica works on up to `k` requests at a time, and each takes longer the more requests share
//! the replica (its profile). So `c` replicas are a queue with `c * k` places, where service slows
//! down as the places fill. [`queueing`] computes the mean number of taken places, the probability
//! that all are taken, and the wait in that case.
//!
//! Demand above capacity leaves a backlog, which later intervals serve in order of arrival. The
//! backlog is modelled as a fluid. Requests that find a backlog wait until it is gone, in addition
//! to the random wait.
//!
//! A replica of a language model has two latencies and a batch that changes with every step, so [`llm`] plays requests
//! on it beforehand, and the table that comes of it stands in the place of the queue.
//!
//! `env/tests/serving.rs` compares this model with a simulation of single requests; its tables list
//! the errors.

mod fleet;
pub mod llm;
pub mod queueing;

pub use fleet::{BINS, Demand, Fleet, Interval, LateTokens, edge};
