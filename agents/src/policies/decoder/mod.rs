//! From scores of (job, size) pairs to a division of the accelerators, in one pass over the pairs.
//!
//! All accelerators are divided anew each round, so what is left only shrinks while pairs are taken, and a round is one network pass and one
//! sort: its cost is linear in jobs, up to the sort. Two named decoders of the same pairs:
//!
//! - [`plackett_luce`]: a sequence of pairs drawn by their scores, with exact probabilities and gradients: what [`crate::policies::ranking`] is trained by;
//! - [`crate::allocation::knapsack::Hull`]: the pairs of the largest sum of utilities: what deployed utilities go by.
//!
//! Beside them stays the sequential decoder of the gym ([`crate::policies::rounds`]), which asks its net again after every change.

pub mod plackett_luce;
