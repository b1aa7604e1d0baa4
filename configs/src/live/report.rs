//! Evidence that a daemon in the mode `observe` collects for `goodput live report`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::ShadowConfig;
use super::times::check_secs;
use crate::error::CheckError;
use crate::policies::{self, PolicyText};

/// Simulations of the mode `observe`: the jobs at hand under the policy, and under a stand-in for the
/// cluster as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReportConfig {
    /// Heuristic that stands for the cluster as it runs without goodput, as text or as a table with its parameters.
    #[serde(deserialize_with = "policies::name")]
    #[schemars(with = "PolicyText")]
    pub baseline: String,
    /// Horizon of the simulations, seconds of the policy's clock.
    pub horizon_secs: f64,
    /// Time from one simulation to the next, seconds.
    pub every_secs: f64,
    /// Time that a change of accelerators stops a job for, seconds of the policy's clock.
    pub restart_secs: f64,
}

impl Default for ReportConfig {
    fn default() -> Self {
        Self { baseline: "fifo-backfill".into(), horizon_secs: 14_400.0, every_secs: 900.0, restart_secs: 30.0 }
    }
}

impl ReportConfig {
    /// Comparison of the policy that acts with the baseline.
    pub fn comparison(&self) -> ShadowConfig {
        let Self { baseline, horizon_secs, every_secs, restart_secs } = self.clone();
        ShadowConfig { bundle: None, name: Some(baseline), seed: 0, horizon_secs, every_secs, restart_secs }
    }

    pub(super) fn check(&self) -> Result<(), CheckError> {
        policies::check_heuristic("report.baseline", &self.baseline)?;
        check_secs("report.horizon_secs", self.horizon_secs, 1.0)?;
        check_secs("report.every_secs", self.every_secs, 1e-3)?;
        check_secs("report.restart_secs", self.restart_secs, 0.0)
    }
}
