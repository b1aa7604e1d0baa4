//! Circumstances of training episodes. Validation and held-out workloads are always as the
//! experiment says.

use crate::scenario::{SetupError, switch_cost};
use goodput_env::model::SwitchCost;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Domain randomisation (Tobin et al. 2017): each training episode draws speeds, switching costs
/// and faults, so that the policy does not depend on one set of figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Randomise {
    /// Standard deviation of the logarithm of a factor on each application's compute time.
    pub compute: f64,
    /// Standard deviation of the logarithm of a random factor on each application's synchronisation
    /// time, within a node and between nodes.
    pub network: f64,
    /// Switching costs of which each episode has one, by name; empty: the experiment's.
    pub switch_costs: Vec<String>,
    /// Share of episodes in which what `[environment.faults]` describes happens; in the others
    /// nothing breaks.
    pub faults: f64,
}

/// Episodes that become harder: at first fewer jobs come, and for a shorter time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curriculum {
    /// Load of the first episodes, as a share of what it becomes.
    #[serde(default = "whole")]
    pub from_load: f64,
    /// Length of the first episodes' workloads, as a share of what it becomes.
    #[serde(default = "whole")]
    pub from_horizon: f64,
    /// Episodes until both are what they become: of each environment, or of a search.
    pub episodes: u64,
}

fn whole() -> f64 {
    1.0
}

/// Episodes that begin in the middle, for `[agent.ppo]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WarmUpConfig {
    /// The heuristic that plays first, by name.
    pub policy: String,
    /// Longest time for which it does, seconds; each episode draws its own evenly.
    pub longest_secs: f64,
}

/// The first of the checks that fails, as an error.
fn first_wrong(checks: &[(&'static str, f64, bool, &str)]) -> Result<(), SetupError> {
    match checks.iter().find(|(_, _, holds, _)| !holds) {
        Some((key, value, _, expected)) => {
            Err(SetupError::Value { key, value: value.to_string(), expected: (*expected).into() })
        }
        None => Ok(()),
    }
}

impl Randomise {
    pub(super) fn check(&self) -> Result<(), SetupError> {
        let spread = |value: f64| (0.0..=2.0).contains(&value);
        first_wrong(&[
            ("train.randomise.compute", self.compute, spread(self.compute), "0 to 2"),
            ("train.randomise.network", self.network, spread(self.network), "0 to 2"),
            ("train.randomise.faults", self.faults, (0.0..=1.0).contains(&self.faults), "0 to 1"),
        ])?;
        self.costs().map(|_| ())
    }

    /// The switching costs that are drawn from.
    pub fn costs(&self) -> Result<Vec<SwitchCost>, SetupError> {
        costs("train.randomise.switch_costs", &self.switch_costs)
    }
}

/// Switching costs of these names, which a file has at `key`.
pub(super) fn costs(key: &'static str, names: &[String]) -> Result<Vec<SwitchCost>, SetupError> {
    names.iter().map(|name| switch_cost(key, name)).collect()
}

impl Curriculum {
    pub(super) fn check(&self) -> Result<(), SetupError> {
        let share = |value: f64| (0.05..=1.0).contains(&value);
        first_wrong(&[
            ("train.curriculum.from_load", self.from_load, share(self.from_load), "0.05 to 1"),
            ("train.curriculum.from_horizon", self.from_horizon, share(self.from_horizon), "0.05 to 1"),
            ("train.curriculum.episodes", self.episodes as f64, self.episodes > 0, "at least 1"),
        ])
    }
}

impl WarmUpConfig {
    pub(super) fn check(&self) -> Result<(), SetupError> {
        let holds = self.longest_secs > 0.0 && self.longest_secs <= 1e9;
        first_wrong(&[("train.warm_up.longest_secs", self.longest_secs, holds, "a positive number of seconds")])
    }
}
