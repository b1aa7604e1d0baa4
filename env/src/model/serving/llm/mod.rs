//! A replica that runs a language model, request by request.
//!
//! - [`step`]: the time of one forward pass over a batch, as a sum of costs.
//! - [`request`]: what a request asks for, and what became of it.
//! - [`limits`]: how much a replica works on at a time.
//! - [`sequences`]: the requests that a replica decodes, and the blocks of memory that they hold.
//! - [`replica`]: continuous batching with chunked prefill.
//! - `router`: the choice of a replica for a request; each replica may keep prefixes of prompts.
//! - [`service`]: several replicas behind a router.
//! - [`pools`]: replicas that only prefill, and replicas that only decode.
//! - [`handover`]: keys and values on their way from the former to the latter.
//! - [`autoscale`]: replicas that are started and stopped while requests arrive.
//! - [`server`]: the replicas and the requests of one service, with any number of replicas over time.
//! - [`load`]: requests at a rate, with lengths from a sample.
//! - [`measure`](mod@measure): the requests that miss their objectives by load, as a table for the simulated cluster.
//!
//! Iterations in place of whole requests are batched since Orca (Yu et al., OSDI 2022, section 3.1). Memory in blocks,
//! and preemption by recomputation, are those of vLLM (Kwon et al., SOSP 2023, section 4.5). Decodes come first in a
//! batch and prompts fill the rest of its token budget in chunks (Sarathi-Serve, Agrawal et al., OSDI 2024, section
//! 4.2).
//!
//! Times are whole picoseconds. So many equal steps that are summed in closed form end at the picosecond at
//! which steps end that are played one by one, and `env/tests/llm.rs` compares both.

pub mod autoscale;
pub mod handover;
pub mod limits;
pub mod load;
pub mod measure;
pub mod pools;
mod prefix;
pub mod replica;
pub mod request;
mod router;
pub mod sequences;
pub mod server;
pub mod service;
pub mod step;

pub use autoscale::{ColdStart, ScaleRule, ScaledReplay, replay_scaled};
pub use handover::KvLink;
pub use limits::{ReplicaLimits, ReplicaLimitsError};
pub use load::TokenLoad;
pub use measure::{MeasureError, TokenObjectives, measure};
pub use pools::{LlmPools, PoolReplay, ReplicaPool};
pub use replica::LlmReplica;
pub use request::{LlmOutcome, LlmRequest, ServedTokens};
pub use server::{ReadyFrom, TokenServer};
pub use service::LlmService;
pub use step::{BatchTime, BatchTimeError, StepCosts};
