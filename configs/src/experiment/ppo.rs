//! Settings of `[agent.ppo]`: proximal policy optimisation.

use crate::policies::{self, PolicyText};
use crate::scenario::SetupError;
use goodput_agents::nets::weights::NetConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Proximal policy optimisation (Schulman et al. 2017) with the details that matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PpoAgent {
    /// Network of the policy and of the critic.
    pub net: NetConfig,
    /// Environments stepped side by side.
    pub envs: usize,
    /// Decisions of each environment between updates.
    pub steps_per_env: usize,
    /// Learning rate at the start; it falls linearly to zero.
    pub learning_rate: f64,
    /// Passes over the data of an update.
    pub epochs: usize,
    /// Decisions in a minibatch.
    pub minibatch: usize,
    /// Clipping range of the probability ratio.
    pub clip: f64,
    /// Time in which the weight of the future halves, seconds; discounting is per time, never per
    /// decision.
    pub half_life_secs: f64,
    /// Weight of longer returns over the critic, per decision or per `trace_secs`.
    pub gae_lambda: f64,
    /// Time over which `gae_lambda` applies once, seconds; absent: `gae_lambda` applies per
    /// decision. The decisions of one round take no time and do not shorten the trace.
    pub trace_secs: Option<f64>,
    /// Weight of the entropy bonus at the start; it falls linearly to a tenth.
    pub entropy: f64,
    /// Weight of the value loss.
    pub value_coefficient: f64,
    /// Largest norm of the gradient.
    pub max_grad_norm: f64,
    /// An update stops early beyond this divergence from the policy that collected its data; 0:
    /// never.
    pub target_kl: f64,
    /// Decisions over which only the critic learns, after a warm start.
    pub critic_warmup: u64,
    /// Baseline that goes by the arrivals; absent: the critic is the baseline.
    pub input_baseline: Option<InputBaseline>,
    /// Imitation before reinforcement.
    pub warm_start: Option<WarmStart>,
}

/// Baseline of what other runs of an episode cost (Mao et al. 2019, "Variance reduction for reinforcement learning in
/// input-driven environments"). An update plays whole episodes, `runs` times each, so `envs` counts the runs, and
/// `steps_per_env` is for imitation alone. No critic learns: `gae_lambda`, `trace_secs`, `value_coefficient` and
/// `critic_warmup` have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputBaseline {
    /// Runs of an episode.
    pub runs: usize,
    /// Whether an episode is also played by the imitated policy, without exploration, as one of the runs that an
    /// action is compared with.
    #[serde(default)]
    pub reference: bool,
}

impl Default for PpoAgent {
    fn default() -> Self {
        Self {
            net: NetConfig::Set(Default::default()),
            envs: 32,
            steps_per_env: 128,
            learning_rate: 1e-3,
            epochs: 4,
            minibatch: 512,
            clip: 0.2,
            half_life_secs: 3600.0,
            gae_lambda: 0.95,
            trace_secs: None,
            entropy: 0.01,
            value_coefficient: 0.5,
            max_grad_norm: 0.5,
            target_kl: 0.02,
            critic_warmup: 0,
            input_baseline: None,
            warm_start: None,
        }
    }
}

/// Imitation of a heuristic on the learner's own states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WarmStart {
    /// The heuristic, by name.
    #[serde(deserialize_with = "policies::name")]
    #[schemars(with = "PolicyText")]
    pub teacher: String,
    /// Number of labelled decisions to imitate.
    pub decisions: u64,
    /// Learning rate of the imitation; absent: 0.002.
    #[serde(default = "imitation_rate")]
    pub learning_rate: f64,
    /// Passes over the labelled decisions.
    #[serde(default = "imitation_epochs")]
    pub epochs: usize,
    /// Decisions in a minibatch.
    #[serde(default = "imitation_minibatch")]
    pub minibatch: usize,
    /// Weight of a penalty on divergence from the imitated policy while reinforcement begins; it
    /// falls linearly to zero over the first third.
    #[serde(default)]
    pub kl_penalty: f64,
}

fn imitation_rate() -> f64 {
    2e-3
}

fn imitation_epochs() -> usize {
    4
}

fn imitation_minibatch() -> usize {
    256
}

impl PpoAgent {
    /// Rate of discounting, per second.
    pub fn beta(&self) -> f64 {
        std::f64::consts::LN_2 / self.half_life_secs
    }

    pub(super) fn check(&self) -> Result<(), SetupError> {
        let trace = self.trace_secs.unwrap_or(1.0);
        let checks: [(&'static str, f64, bool, &str); 10] = [
            ("agent.ppo.trace_secs", trace, trace > 0.0, "a positive number of seconds"),
            ("agent.ppo.envs", self.envs as f64, (1..=65536).contains(&self.envs), "1 to 65536"),
            ("agent.ppo.steps_per_env", self.steps_per_env as f64, self.steps_per_env > 0, "at least 1"),
            ("agent.ppo.epochs", self.epochs as f64, self.epochs > 0, "at least 1"),
            ("agent.ppo.minibatch", self.minibatch as f64, self.minibatch > 0, "at least 1"),
            (
                "agent.ppo.learning_rate",
                self.learning_rate,
                self.learning_rate > 0.0 && self.learning_rate < 1.0,
                "above 0 and below 1",
            ),
            ("agent.ppo.clip", self.clip, self.clip > 0.0 && self.clip < 1.0, "above 0 and below 1"),
            (
                "agent.ppo.half_life_secs",
                self.half_life_secs,
                self.half_life_secs > 0.0,
                "a positive number of seconds",
            ),
            ("agent.ppo.gae_lambda", self.gae_lambda, (0.0..=1.0).contains(&self.gae_lambda), "0 to 1"),
            ("agent.ppo.max_grad_norm", self.max_grad_norm, self.max_grad_norm > 0.0, "above 0"),
        ];
        match checks.into_iter().find(|(_, _, ok, _)| !ok) {
            Some((key, value, _, expected)) => {
                Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() })
            }
            None => self.check_input_baseline(),
        }
    }

    fn check_input_baseline(&self) -> Result<(), SetupError> {
        let Some(InputBaseline { runs, reference }) = self.input_baseline else { return Ok(()) };
        let wrong = |key, value: String, expected: &str| {
            let expected = expected.into();
            Err(SetupError::Value { key, value, expected })
        };
        if runs < 2 || !self.envs.is_multiple_of(runs) {
            let key = "agent.ppo.input_baseline.runs";
            return wrong(key, runs.to_string(), "2 or more, and a divisor of agent.ppo.envs");
        }
        if reference && self.warm_start.is_none() {
            let key = "agent.ppo.input_baseline.reference";
            return wrong(key, "true".into(), "false without [agent.ppo.warm_start]: no policy is imitated");
        }
        Ok(())
    }
}
