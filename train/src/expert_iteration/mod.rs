//! Expert iteration: an apprentice learns from what a copied simulator finds out about changes of its decisions, and is
//! the policy of the next round (Anthony, Tian, Barber, NIPS 2017).
//!
//! Copies of one cluster differ in nothing but the changes: arrivals, work and errors of estimates are equal. So what a
//! change saves is known without the noise of arrivals (the "vine" rollouts of Schulman et al., ICML 2015, section 5.2,
//! from a simulator that can be copied).
//!
//! - `rounds`: the rounds, their state and their curve, for every apprentice.
//! - `episodes`: moments of an episode, and the mean costs of candidates.
//! - [`utility`]: a utility with numbers that move.
//! - [`hold`]: a net that holds back changes of a published policy.

mod episodes;
pub mod hold;
mod rounds;
pub mod utility;
