//! Runs of an order: what a score costs on workloads.

use std::sync::Arc;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::compose::loaning::complete;
use goodput_agents::policies::queue::{LearnedQueue, QueueRule, QueueScore};
use goodput_configs::experiment::{Experiment, QueueAgent, QueueObjective};
use goodput_configs::scenario::Setup;
use goodput_configs::seeds::VALIDATION;
use goodput_env::gym::EnvError;
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::sim::{Outcome, Simulator};
use rayon::prelude::*;

use super::objective::{FigureNames, cost, names};
use crate::Hooks;
use crate::episodes::Episodes;
use crate::error::TrainError;
use crate::export::bundle;
use crate::run_dir::RunDir;

/// Workloads of an experiment, the rule by which queues are run on them, and what a run costs.
pub(super) struct QueueRuns<'a> {
    pub experiment: &'a Experiment,
    pub rule: QueueRule,
    pub objective: QueueObjective,
    setup: Setup,
    training: Episodes,
    validation: Vec<Arc<Scenario>>,
    argv: Vec<String>,
    config_sha256: String,
}

impl<'a> QueueRuns<'a> {
    pub fn new(
        experiment: &'a Experiment,
        agent: &QueueAgent,
        dir: &RunDir,
        hooks: &Hooks<'_>,
    ) -> Result<Self, TrainError> {
        let setup = experiment.setup()?;
        let seeds = VALIDATION..VALIDATION + experiment.train.validation_seeds;
        Ok(Self {
            experiment,
            rule: agent.rule,
            objective: agent.objective,
            validation: seeds.map(|seed| setup.scenario(seed)).collect(),
            training: Episodes::new(experiment)?,
            setup,
            argv: hooks.argv.clone(),
            config_sha256: dir.config_sha256()?,
        })
    }

    /// Hash of the configuration that checkpoints belong to.
    pub fn config_sha256(&self) -> &str {
        &self.config_sha256
    }

    /// Workloads `first` to `first + count` of those to learn from.
    pub fn training(&self, first: u64, count: u64) -> Vec<Arc<Scenario>> {
        self.training.range(self.experiment.seed, first, count)
    }

    /// Runs a policy on a workload.
    pub fn play(&self, scenario: &Arc<Scenario>, policy: Box<dyn Policy>) -> Result<Outcome, TrainError> {
        let mut policy = complete(policy, scenario, self.setup.sharing());
        Ok(Simulator::new(scenario.clone()).run(&mut *policy).map_err(EnvError::from)?)
    }

    /// Names of the figures of this training.
    pub fn names(&self) -> FigureNames {
        names(self.objective)
    }

    /// Cost of each score on each workload, score by score.
    pub fn costs(&self, scores: &[QueueScore], on: &[Arc<Scenario>]) -> Result<Vec<Vec<f64>>, TrainError> {
        let cells = scores.len() * on.len();
        let cost_of = |cell: usize| {
            let workload = &on[cell % on.len()];
            let queue = LearnedQueue { score: scores[cell / on.len()].clone(), rule: self.rule };
            Ok(cost(self.objective, workload, &self.play(workload, queue.policy())?))
        };
        // All runs end before errors are looked at, so that the first error is the first in order.
        let all: Vec<Result<f64, TrainError>> = (0..cells).into_par_iter().map(cost_of).collect();
        let all = all.into_iter().collect::<Result<Vec<f64>, TrainError>>()?;
        Ok(all.chunks(on.len()).map(<[f64]>::to_vec).collect())
    }

    /// Mean cost of a score over the validation workloads.
    pub fn validate(&self, score: &QueueScore) -> Result<f64, TrainError> {
        let costs = self.costs(std::slice::from_ref(score), &self.validation)?;
        Ok(mean(&costs[0]))
    }

    /// The trained policy.
    pub fn bundle(&self, score: QueueScore, steps: u64) -> PolicyBundle {
        let provenance = Provenance {
            argv: self.argv.clone(),
            seed: self.experiment.seed,
            steps,
            config_sha256: self.config_sha256.clone(),
        };
        bundle(Model::Queue(LearnedQueue { score, rule: self.rule }), self.experiment, &self.setup, provenance)
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
