//! Learned policies that decide.
//!
//! - [`rounds`]: a net or a linear policy that plays the rounds of the gym; [`deployed`]: its
//!   scores; [`linear`]: the non-neural baseline.
//! - [`utility`]: learned utilities in a knapsack.
//! - with the feature `learn`: `explain`, the scores of a policy taken apart.

pub mod deployed;
pub mod linear;
pub mod rounds;
pub mod utility;

#[cfg(feature = "learn")]
pub mod explain;
