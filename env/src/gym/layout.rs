//! The shape of observations and actions: fixed numbers of job slots, features and verbs, whatever the cluster and queue.

use serde::{Deserialize, Serialize};

/// Shapes. An observation is one flat vector: `slots` x `slot_features`, slot by slot, then `globals`. Feature 0 of an
/// occupied slot is 1; an empty slot is all zeros. Action `a` below `slots * verbs` does verb `a % verbs` to slot
/// `a / verbs`; the last action ends the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Job slots.
    pub slots: usize,
    /// Features of a slot.
    pub slot_features: usize,
    /// Features of the cluster as a whole.
    pub globals: usize,
    /// Things that can be done to the job of a slot.
    pub verbs: usize,
}

impl Layout {
    /// Length of a flat observation.
    pub const fn obs_dim(&self) -> usize {
        self.slots * self.slot_features + self.globals
    }

    /// Number of actions, the one that ends the round included.
    pub const fn actions(&self) -> usize {
        self.slots * self.verbs + 1
    }

    /// The action that ends the round.
    pub const fn wait(&self) -> usize {
        self.slots * self.verbs
    }
}
