//! Policies of a deployment: the one that decides, its fallback, and one beside it that never acts.

use std::path::{Path, PathBuf};

use goodput_env::gym::USUAL_SLOTS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::times::{check_millis, check_secs};
use crate::error::CheckError;
use crate::policies::{self, PolicyText};

/// Policy of a deployment, by name or as a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// A bundle that `train` wrote, or `zoo:NAME`. Either this or `name`.
    #[serde(default)]
    pub bundle: Option<PathBuf>,
    /// Name of a heuristic, with its parameters: `"tiresias(starvation_knob=2)"`, or a table
    /// `{ name = "tiresias", starvation_knob = 2.0 }`; or an external program, `"proc:COMMAND"` or
    /// `"python:MODULE:CLASS"`. Either this or `bundle`.
    #[serde(default, deserialize_with = "policies::optional_name")]
    #[schemars(with = "Option<PolicyText>")]
    pub name: Option<String>,
    /// Seed of policies that draw random numbers.
    #[serde(default)]
    pub seed: u64,
    /// Whether users' estimates of durations are shown to the policy: `profiled`, or `estimate`.
    #[serde(default)]
    pub information: InformationSetting,
    /// Job slots in the observations of an external program; other policies have no use for the key.
    #[serde(default = "usual_slots", skip_serializing_if = "are_usual_slots")]
    pub slots: usize,
    /// Time that a change of accelerators stops a job for, seconds of the policy's clock. `sia`, `elasticflow`, learned
    /// utilities and nets that hold changes back weigh changes by it; `pollux` and `deepboot` have a parameter of that
    /// name. The value in the file counts for every policy that is set later.
    #[serde(default = "restart_secs", skip_serializing_if = "is_usual_restart")]
    pub restart_secs: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_usual_restart(secs: &f64) -> bool {
    *secs == restart_secs()
}

const fn usual_slots() -> usize {
    USUAL_SLOTS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn are_usual_slots(slots: &usize) -> bool {
    *slots == USUAL_SLOTS
}

impl PolicyConfig {
    /// Checks that one policy is named, and that it is known.
    ///
    /// # Errors
    /// [`CheckError`] with the names that are near.
    pub fn check(&self) -> Result<(), CheckError> {
        if !(1..=4096).contains(&self.slots) {
            return Err(CheckError::value("policy.slots", self.slots, "1 to 4096"));
        }
        check_secs("policy.restart_secs", self.restart_secs, 0.0)?;
        either("policy", ["policy.name", "policy.bundle"], self.name.as_deref(), self.bundle.as_deref())
    }
}

/// Information level of a deployment: the knowledge of remaining work that the policy gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InformationSetting {
    /// Level at which the policy was published or trained.
    #[default]
    Policy,
    /// No knowledge of remaining work.
    Profiled,
    /// Estimates from the catalog and from time limits.
    Estimate,
}

/// Conditions under which the fallback decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RelianceConfig {
    /// Longest a decision may take, milliseconds; the first one of a policy has at least five seconds.
    pub timeout_ms: u64,
    /// Heuristic that decides instead, as text or as a table with its parameters.
    #[serde(deserialize_with = "policies::name")]
    #[schemars(with = "PolicyText")]
    pub fallback: String,
    /// Shortest time for which the fallback decides, seconds.
    pub fallback_secs: f64,
    /// So many refused plans and lost turns of an external program among the last ten are too many.
    pub invalid_of_ten: usize,
}

impl Default for RelianceConfig {
    fn default() -> Self {
        Self { timeout_ms: 200, fallback: "pollux-fast".into(), fallback_secs: 600.0, invalid_of_ten: 3 }
    }
}

impl RelianceConfig {
    pub(super) fn check(&self) -> Result<(), CheckError> {
        check_millis("reliance.timeout_ms", self.timeout_ms)?;
        check_secs("reliance.fallback_secs", self.fallback_secs, 0.0)?;
        policies::check_heuristic("reliance.fallback", &self.fallback)
    }
}

/// Policy that is compared with the one that acts, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShadowConfig {
    /// A bundle that `train` wrote, or `zoo:NAME`. Either this or `name`.
    #[serde(default)]
    pub bundle: Option<PathBuf>,
    /// Name of a heuristic, as text or as a table with its parameters, or an external program. Either this or
    /// `bundle`.
    #[serde(default, deserialize_with = "policies::optional_name")]
    #[schemars(with = "Option<PolicyText>")]
    pub name: Option<String>,
    /// Seed of policies that draw random numbers.
    #[serde(default)]
    pub seed: u64,
    /// Horizon of the comparison, seconds of the policy's clock.
    #[serde(default = "horizon_secs")]
    pub horizon_secs: f64,
    /// Time from one comparison to the next, seconds.
    #[serde(default = "every_secs")]
    pub every_secs: f64,
    /// Time that a change of accelerators stops a job for, seconds of the policy's clock.
    #[serde(default = "restart_secs")]
    pub restart_secs: f64,
}

const fn horizon_secs() -> f64 {
    14_400.0
}
const fn every_secs() -> f64 {
    300.0
}
const fn restart_secs() -> f64 {
    30.0
}

impl ShadowConfig {
    pub(super) fn check(&self) -> Result<(), CheckError> {
        either("shadow", ["shadow.name", "shadow.bundle"], self.name.as_deref(), self.bundle.as_deref())?;
        check_secs("shadow.horizon_secs", self.horizon_secs, 1.0)?;
        check_secs("shadow.every_secs", self.every_secs, 1e-3)?;
        check_secs("shadow.restart_secs", self.restart_secs, 0.0)
    }
}

/// Checks that a table names one policy, which is known: a heuristic, an external program that is there, or a
/// bundle. Whether the file of a bundle is there is found out by the daemon that opens it.
fn either(
    table: &'static str,
    [name_key, bundle_key]: [&'static str; 2],
    name: Option<&str>,
    bundle: Option<&Path>,
) -> Result<(), CheckError> {
    match (name, bundle) {
        (Some(name), None) => policies::check_named(name_key, name),
        (None, Some(bundle)) => policies::check_bundle(bundle_key, bundle),
        _ => Err(CheckError::at(table, format!("[{table}] name one: bundle = \"FILE\" or name = \"HEURISTIC\""))),
    }
}
