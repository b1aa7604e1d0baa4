//! Learned policies: small actor-critics that score job slots, and the rules that improve them.
//!
//! **Where the numbers live.** The host owns the parameters: one flat [`Weights`] vector, and in a `Learner` Adam's two
//! moments beside it. The learner asks one question only, "what is the gradient of this loss at these weights": burn differentiates losses and nets with
//! attention, `backward` the others, and nothing is kept between calls. A checkpoint is therefore three vectors and a counter, resuming is exact by
//! construction, and the
//! forward pass of a deployed policy ([`Fused`]) reads the very vector the learner writes.
//!
//! Layout, from the ground up:
//!
//! - [`weights`], [`init`]: which layers a net has, their flat storage and seeded orthogonal start.
//! - [`archive`]: named tensors and a header in one file.
//! - [`distribution`]: masked categorical distributions on the host.
//! - [`fused`]: the forward pass in plain Rust; rollouts, evaluation and the executor use it.
//! - [`gae`], [`adam`]: advantages in continuous time; the optimiser.
//! - [`cem`], [`linear`]: the non-neural baseline.
//! - [`decoder`]: from scores of (job, size) pairs to a division of the accelerators.
//! - [`cma`], [`utility`]: learned utilities in a knapsack, searched without gradients; [`ranking`]: a net on top of them, learned with gradients.
//! - [`normaliser`]: frozen feature scaling shipped with a policy.
//! - with the feature `learn`: the same nets in burn, the objectives, and the `Learner`; `iql` and `cql` learn from logged decisions; `explain` takes scores
//!   apart.
//!
//! [`Weights`]: weights::Weights
//! [`Fused`]: fused::Fused

pub mod adam;
pub mod archive;
pub mod cem;
pub mod cma;
pub mod decoder;
pub mod deployed;
pub mod distribution;
pub mod fused;
pub mod gae;
pub mod init;
pub mod linear;
pub mod normaliser;
pub mod policy;
pub mod ranking;
pub mod teacher;
pub mod utility;
pub mod weights;

#[cfg(feature = "learn")]
pub mod cql;
#[cfg(feature = "learn")]
pub mod explain;
#[cfg(feature = "learn")]
pub mod imitation;
#[cfg(feature = "learn")]
pub mod iql;
#[cfg(feature = "learn")]
pub mod learner;
#[cfg(feature = "learn")]
pub mod net;
#[cfg(feature = "learn")]
pub mod offline;
#[cfg(feature = "learn")]
pub mod ppo;

#[cfg(feature = "learn")]
mod affine;
#[cfg(feature = "learn")]
mod attention;
#[cfg(feature = "learn")]
mod backward;
#[cfg(feature = "learn")]
mod mlp;
#[cfg(feature = "learn")]
mod objective;
#[cfg(feature = "learn")]
mod set;
#[cfg(feature = "learn")]
mod shard;
#[cfg(feature = "learn")]
mod softmax;
