//! Errors of training.

use std::path::PathBuf;

use goodput_agents::learning::learner::{CheckpointError, Diverged};
use goodput_configs::scenario::SetupError;
use goodput_datasets::DataError;
use goodput_env::gym::EnvError;
use goodput_eval::entries::EntryError;
use goodput_eval::run::RunError;
use thiserror::Error;

use crate::checkpoint::StateError;
use crate::run_dir::RunDirError;
use crate::spool::SpoolError;

/// Reason for which training stops before its end.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The configuration cannot be run.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The checkpoint cannot be continued.
    #[error(transparent)]
    State(#[from] StateError),
    /// The learner's file is damaged.
    #[error("the checkpoint cannot be read: {0}; delete it to continue from the one before")]
    Checkpoint(#[from] CheckpointError),
    /// The update failed.
    #[error("update {update}: {source}")]
    Diverged {
        /// Number of the update.
        update: u64,
        /// Quantity of the update that is not finite.
        source: Diverged,
    },
    /// An environment failed.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A validation run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The log cannot be read.
    #[error("{0}; {remedy}", remedy = .0.remedy())]
    Data(#[from] DataError),
    /// The log was made by another environment.
    #[error("{} cannot be learnt from: {problem}; log decisions of this experiment with `goodput data log`", path.display())]
    Log {
        /// Path of the decision log.
        path: PathBuf,
        /// Description of the defect.
        problem: String,
    },
    /// Nothing to train.
    #[error(
        "the experiment has no agent: add [agent.evolution], [agent.expert_iteration], [agent.hold], [agent.ppo] or [agent.cem], or compare policies with `goodput eval`"
    )]
    NoAgent,
    /// A learner that no other machine can help.
    #[error(
        "{agent} learns in one process: --distributed takes an experiment with [agent.evolution], whose episodes do not depend on each other"
    )]
    NotDistributed {
        /// Table of the agent.
        agent: &'static str,
    },
    /// The work cannot be shared with other machines.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// A name that is no policy to learn from or to compare with.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// A policy with services or requests beside it, where only training is decided.
    #[error("{name} decides more than training; name the training policy alone")]
    Composed {
        /// Name in the configuration.
        name: String,
    },
    /// The policy cannot be stored.
    #[error(transparent)]
    Bundle(#[from] goodput_agents::bundle::BundleError),
}
