//! Reward terms by name, each a quantity that grows over a run and of which a step gets its part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sim::Simulator;

/// A named reward term with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RewardTerm {
    /// Minus the integral of the number of jobs in the system. Over an episode this is minus the sum of all completion
    /// times, by Little's law.
    JobsInSystem {
        /// Weight of the term in the sum.
        weight: f64,
    },
    /// The integral of the share of accelerators that are held.
    Utilization {
        /// Weight of the term in the sum.
        weight: f64,
    },
    /// Minus the inference requests that missed their objective, in thousands.
    SloViolations {
        /// Weight of the term in the sum.
        weight: f64,
    },
    /// Minus the bounded slowdowns of the jobs: age over run time, the latter taken as at least 10 s. Over an episode
    /// in which all jobs end this is minus the sum of their bounded slowdowns.
    BoundedSlowdown {
        /// Weight of the term in the sum.
        weight: f64,
    },
}

impl RewardTerm {
    /// Names, for listings.
    pub const NAMES: [&'static str; 4] = ["jobs-in-system", "utilization", "slo-violations", "bounded-slowdown"];
}

/// The reward of a run: a sum of terms, per `scale_secs` of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reward {
    /// Terms of the sum.
    pub terms: Vec<RewardTerm>,
    /// Time unit of the integrals, seconds; it only keeps returns of order one.
    pub scale_secs: f64,
}

impl Default for Reward {
    fn default() -> Self {
        Self { terms: vec![RewardTerm::JobsInSystem { weight: 1.0 }], scale_secs: 3600.0 }
    }
}

/// Discount by simulated time, as of a semi-Markov decision process (Sutton, Precup and Singh 1999,
/// "Between MDPs and semi-MDPs", section 2): what happens `t` seconds from now counts `exp(-rate * t)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Discount {
    rate_per_sec: f64,
}

impl Discount {
    /// Discount under which the future counts half after `secs` seconds. `None` unless `secs` is
    /// positive and finite.
    pub fn with_half_life_secs(secs: f64) -> Option<Self> {
        (secs > 0.0 && secs.is_finite()).then(|| Self { rate_per_sec: std::f64::consts::LN_2 / secs })
    }

    /// Weight of a moment `secs` seconds from now.
    pub fn after(&self, secs: f64) -> f64 {
        (-self.rate_per_sec * secs).exp()
    }

    /// Mean weight of the next `secs` seconds.
    pub fn mean_over(&self, secs: f64) -> f64 {
        let exponent = self.rate_per_sec * secs;
        if exponent > 0.0 { -(-exponent).exp_m1() / exponent } else { 1.0 }
    }
}

/// Values of the integrals at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Integrals {
    job_millis: i64,
    gpu_millis: f64,
    /// Zero where no term asks for it, because it has to be worked out.
    violated: i64,
    /// Bounded slowdowns of all jobs so far. Zero where no term asks for them, too.
    slowdowns: f64,
}

impl Reward {
    /// The integrals that its terms are made of, up to now.
    pub(crate) fn integrals(&self, simulator: &Simulator) -> Integrals {
        let late = self.terms.iter().any(|term| matches!(term, RewardTerm::SloViolations { .. }));
        let slow = self.terms.iter().any(|term| matches!(term, RewardTerm::BoundedSlowdown { .. }));
        Integrals {
            job_millis: simulator.job_millis(),
            gpu_millis: simulator.gpu_millis() as f64 / f64::from(simulator.scenario().cluster.total_gpus()),
            violated: if late { simulator.violated_micros() as i64 } else { 0 },
            slowdowns: if slow { simulator.bounded_slowdowns() } else { 0.0 },
        }
    }

    /// The reward of going from one moment to another.
    pub(crate) fn between(&self, from: Integrals, to: Integrals) -> f64 {
        let unit = self.scale_secs * 1000.0;
        let value = |term: &RewardTerm| match *term {
            RewardTerm::JobsInSystem { weight } => -weight * (to.job_millis - from.job_millis) as f64,
            RewardTerm::Utilization { weight } => weight * (to.gpu_millis - from.gpu_millis),
            // These are no integrals over time, so the factor cancels the division below.
            RewardTerm::SloViolations { weight } => -weight * (to.violated - from.violated) as f64 / 1e9 * unit,
            RewardTerm::BoundedSlowdown { weight } => -weight * (to.slowdowns - from.slowdowns) * unit,
        };
        self.terms.iter().map(value).sum::<f64>() / unit
    }
}
