//! Neural networks that score job slots: small actor-critics, from weights to gradients.
//!
//! **Where the numbers live.** The host owns the parameters: one flat [`Weights`](weights::Weights)
//! vector. The forward pass of a deployed policy ([`Fused`](fused::Fused)) reads the very vector
//! that the learner writes. burn differentiates losses and nets with attention, `backward` the
//! others, and nothing is kept between calls.
//!
//! - [`weights`], [`init`]: the layers of a net, their flat storage and seeded orthogonal start.
//! - [`archive`]: named tensors and a header in one file.
//! - [`distribution`]: masked categorical distributions on the host.
//! - [`fused`]: the forward pass in plain Rust; rollouts, evaluation and the executor use it.
//! - [`slots`]: scores of any number of slots by a set encoder.
//! - [`onnx`]: nets of any other shape, as ONNX graphs.
//! - [`normaliser`]: frozen feature scaling shipped with a policy.
//! - with the feature `learn`: [`layers`], the same nets in burn, and their gradients.

pub mod archive;
pub mod distribution;
pub mod fused;
pub mod init;
pub mod normaliser;
pub mod onnx;
pub(crate) mod simd;
pub mod slots;
pub mod weights;

#[cfg(feature = "learn")]
pub(crate) mod backward;
#[cfg(feature = "learn")]
pub mod layers;
#[cfg(feature = "learn")]
pub(crate) mod shard;
#[cfg(feature = "learn")]
pub(crate) mod softmax;
