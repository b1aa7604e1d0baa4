//! Room of the studies: one question each, with a page or a table of its own.
//!
//! - [`advice`]: what policies would have done with the jobs of a trace, and what a change would do.
//! - [`bound`]: a lower bound of the mean completion time that no policy can beat.
//! - [`explain`]: one decision of a policy beside those of published ones.
//! - [`federation`]: clusters that lend each other servers, with and without a coordinator.
//! - [`forecasting`]: load forecasters: backtests, comparisons, lending.
//! - [`headroom`]: the policies of a comparison beside a probe that knows the future, and the bound.
//! - [`starts`]: when a waiting job will start, and how well such predictions held.
//! - [`token_price`]: training throughput that policies give up for the first tokens of language models.
//! - [`token_replay`]: services of language models beside a replay of every request.
//! - [`worth`]: accelerator-hours that a forecast saves an autoscaler.

pub mod advice;
pub mod bound;
pub mod explain;
pub mod federation;
pub mod forecasting;
pub mod headroom;
pub mod starts;
pub mod token_price;
pub mod token_replay;
pub mod worth;
