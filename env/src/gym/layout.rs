//! Layout of observations and actions: fixed numbers of job slots, features and verbs, independent
//! of cluster and queue.

use serde::{Deserialize, Serialize};

use super::features::{POOL_FEATURES, SERVICE_FEATURES, TENANT_FEATURES, TYPE_FEATURES, TYPE_GLOBALS};

/// Layout of observations and actions.
///
/// An observation is one flat vector: `slots` x `slot_features`, slot by slot, then `globals`.
/// Feature 0 of an occupied slot is 1; an empty slot is all zeros. Action `a` below `slots * verbs`
/// applies verb `a % verbs` to slot `a / verbs`. Actions that concern no job follow (replicas,
/// loans), and the last of them ends the round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Number of job slots.
    pub slots: usize,
    /// Number of features of a slot.
    pub slot_features: usize,
    /// Number of features of the cluster as a whole.
    pub globals: usize,
    /// Number of verbs that apply to the job of a slot.
    pub verbs: usize,
    /// Number of service slots. Their features are among the globals, and each has one action that
    /// adds a replica and one that removes a replica.
    #[serde(default)]
    pub services: usize,
    /// Whether servers can be lent and reclaimed, which adds two actions.
    #[serde(default)]
    pub pools: bool,
    /// Number of accelerator types that are distinguished, the first of the cluster's types.
    ///
    /// Each type has features in all slots, and a verb that starts a job on it or moves the job
    /// there. With 0, a job starts on the type with most free accelerators among the types on which
    /// it runs, and stays on that type.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub types: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Layout {
    /// Largest number of accelerator types that can be distinguished.
    pub const MOST_TYPES: usize = 32;

    /// Layout with the given number of service slots.
    #[must_use]
    pub const fn with_services(self, services: usize) -> Self {
        Self { globals: self.globals + services * SERVICE_FEATURES.len(), services, ..self }
    }

    /// Layout with servers that can be lent and reclaimed.
    #[must_use]
    pub const fn with_pools(self) -> Self {
        Self { globals: self.globals + POOL_FEATURES.len(), pools: true, ..self }
    }

    /// Layout with features of the tenant in each job slot.
    #[must_use]
    pub const fn with_tenants(self) -> Self {
        Self { slot_features: self.slot_features + TENANT_FEATURES.len(), ..self }
    }

    /// Layout with the given number of accelerator types distinguished.
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

    /// Number of actions, including the one that ends the round.
    pub const fn actions(&self) -> usize {
        self.slots * self.verbs + self.others()
    }

    /// Number of slots of a flat observation up to the last occupied one.
    pub fn extent(&self, observation: &[f32]) -> usize {
        (0..self.slots).rev().find(|slot| observation[slot * self.slot_features] != 0.0).map_or(0, |last| last + 1)
    }

    /// Number of the action that ends the round.
    pub const fn wait(&self) -> usize {
        self.slots * self.verbs + self.others() - 1
    }

    /// Number of actions that concern no job, including the one that ends the round.
    pub const fn others(&self) -> usize {
        2 * self.services + 2 * self.pools as usize + 1
    }

    /// Number of the first action that concerns no job.
    pub const fn first_other(&self) -> usize {
        self.slots * self.verbs
    }
}
