//! The shape of observations and actions: fixed numbers of job slots, features and verbs, whatever the cluster and queue.

use serde::{Deserialize, Serialize};

use super::shared_features::{POOL_FEATURES, SERVICE_FEATURES, TENANT_FEATURES};
use super::type_features::{TYPE_FEATURES, TYPE_GLOBALS};

/// Shapes. An observation is one flat vector: `slots` x `slot_features`, slot by slot, then `globals`. Feature 0 of an
/// occupied slot is 1; an empty slot is all zeros. Action `a` below `slots * verbs` does verb `a % verbs` to slot
/// `a / verbs`; actions that are about no job follow (replicas, loans), and the last of them ends the round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Service slots; their features are among the globals, and each has an action for one replica more and one for one less.
    #[serde(default)]
    pub services: usize,
    /// Whether servers can be lent and called back; two actions.
    #[serde(default)]
    pub pools: bool,
    /// Accelerator types that are told apart, the first of the cluster's: each has features in every slot, and a verb that starts a job on it or moves it there.
    /// 0: a job starts where most is free of the types it runs on, and stays on that type.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub types: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Layout {
    /// Most accelerator types that can be told apart.
    pub const MOST_TYPES: usize = 32;

    /// The same with services, pools and tenants on show.
    #[must_use]
    pub const fn shared(self, services: usize, pools: bool, tenants: bool) -> Self {
        let slot_features = self.slot_features + if tenants { TENANT_FEATURES.len() } else { 0 };
        let of_pools = if pools { POOL_FEATURES.len() } else { 0 };
        let globals = self.globals + services * SERVICE_FEATURES.len() + of_pools;
        Self { slot_features, globals, services, pools, ..self }
    }

    /// The same with so many accelerator types told apart.
    #[must_use]
    pub const fn by_type(self, types: usize) -> Self {
        let slot_features = self.slot_features + types * TYPE_FEATURES.len();
        let globals = self.globals + types * TYPE_GLOBALS.len();
        Self { slot_features, globals, types, verbs: self.verbs + types, ..self }
    }

    /// Length of a flat observation.
    pub const fn obs_dim(&self) -> usize {
        self.slots * self.slot_features + self.globals
    }

    /// Number of actions, the one that ends the round included.
    pub const fn actions(&self) -> usize {
        self.slots * self.verbs + self.others()
    }

    /// Slots of a flat observation up to the last occupied one.
    pub fn extent(&self, observation: &[f32]) -> usize {
        (0..self.slots).rev().find(|slot| observation[slot * self.slot_features] != 0.0).map_or(0, |last| last + 1)
    }

    /// The action that ends the round.
    pub const fn wait(&self) -> usize {
        self.slots * self.verbs + self.others() - 1
    }

    /// Actions that are about no job, the one that ends the round included.
    pub const fn others(&self) -> usize {
        2 * self.services + 2 * self.pools as usize + 1
    }

    /// The first action that is about no job.
    pub const fn first_other(&self) -> usize {
        self.slots * self.verbs
    }
}
