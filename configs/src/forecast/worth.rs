//! Studies of what a forecast is worth to an autoscaler.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SeriesConfig;
use crate::error::CheckError;
use crate::kind::Kind;
use crate::reader::ConfigFile;

/// A study from a file: loads, cold starts, and the objectives at which rules are matched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorthConfig {
    /// Folder that relative paths of series begin in; the working folder where it is left out.
    #[serde(default)]
    pub folder: PathBuf,
    /// Seconds from the order of an accelerator to its service. A load is played with those of at least half a step of
    /// its series: nothing is known of what happens within a step.
    #[serde(default = "cold_starts")]
    pub cold_start_secs: Vec<f64>,
    /// Seconds for which accelerators that are given back are lent to training. An order takes accelerators that are on
    /// no lease first.
    #[serde(default = "no_loans")]
    pub lease_secs: Vec<f64>,
    /// Seconds of an accelerator that the recall of a lease costs: the work of the training since its last checkpoint,
    /// and its restart.
    #[serde(default = "no_loans")]
    pub recall_secs: Vec<f64>,
    /// Shares of steps with enough capacity at which the rules are compared.
    #[serde(default = "targets")]
    pub targets: Vec<f64>,
    /// Accelerators that the 0.99 quantile of the load before the test needs.
    #[serde(default = "hundred")]
    pub accelerators: u32,
    /// Loads that are served.
    pub loads: Vec<WorthLoad>,
}

/// A load that is served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorthLoad {
    /// Name in the table.
    pub name: String,
    /// Series of the load.
    pub series: SeriesConfig,
    /// Days known to every rule before the dials are set; at least 4, of which the forecaster is fitted on the first
    /// three or the first half.
    pub known_days: f64,
    /// Days on which the dials are set. The test is the rest of the series.
    #[serde(default = "week")]
    pub validation_days: f64,
}

fn cold_starts() -> Vec<f64> {
    vec![30.0, 120.0, 300.0, 600.0, 1800.0]
}

fn no_loans() -> Vec<f64> {
    vec![0.0]
}

fn targets() -> Vec<f64> {
    vec![0.99, 0.999]
}

fn hundred() -> u32 {
    100
}

fn week() -> f64 {
    7.0
}

impl WorthConfig {
    fn check_own(&self) -> Result<(), CheckError> {
        if self.loads.is_empty() {
            return Err(CheckError::value("loads", "empty", "at least one load"));
        }
        if self.cold_start_secs.is_empty() || self.targets.is_empty() {
            let key = if self.targets.is_empty() { "targets" } else { "cold_start_secs" };
            return Err(CheckError::value(key, "empty", "at least one value"));
        }
        if let Some(secs) = self.cold_start_secs.iter().find(|secs| !(**secs > 0.0 && **secs <= 86_400.0)) {
            return Err(CheckError::value("cold_start_secs", secs, "above 0 and at most 86400 seconds"));
        }
        for (key, values) in [("lease_secs", &self.lease_secs), ("recall_secs", &self.recall_secs)] {
            if values.is_empty() {
                return Err(CheckError::value(key, "empty", "at least one value; 0 for none"));
            }
            if let Some(secs) = values.iter().find(|secs| !(0.0..=604_800.0).contains(*secs)) {
                return Err(CheckError::value(key, secs, "0 to 604800 seconds"));
            }
        }
        if let Some(target) = self.targets.iter().find(|target| !(0.5..=1.0).contains(*target)) {
            return Err(CheckError::value("targets", target, "0.5 to 1"));
        }
        if !(1..=10_000).contains(&self.accelerators) {
            return Err(CheckError::value("accelerators", self.accelerators, "1 to 10000"));
        }
        self.loads.iter().try_for_each(|load| load.check().map_err(|error| error.within("loads", &load.name)))
    }
}

impl WorthLoad {
    fn check(&self) -> Result<(), CheckError> {
        let (known, validation) = (self.known_days, self.validation_days);
        if !(4.0..=3_650.0).contains(&known) {
            return Err(CheckError::value("known_days", known, "4 to 3650 days"));
        }
        if !(0.5..=3_650.0).contains(&validation) {
            return Err(CheckError::value("validation_days", validation, "0.5 to 3650 days"));
        }
        let step = self.series.step_secs.unwrap_or(1.0);
        if !(0.001..=1e7).contains(&step) {
            return Err(CheckError::value("series.step_secs", step, "0.001 to 10000000 seconds"));
        }
        Ok(())
    }
}

impl ConfigFile for WorthConfig {
    const KIND: Kind = Kind::WorthStudy;

    fn check(&self) -> Result<(), CheckError> {
        self.check_own()
    }
}
