//! Implicit Q-learning (Kostrikov, Nair and Levine 2021, arXiv:2110.06169): no value of an action
//! that was not taken is ever asked for.
//!
//! - `V` is an upper expectile of the smaller of two target critics: `|tau - 1(u < 0)| u^2` of `u =
//!   Q(s, a) - V(s)`;
//! - each `Q` regresses on `r + exp(-beta dt) V(s')`;
//! - the policy imitates what was done with weight `exp(temperature * advantage)`, at most 100.
//!
//! Where we depart: the advantage is divided by its root mean square over the minibatch. What one
//! decision is worth is small and differs by cluster, load and unit of reward; after the division one
//! temperature serves all of them. `V` is the critic of the policy's own net.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "learn")]
mod update;

#[cfg(feature = "learn")]
pub use update::{Iql, IqlStats};

/// The constants of the update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IqlConfig {
    /// Expectile that the value estimates: 0.5 is the mean, 1 the maximum over what was done.
    pub expectile: f32,
    /// Weight of decisions of greater advantage, per root mean square of advantages; 0: all alike.
    pub temperature: f32,
    /// Share by which target critics follow at every step.
    pub target_rate: f32,
    /// Largest norm of a gradient.
    pub max_grad_norm: f32,
}

impl Default for IqlConfig {
    fn default() -> Self {
        Self { expectile: 0.7, temperature: 3.0, target_rate: 0.005, max_grad_norm: 1.0 }
    }
}
