//! Limits of a live cluster: rules for plans, a screen for observations, and a brake for mass
//! failures.
//!
//! # Layout
//! - [`rules`]: which changes of a plan may be carried out now. `pools`: those of services and loans.
//! - [`screen`]: whether an observation is like those that a bundle was trained on.
//! - `mass_failure`: how many jobs are placed again when many nodes are lost at once.

pub(in crate::daemon) mod mass_failure;
mod pools;
pub mod rules;
pub mod screen;
