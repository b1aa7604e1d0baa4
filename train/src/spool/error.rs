//! Errors of sharing a search.

use std::path::PathBuf;
use std::time::Duration;

use goodput_eval::sweep::{SharedFolderError, SweepError};
use thiserror::Error;

/// Reason for which a search cannot be shared with other machines.
#[derive(Debug, Error)]
pub enum SpoolError {
    /// A file of the spool cannot be read or written, or two machines computed different costs.
    #[error(transparent)]
    Shared(#[from] SharedFolderError),
    /// A file that the experiment names cannot be read.
    #[error(transparent)]
    Content(#[from] SweepError),
    /// A file of the spool is not what it should be.
    #[error("{} is damaged: {problem}", path.display())]
    Damaged {
        /// File that is damaged.
        path: PathBuf,
        /// Description of the defect.
        problem: String,
    },
    /// The worker is another program than the coordinator.
    #[error(
        "build {posted} coordinates this training, and this is build {own}: another build may compute other results"
    )]
    Build {
        /// Build of the coordinator.
        posted: String,
        /// Build of the worker.
        own: String,
    },
    /// The worker sees other input than the coordinator.
    #[error("this worker does not see what the coordinator sees: {what} has other contents")]
    Input {
        /// Description of the input.
        what: &'static str,
    },
    /// A worker found another cost for a run that was stored already.
    #[error("two machines computed different costs for one run: {} and {}", kept.display(), refused.display())]
    Disagreement {
        /// File of the first cost.
        kept: PathBuf,
        /// File of the second cost.
        refused: PathBuf,
    },
    /// There is no coordinator.
    #[error("no training in {} wanted workers for {} s", dir.display(), waited.as_secs())]
    Absent {
        /// Run directory that the worker was given.
        dir: PathBuf,
        /// Time that the worker has waited.
        waited: Duration,
    },
    /// The coordinator is gone.
    #[error("the training in {} has given no sign of life for {} s", dir.display(), waited.as_secs())]
    Silent {
        /// Run directory that the worker was given.
        dir: PathBuf,
        /// Time since its last sign of life.
        waited: Duration,
    },
}

impl SpoolError {
    /// Remedy of the error, where the error does not say it already.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Shared(error) => error.remedy().map(str::to_owned),
            Self::Content(error) => error.remedy(),
            Self::Damaged { .. } => Some("delete the file, and resume the training".into()),
            Self::Build { .. } => Some("start workers with the program that trains".into()),
            Self::Input { .. } => Some(
                "start the worker in the folder in which the training was started, on a machine with equal files"
                    .into(),
            ),
            Self::Disagreement { .. } => Some(
                "find out which worker has a different processor, C library or program, delete the folder spool of \
                 the run, and resume the training without that worker"
                    .into(),
            ),
            Self::Absent { dir, .. } => {
                Some(format!("start one: goodput train EXPERIMENT.toml --distributed --run-dir {}", dir.display()))
            }
            Self::Silent { dir, .. } => {
                Some(format!("resume it: goodput train --resume {} --distributed", dir.display()))
            }
        }
    }

    /// Whether a file or a folder is not there.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Self::Shared(error) if error.is_absence())
    }
}
