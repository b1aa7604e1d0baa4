//! Guarantees of a cluster as a file states them: `[resilience]`.

use goodput_env::policy::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BackOff, Quarantine, Reserve};

/// Guarantees around the policy of training jobs, whichever it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resilience {
    /// Nodes that are kept for key jobs; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<ReserveTerms>,
    /// Rule by which nodes that fail again and again are left alone; absent: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<QuarantineTerms>,
    /// Rule by which jobs that fail again and again wait; absent: only the engine's own waits count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_off: Option<BackOffTerms>,
}

/// Nodes that are kept for key jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReserveTerms {
    /// Accelerators that are kept, in whole nodes: as few nodes as have so many. A job that needs more than
    /// these is no key job.
    pub gpus: u32,
    /// Tenants with key jobs only, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// Priority from which on a job is a key job; absent: the tenants alone decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// Rule by which nodes that fail again and again are left alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuarantineTerms {
    /// Failures within the window that are too many.
    pub failures: usize,
    /// Time in which failures add up, hours.
    pub window_hours: f64,
    /// Time for which a node is left alone, hours.
    pub hold_hours: f64,
    /// Most nodes that are left alone at once, percent of all nodes; always one at least.
    pub most_percent: f64,
}

impl Default for QuarantineTerms {
    fn default() -> Self {
        Self { failures: 3, window_hours: 24.0, hold_hours: 168.0, most_percent: 10.0 }
    }
}

/// Rule by which jobs that fail again and again wait, as Kubernetes restarts containers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BackOffTerms {
    /// Wait after the first failure of a job, seconds; twice as long after each one that follows.
    pub first_secs: f64,
    /// Longest wait, seconds.
    pub longest_secs: f64,
}

impl Default for BackOffTerms {
    /// `CrashLoopBackOff` of Kubernetes.
    fn default() -> Self {
        Self { first_secs: 10.0, longest_secs: 300.0 }
    }
}

impl Resilience {
    /// Whether nothing is guaranteed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The policy that `make` makes, within these guarantees. A reserve needs two of them: one for key jobs,
    /// and one for all others.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn try_around<E>(&self, make: impl Fn() -> Result<Box<dyn Policy>, E>) -> Result<Box<dyn Policy>, E> {
        let mut policy = make()?;
        if let Some(terms) = &self.reserve {
            policy = Box::new(Reserve::new(make()?, policy, terms.clone()));
        }
        // Nodes that are left alone are no reserve either.
        if let Some(terms) = &self.quarantine {
            policy = Box::new(Quarantine::new(policy, terms.clone()));
        }
        if let Some(terms) = &self.back_off {
            policy = Box::new(BackOff::new(policy, terms));
        }
        Ok(policy)
    }
}
