//! Policies made of policies, and the registry of all policies by the name that users type.
//!
//! - [`serving`]: replicas of inference services: how many, and where.
//! - [`loaning`]: servers of the inference pool that training borrows.
//! - [`resilience`]: wrappers for faults: reserved capacity, quarantine of bad nodes, back-off of
//!   crash loops.
//! - [`adaptation`]: wrapper by which priorities and quotas adapt to what is observed.
//! - [`lookahead`]: a policy that plans with the simulator when it decides.
//! - [`coordinator`]: servers that move between clusters.
//! - [`Wrappers`]: adaptation and guarantees as a file puts them around a policy.
//! - [`NamedPolicy`]: the policy that users call by a name, parameters and variants included.
//! - [`preset_of`]: the conventions under which the replica of an artifact is one.

pub mod adaptation;
mod conventions;
pub mod coordinator;
pub mod loaning;
pub mod lookahead;
mod naming;
mod planning;
mod registry;
pub mod resilience;
pub mod serving;
mod wrappers;

pub use conventions::preset_of;
pub use naming::{NamedPolicy, PolicyNameError, REPLICA, split_list, value_text, with_parameters};
pub use planning::{lookahead_around, lookahead_base};
pub use registry::{RegisterError, by_name, names, policies, register};
pub use wrappers::Wrappers;
