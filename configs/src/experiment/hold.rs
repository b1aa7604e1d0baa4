//! Settings of `[agent.hold]`: a net that learns from exact rollouts which changes of a published policy to hold back.

use super::Experiment;
use crate::policies::{self, PolicyText};
use crate::scenario::SetupError;
use goodput_agents::learning::advantages::AdvantageConfig;
use goodput_agents::nets::weights::SetConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Expert iteration (Anthony, Tian, Barber, NIPS 2017) of a net around a published policy
/// (`goodput_agents::policies::hold`). The expert is the simulator. At moments of training episodes it holds back some
/// of the teacher's changes for a while and carries others out, and plays the opposite as well, each for some hours
/// under the policy of the round. The net is fitted to what holding back saves, and with a threshold it is the policy
/// of the next round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HoldAgent {
    /// The published policy around which the net learns; the exported policy must not be worse.
    #[serde(deserialize_with = "policies::name")]
    #[schemars(with = "PolicyText")]
    pub teacher: String,
    /// Number of rounds.
    pub rounds: u64,
    /// Episodes of a round in which changes are tried; new ones each round.
    pub episodes: u64,
    /// Moments of an episode at which changes are tried.
    pub moments: u64,
    /// Most changes that are tried at once; each is held back or carried out at random.
    pub changes: usize,
    /// Seconds for which a change is held back or carried out, whatever the policy says.
    pub span_secs: f64,
    /// Seconds after a moment for which the episode is played. The work that jobs have left then counts as long as it
    /// takes on an equal share of the accelerators.
    pub horizon_secs: f64,
    /// Set encoder over the changes of a plan.
    pub net: SetConfig,
    /// Fit of the net to the advantages.
    pub fit: AdvantageConfig,
    /// Share by which labels of earlier rounds count, from round to round: the policy has moved since.
    pub fading: f64,
    /// Episodes on which thresholds are compared; new ones each round.
    pub trials: u64,
    /// Weight of the 99th percentile of completion times beside their mean.
    pub tail: f64,
}

impl Default for HoldAgent {
    fn default() -> Self {
        Self {
            teacher: "sia".into(),
            rounds: 3,
            episodes: 160,
            moments: 12,
            changes: 8,
            span_secs: 3600.0,
            horizon_secs: 7200.0,
            net: SetConfig::default(),
            fit: AdvantageConfig::default(),
            fading: 0.7,
            trials: 32,
            tail: 0.4,
        }
    }
}

impl HoldAgent {
    pub(super) fn check(&self, experiment: &Experiment) -> Result<(), SetupError> {
        if !experiment.services.is_empty() || experiment.tenants.len() > 1 {
            return Err(SetupError::Value {
                key: "agent.hold",
                value: "an experiment with services or tenants".into(),
                expected: "an experiment without [[services]] and several [[tenants]]".into(),
            });
        }
        let positive = |value: f64| value > 0.0 && value <= 1e9;
        let (minibatch, rate) = (self.fit.minibatch, f64::from(self.fit.learning_rate));
        let norm = f64::from(self.fit.max_grad_norm);
        let checks: [(&'static str, f64, bool, &str); 13] = [
            ("agent.hold.rounds", self.rounds as f64, self.rounds > 0, "at least 1"),
            ("agent.hold.episodes", self.episodes as f64, self.episodes > 4, "at least 5"),
            ("agent.hold.moments", self.moments as f64, self.moments > 0, "at least 1"),
            ("agent.hold.changes", self.changes as f64, self.changes > 0, "at least 1"),
            ("agent.hold.trials", self.trials as f64, self.trials > 0, "at least 1"),
            ("agent.hold.span_secs", self.span_secs, positive(self.span_secs), "above 0 and at most 1e9"),
            ("agent.hold.horizon_secs", self.horizon_secs, positive(self.horizon_secs), "above 0 and at most 1e9"),
            ("agent.hold.fading", self.fading, (0.0..=1.0).contains(&self.fading), "0 to 1"),
            ("agent.hold.tail", self.tail, (0.0..=100.0).contains(&self.tail), "0 to 100"),
            ("agent.hold.fit.minibatch", minibatch as f64, minibatch > 0, "at least 1"),
            ("agent.hold.fit.learning_rate", rate, rate > 0.0 && rate <= 1.0, "above 0 and at most 1"),
            ("agent.hold.fit.max_grad_norm", norm, positive(norm), "above 0 and at most 1e9"),
            ("agent.hold.fit.epochs", self.fit.epochs as f64, self.fit.epochs > 0, "at least 1"),
        ];
        match checks.into_iter().find(|(_, _, ok, _)| !ok) {
            Some((key, value, _, expected)) => {
                Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() })
            }
            None => Ok(()),
        }
    }
}
