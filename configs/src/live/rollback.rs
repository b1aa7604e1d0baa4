//! Automatic return to the policy before, where jobs wait longer after a change of the policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::times::check_secs;
use crate::error::CheckError;

/// Rule of the automatic rollback after `goodput live policy set`.
///
/// The mark is a percentile of the queueing delays before the change, plus a slack. The policy before
/// decides again where too many of the jobs submitted since the change have waited past the mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RollbackConfig {
    /// Whether the daemon rolls back by itself.
    pub automatic: bool,
    /// Fewest jobs before the change, and since, by which the delays are judged.
    pub jobs: usize,
    /// Percentile of the delays before the change that makes the mark.
    pub percentile: f64,
    /// Added to that percentile, seconds of the policy's clock.
    pub slack_secs: f64,
    /// Percent of the jobs since the change; more that have waited past the mark are a regression.
    pub late_percent: f64,
    /// Time after a change in which the delays are watched, seconds of the policy's clock.
    pub watch_secs: f64,
}

impl Default for RollbackConfig {
    fn default() -> Self {
        let (percentile, late_percent) = (90.0, 30.0);
        Self { automatic: true, jobs: 30, percentile, slack_secs: 60.0, late_percent, watch_secs: 86_400.0 }
    }
}

impl RollbackConfig {
    pub(super) fn check(&self) -> Result<(), CheckError> {
        for (value, key) in [(self.percentile, "rollback.percentile"), (self.late_percent, "rollback.late_percent")] {
            if !(1.0..=99.0).contains(&value) {
                return Err(CheckError::value(key, value, "1 to 99"));
            }
        }
        // Fewer late jobs than the percentile leaves above the mark are no sign of anything.
        if self.late_percent <= 100.0 - self.percentile {
            let expected =
                format!("more than {}, the share of jobs above rollback.percentile", 100.0 - self.percentile);
            return Err(CheckError::value("rollback.late_percent", self.late_percent, expected));
        }
        if !(5..=1000).contains(&self.jobs) {
            return Err(CheckError::value("rollback.jobs", self.jobs, "5 to 1000"));
        }
        check_secs("rollback.slack_secs", self.slack_secs, 0.0)?;
        check_secs("rollback.watch_secs", self.watch_secs, 0.0)
    }
}
