//! Learned policies that decide.
//!
//! - [`rounds`]: a net or a linear policy that plays the rounds of the gym; [`deployed`]: its
//!   scores; [`linear`]: the non-neural baseline.
//! - [`external`]: another process that plays such rounds, in any language.
//! - [`utility`]: learned utilities in a knapsack.
//! - [`queue`]: learned orders of batch queues.
//! - [`hold`]: a learned choice between carrying out a change and holding it back, around a published policy.
//! - [`explain`]: the scores of a policy taken apart; those of nets with the feature `learn`.

pub mod deployed;
pub mod explain;
pub mod external;
pub mod hold;
pub mod linear;
pub mod queue;
pub mod rounds;
pub mod utility;
