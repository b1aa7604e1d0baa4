//! Policies made of policies, and the registry of all policies by the name that users type.
//!
//! - [`serving`]: replicas of inference services: how many, and where.
//! - [`loaning`]: servers of the inference pool that training borrows.
//! - [`resilience`]: wrappers for faults: reserved capacity, quarantine of bad nodes, back-off of
//!   crash loops.
//! - [`coordinator`]: servers that move between clusters.
//! - [`NamedPolicy`]: the policy that users call by a name, parameters and variants included.

pub mod coordinator;
pub mod loaning;
mod naming;
mod registry;
pub mod resilience;
pub mod serving;

pub use naming::{NamedPolicy, PolicyNameError, split_list, value_text, with_parameters};
pub use registry::{by_name, names, policies};
