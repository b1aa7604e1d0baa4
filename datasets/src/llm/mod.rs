//! Language models as services: what is known of models and systems, and replicas with fitted steps.
//!
//! - [`facts`]: sizes of models and speeds of systems, as shipped.
//! - [`configuration`]: what one measurement was made on, and the load of it.
//! - [`replicas`]: the costs of a step of each fitted configuration, as shipped.
//! - [`trace`]: requests of a trace, with prefixes and measured times where it has them.

pub mod configuration;
pub mod facts;
pub mod replicas;
pub mod trace;

pub use configuration::{Configuration, LoadShape, Precision};
pub use facts::LlmFacts;
pub use replicas::{ReplicaCatalog, ReplicaEntry};
pub use trace::{LlmTrace, MeasuredTimes};
