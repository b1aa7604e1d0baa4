//! Learning from logged decisions, as configured.

use std::path::PathBuf;

use crate::scenario::SetupError;
use goodput_agents::learning::iql::IqlConfig;
use goodput_agents::nets::weights::NetConfig;
use goodput_agents::policies::rounds::Choice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Algorithm that learns a policy from a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Behaviour cloning: what was done, all decisions alike.
    Bc,
    /// Behaviour cloning of the best episodes only.
    FilteredBc,
    /// Implicit Q-learning (Kostrikov et al. 2021).
    #[default]
    Iql,
}

/// Learning from a log of decisions (`goodput data log`), without acting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OfflineAgent {
    /// Path of the log of decisions, a Parquet file.
    pub data: PathBuf,
    /// Algorithm of the learning.
    pub algorithm: Algorithm,
    /// The net, of the policy and of each critic.
    pub net: NetConfig,
    /// Learning rate at the start; it falls linearly to zero.
    pub learning_rate: f64,
    /// Decisions in a minibatch.
    pub minibatch: usize,
    /// Minibatches of an update: `train.evaluate_every` and `train.checkpoint_every` count updates.
    pub minibatches_per_update: u64,
    /// Time in which the weight of the future halves, seconds.
    pub half_life_secs: f64,
    /// Decisions at the start over which critics regress on the returns that were logged, before
    /// they bootstrap.
    pub critic_warmup: u64,
    /// Share of episodes that filtered cloning keeps, above 0 and at most 1: the episodes with the
    /// greatest return less the mean return on the same workload.
    pub keep: f64,
    /// Whether rewards are relative to the mean of the other behaviours over the same time of the
    /// same workload. Most of the cost comes from the arrivals, whatever is decided, and relative
    /// rewards spare the critics from explaining it.
    pub relative: bool,
    /// Choice among the scored actions. A clone of several policies that differ in their next
    /// action often holds the end of a round for the single most probable action; a policy that
    /// always takes that action leaves accelerators idle.
    pub choice: Choice,
    /// Constants of implicit Q-learning.
    pub iql: IqlConfig,
}

impl Default for OfflineAgent {
    fn default() -> Self {
        Self {
            data: "decisions.parquet".into(),
            algorithm: Algorithm::Iql,
            net: NetConfig::Set(Default::default()),
            learning_rate: 1e-3,
            minibatch: 256,
            minibatches_per_update: 64,
            half_life_secs: 3600.0,
            critic_warmup: 0,
            keep: 0.2,
            relative: true,
            choice: Choice::Drawn { temperature: 1.0 },
            iql: IqlConfig::default(),
        }
    }
}

impl OfflineAgent {
    pub(super) fn check(&self) -> Result<(), SetupError> {
        let target_rate = f64::from(self.iql.target_rate);
        let drawn_at = match self.choice {
            Choice::Drawn { temperature } => f64::from(temperature),
            Choice::Best => 0.0,
        };
        let checks: [(&'static str, f64, bool, &str); 9] = [
            (
                "agent.offline.choice.drawn.temperature",
                drawn_at,
                (0.0..=100.0).contains(&drawn_at),
                "0 (the most probable change) to 100",
            ),
            ("agent.offline.minibatch", self.minibatch as f64, (1..=1 << 20).contains(&self.minibatch), "1 to 1048576"),
            (
                "agent.offline.minibatches_per_update",
                self.minibatches_per_update as f64,
                (1..=65536).contains(&self.minibatches_per_update),
                "1 to 65536",
            ),
            (
                "agent.offline.learning_rate",
                self.learning_rate,
                self.learning_rate > 0.0 && self.learning_rate < 1.0,
                "above 0 and below 1",
            ),
            (
                "agent.offline.half_life_secs",
                self.half_life_secs,
                self.half_life_secs > 0.0,
                "a positive number of seconds",
            ),
            ("agent.offline.keep", self.keep, self.keep > 0.0 && self.keep <= 1.0, "above 0 and at most 1"),
            (
                "agent.offline.iql.expectile",
                f64::from(self.iql.expectile),
                self.iql.expectile > 0.0 && self.iql.expectile < 1.0,
                "above 0 and below 1",
            ),
            (
                "agent.offline.iql.temperature",
                f64::from(self.iql.temperature),
                (0.0..=100.0).contains(&self.iql.temperature),
                "0 to 100",
            ),
            (
                "agent.offline.iql.target_rate",
                target_rate,
                target_rate > 0.0 && target_rate <= 1.0,
                "above 0 and at most 1",
            ),
        ];
        match checks.into_iter().find(|(_, _, ok, _)| !ok) {
            Some((key, value, _, expected)) => {
                Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() })
            }
            None => Ok(()),
        }
    }
}
