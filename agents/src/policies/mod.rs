//! Learned policies that decide.
//!
//! - [`rounds`]: a net or a linear policy that plays the rounds of the gym; [`deployed`]: its scores; [`linear`]: the non-neural
//!   baseline.
//! - [`utility`]: learned utilities in a knapsack; [`ranking`]: a net on top of them; [`decoder`]: from scores of (job, size) pairs
//!   to a division of the accelerators.
//! - with the feature `learn`: `explain`, the scores of a policy taken apart.

pub mod decoder;
pub mod deployed;
pub mod linear;
pub mod ranking;
pub mod rounds;
pub mod utility;

#[cfg(feature = "learn")]
pub mod explain;
