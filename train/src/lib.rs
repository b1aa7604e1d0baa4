//! Learning loops driven by a configuration file.
//!
//! Layout:
//!
//! - [`episodes`]: training episodes, drawn by seed.
//! - [`rollout`], [`scaling`]: experience from environments on all cores; [`guide`]: the
//!   policy that is imitated or logged.
//! - [`ppo`], [`cem`], [`evolution`]: the loops; `warm_start` imitates a heuristic
//!   first.
//! - [`expert_iteration`]: exact rollouts of changes, and a utility or a net that is fitted to what they show.
//! - [`evaluator`]: what candidates of a search cost on episodes; [`spool`]: the evaluator of many machines.
//! - [`queue`]: learned orders of batch queues.
//! - [`returns`]: what a run costs from any moment on.
//! - `training_run`: the parts that the loops share; `updates`: when a learner is validated, saved and stopped.
//! - [`log`], [`offline`]: decisions of heuristics in a file, and learning from them.
//! - [`forecaster`]: neural forecasters on a load series.
//! - `entries`: the policies that are imitated or logged; [`export`]: a trained model as a bundle.
//! - [`validate`]: how good the policy is, by the code that makes the final table; [`gate`]:
//!   whether that is good enough.
//! - [`memory`]: freed memory is kept for the next update.
//! - [`model_card`]: the page that goes with a policy that is given away.
//! - [`checkpoint`]: everything a run needs to continue as if it had never stopped.
//! - `search_state`: what a search needs to continue.
//! - [`run_dir`], [`recorder`]: one run, one directory.
//!
//! **Invariant.** What a run learns depends on its configuration only: not on the clock, the number
//! of threads, or on whether it was stopped and resumed.

pub mod cem;
pub mod checkpoint;
pub mod constraint;
pub mod cost;
mod entries;
pub mod episodes;
mod error;
pub mod evaluator;
pub mod evolution;
pub mod expert_iteration;
pub mod export;
pub mod forecaster;
pub mod gate;
pub mod guide;
pub mod log;
pub mod memory;
pub mod model_card;
pub mod offline;
pub mod ppo;
pub mod queue;
pub mod recorder;
pub mod returns;
pub mod rollout;
pub mod run_dir;
pub mod scaling;
mod search_state;
pub mod spool;
mod training_run;
mod updates;
pub mod validate;
mod warm_start;

use std::sync::atomic::AtomicBool;

pub use error::TrainError;

use goodput_agents::bundle::PolicyBundle;

use crate::evolution::Objective;
use crate::run_dir::RunDir;
use crate::spool::SearchCoordinator;
use goodput_configs::experiment::{AgentConfig, EvolutionAgent, Experiment};

/// State of a training loop, as passed to the caller after each update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Name of the phase, such as `train` or `search`.
    pub phase: &'static str,
    /// Units of work that are done.
    pub done: u64,
    /// Units of work in all.
    pub total: u64,
    /// Name of the unit, in the plural: `decisions`, `episodes`.
    pub unit: &'static str,
    /// Mean completion time on validation seeds, seconds, once known.
    pub validation_jct_secs: Option<f64>,
    /// Mean completion time on validation seeds of the best heuristic that decides quickly (all but
    /// the genetic search of Pollux), seconds.
    pub best_heuristic_jct_secs: Option<f64>,
}

/// Callbacks and facts that the caller of a training loop provides.
pub struct Hooks<'a> {
    /// Set from outside to stop after the current update; the run can be resumed.
    pub stop: &'a AtomicBool,
    /// Called after each update.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Command line of the run, for the bundle's provenance.
    pub argv: Vec<String>,
}

/// End of a training loop.
#[derive(Debug)]
pub enum Trained {
    /// The budget is used up; the best policy on the validation seeds.
    Complete(Box<PolicyBundle>),
    /// Stopped; a checkpoint is written.
    Stopped,
}

/// The evolution that an experiment describes, which other machines can help.
///
/// # Errors
/// [`TrainError::NotDistributed`] where the experiment has another learner, [`TrainError::NoAgent`] where it has none.
pub fn distributable(experiment: &Experiment) -> Result<&EvolutionAgent, TrainError> {
    let agent = match &experiment.agent {
        Some(AgentConfig::Evolution(agent)) => return Ok(agent),
        Some(AgentConfig::Ppo(_)) => "[agent.ppo]",
        Some(AgentConfig::Cem(_)) => "[agent.cem]",
        Some(AgentConfig::Hold(_)) => "[agent.hold]",
        Some(AgentConfig::Offline(_)) => "[agent.offline]",
        Some(AgentConfig::Queue(_)) => "[agent.queue]",
        Some(AgentConfig::Expert(_)) => "[agent.expert_iteration]",
        None => return Err(TrainError::NoAgent),
    };
    Err(TrainError::NotDistributed { agent })
}

/// Trains the evolution of an experiment in `dir` together with workers on any number of machines that reach `dir`;
/// without workers it goes on alone. `build` names the program, which workers must have too. The result is that of
/// [`train`].
///
/// # Errors
/// [`TrainError::NotDistributed`] where the experiment has another learner; [`TrainError`] as of [`train`].
pub fn train_distributed(
    experiment: &Experiment,
    dir: &RunDir,
    hooks: &Hooks<'_>,
    build: &str,
) -> Result<Trained, TrainError> {
    memory::keep_freed();
    let objective = Objective::new(experiment, distributable(experiment)?)?;
    let coordinator = SearchCoordinator::start(&objective, dir, build)?;
    let trained = evolution::search(&objective, &coordinator, dir, hooks)?;
    coordinator.clear();
    Ok(trained)
}

/// Trains the experiment in `dir`, from its latest checkpoint if there is one.
///
/// # Errors
/// [`TrainError`] naming the file, the key or the update that failed.
pub fn train(experiment: &Experiment, dir: &RunDir, hooks: &Hooks<'_>) -> Result<Trained, TrainError> {
    memory::keep_freed();
    match &experiment.agent {
        Some(AgentConfig::Ppo(agent)) => ppo::train(experiment, agent, dir, hooks),
        Some(AgentConfig::Cem(agent)) => cem::train(experiment, agent, dir, hooks),
        Some(AgentConfig::Evolution(agent)) => evolution::train(experiment, agent, dir, hooks),
        Some(AgentConfig::Expert(agent)) => expert_iteration::utility::train(experiment, agent, dir, hooks),
        Some(AgentConfig::Hold(agent)) => expert_iteration::hold::train(experiment, agent, dir, hooks),
        Some(AgentConfig::Offline(agent)) => offline::train(experiment, agent, dir, hooks),
        Some(AgentConfig::Queue(agent)) => queue::train(experiment, agent, dir, hooks),
        None => Err(TrainError::NoAgent),
    }
}
