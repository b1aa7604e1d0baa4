//! Settings of `[environment.instances]`.

use goodput_env::model::SwitchCost;
use goodput_env::scenario::InstanceOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;

/// Life of inference instances: `[environment.instances]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InstancesConfig {
    /// Cost of the start of an instance, by name, as `goodput list switch-costs` names it.
    pub cold_start: String,
    /// Factor on the time for which an instance is protected after a request; 0 frees it at once.
    pub protect_times: f64,
    /// Whether an instance stays after its request.
    pub keep: bool,
}

impl Default for InstancesConfig {
    fn default() -> Self {
        Self { cold_start: "deepboot_infer".into(), protect_times: 1.0, keep: true }
    }
}

impl InstancesConfig {
    pub(super) fn options(&self) -> Result<InstanceOptions, SetupError> {
        let value = |key, value: String, expected: String| SetupError::Value { key, value, expected };
        let names = || SwitchCost::names().join(" or ");
        let cold_start = SwitchCost::by_name(&self.cold_start)
            .ok_or_else(|| value("environment.instances.cold_start", self.cold_start.clone(), names()))?;
        if !(0.0..=1000.0).contains(&self.protect_times) {
            let given = self.protect_times.to_string();
            return Err(value("environment.instances.protect_times", given, "0 to 1000".into()));
        }
        let (protect_times, keep) = (self.protect_times, self.keep);
        Ok(InstanceOptions { cold_start, protect_times, keep, ..InstanceOptions::DEEPBOOT })
    }
}
