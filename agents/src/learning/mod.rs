//! Update rules: they take batches and own no loop over the environment.
//!
//! The learner asks one question only, "what is the gradient of this loss at these weights". A
//! checkpoint is the weights, the two moments of Adam and a counter, so resuming is exact by
//! construction.
//!
//! - [`adam`], [`gae`]: the optimiser; advantages in continuous time.
//! - [`cem`], [`cma`]: searches without gradients.
//! - [`teacher`]: any policy as a source of labels.
//! - with the feature `learn`: the `Learner` and its rules, `ppo`, `imitation`, [`advantages`], [`iql`].

pub mod adam;
pub mod advantages;
pub mod cem;
pub mod cma;
pub mod gae;
pub mod iql;
pub mod teacher;

#[cfg(feature = "learn")]
pub mod imitation;
#[cfg(feature = "learn")]
pub mod learner;
#[cfg(feature = "learn")]
mod objective;
#[cfg(feature = "learn")]
pub mod offline;
#[cfg(feature = "learn")]
pub mod ppo;
