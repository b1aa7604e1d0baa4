//! Settings of `[agent.expert_iteration]`: a utility that learns from exact rollouts of changes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::evolution::check_start;
use crate::policies::{self, PolicyText};
use crate::scenario::SetupError;
use goodput_agents::policies::utility::Theta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Expert iteration (Anthony, Tian, Barber, NIPS 2017) of a utility (`goodput_agents::policies::utility`). The expert
/// is the simulator: at moments of training episodes it copies the cluster, moves the claims of jobs for a while, and
/// plays the episode to its end under the policy of the round. The apprentice is the utility, which a least-squares fit
/// on the features of the jobs moves in the direction that the expert found. The moved utility is the policy of the
/// next round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExpertAgent {
    /// The heuristic that the exported policy must not be worse than.
    #[serde(deserialize_with = "policies::name")]
    #[schemars(with = "PolicyText")]
    pub teacher: String,
    /// Number of rounds.
    pub rounds: u64,
    /// Episodes of a round in which changes are tried; new ones each round.
    pub episodes: u64,
    /// Moments of an episode at which changes are tried.
    pub moments: u64,
    /// Most jobs of which a change moves the claims at once; each is moved up or down at random.
    pub jobs: usize,
    /// Change of the logarithm of a job's weight, of the logarithm of its horizon, and twice that of its exponent. The
    /// opposite change is tried too.
    pub nudge: f64,
    /// Seconds that a change lasts.
    pub span_secs: f64,
    /// Root mean square by which the first round moves the logarithms of jobs' weights and horizons, and twice that of
    /// exponents. A round tries a quarter to four times as much, and later rounds go by the length that was best.
    pub step: f64,
    /// Ridge of the fit, relative to the variance of a feature.
    pub ridge: f64,
    /// Episodes on which steps of several lengths are compared; new ones each round.
    pub trials: u64,
    /// Weight of the 99th percentile of completion times beside their mean.
    pub tail: f64,
    /// Whether the policy brings along what jobs of training episodes did, by model.
    pub experience: bool,
    /// Whether a job is believed to be as fast as other jobs of its model that were measured on more accelerators.
    pub siblings: bool,
    /// Learned utility to start from: the file of a bundle, or `zoo:NAME` for one that ships. Without it the iteration
    /// starts from Sia's objective.
    pub policy: Option<PathBuf>,
    /// Starting values, by name of parameter; a parameter that is absent starts from its value in `policy`.
    pub start: BTreeMap<String, f64>,
}

impl Default for ExpertAgent {
    fn default() -> Self {
        Self {
            teacher: "sia".into(),
            rounds: 10,
            episodes: 32,
            moments: 8,
            jobs: 16,
            nudge: 0.5,
            span_secs: 3600.0,
            step: 0.5,
            ridge: 0.1,
            trials: 24,
            tail: 0.4,
            experience: true,
            siblings: true,
            policy: None,
            start: BTreeMap::new(),
        }
    }
}

impl ExpertAgent {
    pub(super) fn check(&self, theta: &Theta) -> Result<(), SetupError> {
        check_start("agent.expert_iteration.start", &self.start, theta)?;
        if let Some(policy) = &self.policy {
            policies::check_bundle("agent.expert_iteration.policy", policy)?;
        }
        if let Some(group) = theta.groups().first() {
            let expected = "an experiment without [[services]], several [[tenants]] and [environment.faults.bugs]";
            return Err(SetupError::Value {
                key: "agent.expert_iteration",
                value: format!("an experiment with parameters of {group:?}").to_lowercase(),
                expected: expected.into(),
            });
        }
        let positive = |value: f64| value > 0.0 && value <= 1e9;
        let checks: [(&'static str, f64, bool, &str); 10] = [
            ("agent.expert_iteration.rounds", self.rounds as f64, self.rounds > 0, "at least 1"),
            ("agent.expert_iteration.episodes", self.episodes as f64, self.episodes > 0, "at least 1"),
            ("agent.expert_iteration.moments", self.moments as f64, self.moments > 0, "at least 1"),
            ("agent.expert_iteration.jobs", self.jobs as f64, self.jobs > 0, "at least 1"),
            ("agent.expert_iteration.trials", self.trials as f64, self.trials > 0, "at least 1"),
            ("agent.expert_iteration.nudge", self.nudge, self.nudge > 0.0 && self.nudge <= 30.0, "above 0, at most 30"),
            ("agent.expert_iteration.span_secs", self.span_secs, positive(self.span_secs), "above 0 and at most 1e9"),
            ("agent.expert_iteration.step", self.step, self.step > 0.0 && self.step <= 100.0, "above 0, at most 100"),
            ("agent.expert_iteration.ridge", self.ridge, (0.0..=1e6).contains(&self.ridge), "0 to 1e6"),
            ("agent.expert_iteration.tail", self.tail, (0.0..=100.0).contains(&self.tail), "0 to 100"),
        ];
        match checks.into_iter().find(|(_, _, ok, _)| !ok) {
            Some((key, value, _, expected)) => {
                Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() })
            }
            None => Ok(()),
        }
    }
}
