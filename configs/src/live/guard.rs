//! Rules of the guard of a deployment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::times::check_secs;
use crate::error::CheckError;

/// Bounds on what one decision may do. Times are seconds of the policy's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GuardConfig {
    /// A running job is left alone for so long after its start.
    pub min_run_secs: f64,
    /// A job is moved or stopped at most once in so long.
    pub preempt_every_secs: f64,
    /// Percent of all accelerators that running jobs may be asked to leave in one cycle.
    pub preempt_percent: f64,
    /// Most orders of one cycle.
    pub max_actions: usize,
    /// A plan made from an older snapshot is dropped; seconds of the wall clock.
    pub max_snapshot_age_secs: f64,
    /// Percent of the nodes that are no single failure any more where they are lost at once.
    pub mass_failure_percent: f64,
    /// Percent of the jobs on those nodes that may be moved or placed again for now.
    pub mass_failure_moved_percent: f64,
    /// Duration of the caution after such a loss, seconds of the machine's clock, whatever the policy's. 0: none.
    pub mass_failure_hold_secs: f64,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            min_run_secs: 60.0,
            preempt_every_secs: 600.0,
            preempt_percent: 5.0,
            max_actions: 500,
            max_snapshot_age_secs: 30.0,
            mass_failure_percent: 50.0,
            mass_failure_moved_percent: 10.0,
            mass_failure_hold_secs: 60.0,
        }
    }
}

impl GuardConfig {
    pub(super) fn check(&self) -> Result<(), CheckError> {
        for (value, key) in [
            (self.preempt_percent, "guard.preempt_percent"),
            (self.mass_failure_percent, "guard.mass_failure_percent"),
            (self.mass_failure_moved_percent, "guard.mass_failure_moved_percent"),
        ] {
            if !(0.0..=100.0).contains(&value) {
                return Err(CheckError::value(key, value, "0 to 100"));
            }
        }
        check_secs("guard.min_run_secs", self.min_run_secs, 0.0)?;
        check_secs("guard.preempt_every_secs", self.preempt_every_secs, 0.0)?;
        check_secs("guard.max_snapshot_age_secs", self.max_snapshot_age_secs, 0.0)?;
        check_secs("guard.mass_failure_hold_secs", self.mass_failure_hold_secs, 0.0)
    }
}
