//! Room of the entries: policies by name, and scenarios by seed, as an experiment has them.
//!
//! - `policy`: heuristics, trained policies and external programs as entries of a comparison.
//! - `heuristic`: published policies with the conventions of the experiment.
//! - `scenarios`: workloads of an experiment under seeds.

mod error;
mod heuristic;
mod policy;
mod scenarios;

pub use error::EntryError;
pub use heuristic::{by_preset, heuristic, heuristic_entry, named};
pub use policy::{LearnedPolicy, ahead_of_learned, external, learned_entry, policy};
pub use scenarios::{held_out, scenarios, seeds};
