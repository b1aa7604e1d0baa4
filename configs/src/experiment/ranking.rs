//! Policy gradients through Plackett and Luce's model, as configured.

use std::collections::BTreeMap;

use crate::scenario::SetupError;
use goodput_agents::nets::weights::SetConfig;
use goodput_agents::policies::utility::Theta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Experiment;
use super::evolution::check_start;

/// Proximal policy optimisation of a ranking of (job, size) pairs (`goodput_agents::policies::ranking`), from a utility on. One transition is one
/// round. Rollouts of an update meet the same arrivals, and what the others cost from a moment on is the baseline there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RankingAgent {
    /// The heuristic that the policy must not be worse than.
    pub teacher: String,
    /// The utility that scores begin with, by name of parameter; those of Sia's objective for parameters that are not here.
    pub start: BTreeMap<String, f64>,
    /// Whether the policy brings along what jobs of training episodes did, by model.
    pub experience: bool,
    /// Whether a job is believed to be as fast as others of its model.
    pub siblings: bool,
    /// The net.
    pub net: SetConfig,
    /// Updates.
    pub updates: u64,
    /// Arrival sequences of an update.
    pub episodes: u64,
    /// Rollouts of each of them, at least 2.
    pub rollouts: usize,
    /// Scores are divided by it before they are drawn from: how far rollouts stray from the greedy policy.
    pub temperature: f64,
    /// Time in which the weight of the future halves, seconds; absent: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life_secs: Option<f64>,
    /// Learning rate at the start; it falls linearly to zero.
    pub learning_rate: f64,
    /// Passes over the rounds of an update.
    pub epochs: usize,
    /// Rounds in a minibatch.
    pub minibatch: usize,
    /// Clipping range of the probability ratio.
    pub clip: f64,
    /// Weight of the entropy bonus at the start; it falls linearly to a tenth.
    pub entropy: f64,
    /// Weight of a penalty on divergence from the start; it falls linearly to zero over the first third.
    pub kl_penalty: f64,
    /// Largest norm of the gradient.
    pub max_grad_norm: f64,
    /// An update stops early beyond this divergence from the policy that drew its rounds; 0: never.
    pub target_kl: f64,
}

impl Default for RankingAgent {
    fn default() -> Self {
        Self {
            teacher: "pollux-fast".into(),
            start: BTreeMap::new(),
            experience: true,
            siblings: true,
            net: SetConfig::default(),
            updates: 100,
            episodes: 4,
            rollouts: 8,
            temperature: 0.1,
            half_life_secs: None,
            learning_rate: 1e-3,
            epochs: 2,
            minibatch: 2048,
            clip: 0.2,
            entropy: 0.0,
            kl_penalty: 0.01,
            max_grad_norm: 0.5,
            target_kl: 0.05,
        }
    }
}

impl RankingAgent {
    /// Whether it can learn in `experiment`.
    pub(super) fn check(&self, experiment: &Experiment) -> Result<(), SetupError> {
        check_start("agent.ranking.start", &self.start, &Theta::sia())?;
        let half_life = self.half_life_secs.unwrap_or(1.0);
        let below_one = |value: f64| value > 0.0 && value < 1.0;
        let weight = |value: f64| (0.0..=1e3).contains(&value);
        let checks: [(&'static str, f64, bool, &str); 13] = [
            ("agent.ranking.net.width", self.net.width.get() as f64, self.net.width.get() <= 1024, "1 to 1024"),
            ("agent.ranking.updates", self.updates as f64, self.updates > 0, "at least 1"),
            ("agent.ranking.episodes", self.episodes as f64, (1..=4096).contains(&self.episodes), "1 to 4096"),
            ("agent.ranking.rollouts", self.rollouts as f64, (2..=256).contains(&self.rollouts), "2 to 256"),
            ("agent.ranking.temperature", self.temperature, (1e-3..=1e3).contains(&self.temperature), "0.001 to 1000"),
            ("agent.ranking.half_life_secs", half_life, half_life > 0.0, "a positive number of seconds"),
            ("agent.ranking.learning_rate", self.learning_rate, below_one(self.learning_rate), "above 0 and below 1"),
            ("agent.ranking.epochs", self.epochs as f64, self.epochs > 0, "at least 1"),
            ("agent.ranking.minibatch", self.minibatch as f64, self.minibatch > 0, "at least 1"),
            ("agent.ranking.clip", self.clip, below_one(self.clip), "above 0 and below 1"),
            ("agent.ranking.entropy", self.entropy, weight(self.entropy), "0 to 1000"),
            ("agent.ranking.kl_penalty", self.kl_penalty, weight(self.kl_penalty), "0 to 1000"),
            ("agent.ranking.max_grad_norm", self.max_grad_norm, self.max_grad_norm > 0.0, "above 0"),
        ];
        if let Some((key, value, _, expected)) = checks.into_iter().find(|(_, _, ok, _)| !ok) {
            return Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() });
        }
        let groups = &experiment.cluster.groups;
        if groups.iter().any(|group| group.accelerator != groups[0].accelerator) {
            let expected = "accelerators of one type with [agent.ranking]; on several, [agent.evolution] learns";
            return Err(SetupError::Value {
                key: "cluster.groups",
                value: "several types".into(),
                expected: expected.into(),
            });
        }
        if !experiment.services.is_empty() {
            let expected = "no services with [agent.ranking]; beside services, [agent.evolution] learns";
            return Err(SetupError::Value { key: "services", value: "services".into(), expected: expected.into() });
        }
        Ok(())
    }
}
