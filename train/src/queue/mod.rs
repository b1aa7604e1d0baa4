//! Learned orders of batch queues (`goodput_agents::policies::queue`).
//!
//! - `runs`: what a score costs on workloads; `objective`: costs of a run.
//! - `evolution`: CMA-ES over a linear score.
//! - `ppo`: proximal policy optimisation of a set encoder; `choices`: its experience.
//!
//! Both learners are told the cost of a workload by the agent's objective, and both export the score with the least
//! mean cost on the validation seeds.

mod choices;
mod evolution;
mod objective;
mod ppo;
mod runs;

use goodput_configs::experiment::{Experiment, QueueAgent, QueueLearner};

use crate::error::TrainError;
use crate::run_dir::RunDir;
use crate::{Hooks, Trained};

/// Trains from the latest checkpoint, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &QueueAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let runs = runs::QueueRuns::new(experiment, agent, dir, hooks)?;
    match &agent.learner {
        QueueLearner::Evolution(evolution) => evolution::train(&runs, evolution, dir, hooks),
        QueueLearner::Ppo(ppo) => ppo::train(&runs, ppo, dir, hooks),
    }
}
