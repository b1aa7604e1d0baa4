//! Settings of `[environment.instances]`.

use goodput_env::model::SwitchCost;
use goodput_env::scenario::InstanceOptions;
use goodput_env::time::SimTime;
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
    /// Time added to the time of protection, seconds.
    pub protect_more_secs: f64,
    /// Whether an instance stays after its request.
    pub keep: bool,
    /// Whether a free instance that loses its accelerator at a round still saves one request its cold start, if
    /// the request is the next thing to happen.
    pub evicted_answer: bool,
}

impl Default for InstancesConfig {
    fn default() -> Self {
        Self {
            cold_start: "deepboot_infer".into(),
            protect_times: 1.0,
            protect_more_secs: 0.0,
            keep: true,
            evicted_answer: false,
        }
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
        if !(0.0..=1e6).contains(&self.protect_more_secs) {
            let given = self.protect_more_secs.to_string();
            return Err(value("environment.instances.protect_more_secs", given, "0 to 1000000".into()));
        }
        let protect_more = SimTime::from_secs_f64(self.protect_more_secs);
        let Self { protect_times, keep, evicted_answer, .. } = *self;
        Ok(InstanceOptions { cold_start, protect_times, protect_more, keep, evicted_answer })
    }
}
