//! Gavel (Narayanan et al., OSDI'20): scheduling policies as optimisation over accelerators that
//! differ.
//!
//! A policy is an objective over shares of time: the fraction of its time that each job spends on
//! each type of accelerator. Most published objectives (fairness, makespan, cost, ...) become
//! convex programs in the shares, with the speeds of jobs on types as coefficients ([`objectives`],
//! [`water_filling`]). A round-based mechanism that does not depend on the objective turns shares
//! into placements ([`rounds`]). The public simulator behaves differently in places; these are in
//! [`artifact`].
//!
//! Each objective is listed twice where that is meaningful: aware of the speeds of types, and
//! unaware of them. Baselines of the paper's evaluation, first in, first out over types and random
//! packing, run under the same mechanism.

pub mod allox_rounds;
pub mod artifact;
mod config;
mod departures;
pub mod fifo;
mod form;
pub mod gandiva;
pub mod instance;
pub mod isolated;
mod listed;
mod next_round;
pub mod objectives;
mod policy;
pub mod program;
mod python_random;
pub mod rounds;
mod shockwave_forms;
mod shortest_first;
pub mod water_filling;

pub use config::{GavelConfig, GavelObjective, GavelRounds, TypeSpeeds, expense_of};
pub use form::{ClusterRun, GavelForm};
pub use listed::{ALLOX_FRACTION, LISTED};
pub use policy::Gavel;
pub use shortest_first::shortest_first;
