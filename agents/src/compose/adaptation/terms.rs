//! Adaptation of a cluster's priorities and quotas as a file states it: `[adaptation]`.

use goodput_env::policy::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Adapting;

/// Automatic adaptation around the policy of training jobs, whichever it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adaptation {
    /// Rule by which priorities adapt; absent: jobs keep those that they were submitted with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityTerms>,
    /// Rule by which quotas adapt; absent: tenants keep those of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaTerms>,
}

/// Priorities as Slurm's multifactor plugin computes them: the priority of the request, plus an age factor and a
/// fair-share factor, each between 0 and 1 and times its weight. They order queues of `kubernetes`, `kueue` and `kai`;
/// which job may evict another is left to the priorities of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PriorityTerms {
    /// Weight of the age factor (`PriorityWeightAge`).
    pub age_weight: u32,
    /// Time waited from which on the age factor is 1, seconds (`PriorityMaxAge`).
    pub max_age_secs: f64,
    /// Weight of the fair-share factor (`PriorityWeightFairshare`).
    pub fair_share_weight: u32,
    /// Time in which the past use of a tenant counts half, seconds (`PriorityDecayHalfLife`).
    pub half_life_secs: f64,
    /// Divisor of the use in the fair-share factor (`FairShareDampeningFactor`); the larger, the less use counts.
    pub dampening: f64,
}

impl Default for PriorityTerms {
    /// Times and dampening of Slurm, which sets both weights to 0.
    fn default() -> Self {
        let week = 7.0 * 86_400.0;
        let (age_weight, fair_share_weight, dampening) = (1000, 1000, 1.0);
        Self { age_weight, max_age_secs: week, fair_share_weight, half_life_secs: week, dampening }
    }
}

/// Quotas that follow use. What a tenant has not used for a while goes to tenants of its cohort that wait, and returns
/// at the decision at which the tenant asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaTerms {
    /// Time for which quota is unused before it goes to others, seconds.
    pub window_secs: f64,
    /// Part of its quota that a tenant keeps whether it uses it or not, 0 to 1.
    pub floor: f64,
}

impl Default for QuotaTerms {
    fn default() -> Self {
        Self { window_secs: 600.0, floor: 0.25 }
    }
}

impl Adaptation {
    /// Whether nothing adapts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// `policy` with adapted priorities and quotas; `policy` itself where nothing adapts.
    pub fn around(&self, policy: Box<dyn Policy>) -> Box<dyn Policy> {
        if self.is_empty() { policy } else { Box::new(Adapting::new(policy, self)) }
    }
}
