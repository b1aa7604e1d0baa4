//! A ranking policy: (job, size) pairs ranked by a net, learned by gradients through Plackett and Luce's model
//! ([`crate::policies::decoder::plackett_luce`]).
//!
//! **What is ranked.** The upper hull of what each size is worth to a job by the evolved utility ([`crate::policies::utility`]). A pair is a step of that
//! hull, its base score the logarithm of the step's slope: what one accelerator more is worth there. The net adds to it. So with a net that says
//! nothing the greedy walk is the utility's own division, step by step, and learning starts at what evolution has found. Sizes below the hull
//! are worth less than mixing their neighbours; they are no pairs.
//!
//! **The net.** A DeepSets encoder over the jobs that can be given something (Zaheer et al. 2017): one perceptron for every job, mean and maximum
//! over all of them as context, and one more layer for each pair that sees its job, the context and the size. The last layer starts at zero.
//!
//! **Two decodings of the same scores.** [`Decoding::PlackettLuce`] walks down the scores and takes what fits. [`Decoding::Knapsack`] reads them as
//! slopes again, adds these up to a value for each size and solves the knapsack over the hull of that: where the net has made a later step of
//! a job worth more than an earlier one, the walk jumps to the later step first, and the knapsack takes both for one step of their mean slope.
//!
//! **One type of accelerator.** A pair costs accelerators of one type. On clusters of several the utility alone divides.

mod forward;
mod observation;
mod policy;
mod sampled;
mod weights;

#[cfg(feature = "learn")]
pub mod learner;
#[cfg(feature = "learn")]
mod loss;
#[cfg(feature = "learn")]
mod net;

pub use forward::Scorer;
pub use observation::{GLOBALS, JOB_FEATURES, Observation, PAIR_FEATURES, schema_hash};
pub use policy::{Decoding, Ranked, Ranking};
pub use sampled::{Sampled, Transition};
pub use weights::RankingNet;
