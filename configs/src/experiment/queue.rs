//! Settings of `[agent.queue]`: a learned order of a batch queue.

use std::num::NonZeroUsize;

use goodput_agents::nets::weights::SetConfig;
use goodput_agents::policies::queue::QueueRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::SetupError;

/// An order of a batch queue that is learned for one objective. The greatest score comes first, in the rule that the
/// heuristics have (`goodput_agents::policies::queue`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueAgent {
    /// Rule of the queue that the order serves; absent: EASY backfill.
    #[serde(default)]
    pub rule: QueueRule,
    /// Quantity that the order is learned for; absent: bounded slowdown.
    #[serde(default)]
    pub objective: QueueObjective,
    /// Learner, and with it the form of the score.
    pub learner: QueueLearner,
}

/// Quantity of a workload that an order is learned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum QueueObjective {
    /// Mean bounded slowdown of the jobs, as small as possible.
    #[default]
    BoundedSlowdown,
    /// Accelerator time held by jobs over capacity times makespan, as great as possible. Orders differ in it only by
    /// the end of the last job.
    Utilization,
}

/// Learner of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueLearner {
    /// Evolution of a weighted sum of the features of a job.
    Evolution(QueueEvolution),
    /// Proximal policy optimisation of a set encoder over the queue.
    Ppo(QueuePpo),
}

/// CMA-ES over the weights of a linear score, which starts from smallest area first. All candidates of a generation
/// meet equal workloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueEvolution {
    /// Candidates of a generation, at least 4.
    pub population: usize,
    /// Number of generations of the search.
    pub generations: u64,
    /// Workloads that score a candidate; new ones each generation.
    pub episodes: u64,
    /// First step of each weight.
    pub step: f64,
}

impl Default for QueueEvolution {
    fn default() -> Self {
        Self { population: 16, generations: 40, episodes: 12, step: 0.4 }
    }
}

/// Proximal policy optimisation (Schulman et al. 2017) of a set encoder. A choice is the next job, drawn from
/// the softmax of the scores.
///
/// What arrives differs more between workloads than policies do. So several runs share a workload, and the baseline of
/// a choice is what the other runs of its workload cost from that time on (input-dependent baseline; Mao et al.,
/// arXiv:1807.02264). The defaults are settings that validation chose, and 240 updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueuePpo {
    /// Set encoder of the score.
    pub net: SetConfig,
    /// Largest queue that is learned from; a choice in a longer queue is made but not learned from.
    pub slots: usize,
    /// Number of updates.
    pub updates: u64,
    /// Workloads of an update; new ones each time.
    pub episodes: u64,
    /// Runs of each workload, at least 2.
    pub runs: u64,
    /// Learning rate at the start; it falls linearly to zero.
    pub learning_rate: f64,
    /// Passes over the choices of an update.
    pub epochs: usize,
    /// Choices in a minibatch.
    pub minibatch: usize,
    /// Clipping range of the probability ratio.
    pub clip: f64,
    /// Weight of the entropy bonus at the start; it falls linearly to zero.
    pub entropy: f64,
    /// Largest norm of the gradient.
    pub max_grad_norm: f64,
    /// An update stops early beyond this divergence from the policy that made its choices; 0: never.
    pub target_kl: f64,
}

impl Default for QueuePpo {
    fn default() -> Self {
        Self {
            net: SetConfig::new(NonZeroUsize::new(16).unwrap_or(NonZeroUsize::MIN)),
            slots: 256,
            updates: 240,
            episodes: 4,
            runs: 6,
            learning_rate: 1e-2,
            epochs: 4,
            minibatch: 256,
            clip: 0.2,
            entropy: 0.002,
            max_grad_norm: 0.5,
            target_kl: 0.05,
        }
    }
}

impl QueueAgent {
    pub(super) fn check(&self) -> Result<(), SetupError> {
        match &self.learner {
            QueueLearner::Evolution(evolution) => evolution.check(),
            QueueLearner::Ppo(ppo) => ppo.check(),
        }
    }
}

/// Key, value, whether it is allowed, and what is.
type Check = (&'static str, f64, bool, &'static str);

fn first_wrong(checks: &[Check]) -> Result<(), SetupError> {
    match checks.iter().find(|(_, _, ok, _)| !ok) {
        Some((key, value, _, expected)) => {
            Err(SetupError::Value { key, value: value.to_string(), expected: (*expected).into() })
        }
        None => Ok(()),
    }
}

impl QueueEvolution {
    fn check(&self) -> Result<(), SetupError> {
        let Self { population, generations, episodes, step } = *self;
        first_wrong(&[
            (
                "agent.queue.learner.evolution.population",
                population as f64,
                (4..=4096).contains(&population),
                "4 to 4096",
            ),
            ("agent.queue.learner.evolution.generations", generations as f64, generations > 0, "at least 1"),
            ("agent.queue.learner.evolution.episodes", episodes as f64, episodes > 0, "at least 1"),
            ("agent.queue.learner.evolution.step", step, step > 0.0 && step <= 100.0, "above 0 and at most 100"),
        ])
    }
}

impl QueuePpo {
    fn check(&self) -> Result<(), SetupError> {
        let rate = self.learning_rate;
        first_wrong(&[
            ("agent.queue.learner.ppo.slots", self.slots as f64, (2..=4096).contains(&self.slots), "2 to 4096"),
            ("agent.queue.learner.ppo.updates", self.updates as f64, self.updates > 0, "at least 1"),
            ("agent.queue.learner.ppo.episodes", self.episodes as f64, self.episodes > 0, "at least 1"),
            ("agent.queue.learner.ppo.runs", self.runs as f64, (2..=1024).contains(&self.runs), "2 to 1024"),
            ("agent.queue.learner.ppo.learning_rate", rate, rate > 0.0 && rate < 1.0, "above 0 and below 1"),
            ("agent.queue.learner.ppo.epochs", self.epochs as f64, self.epochs > 0, "at least 1"),
            ("agent.queue.learner.ppo.minibatch", self.minibatch as f64, self.minibatch > 0, "at least 1"),
            ("agent.queue.learner.ppo.clip", self.clip, self.clip > 0.0 && self.clip < 1.0, "above 0 and below 1"),
            ("agent.queue.learner.ppo.entropy", self.entropy, (0.0..=1.0).contains(&self.entropy), "0 to 1"),
            ("agent.queue.learner.ppo.max_grad_norm", self.max_grad_norm, self.max_grad_norm > 0.0, "above 0"),
            ("agent.queue.learner.ppo.target_kl", self.target_kl, self.target_kl >= 0.0, "at least 0"),
        ])
    }
}
