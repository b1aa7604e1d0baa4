//! Errors of sweeps.

use std::io;
use std::path::PathBuf;

use goodput_configs::error::ReadError;
use goodput_configs::scenario::SetupError;
use goodput_datasets::DataError;
use thiserror::Error;

use super::shared_folder::SharedFolderError;
use crate::entries::EntryError;
use crate::run::RunError;

/// Reason for which a sweep stops.
#[derive(Debug, Error)]
pub enum SweepError {
    /// A policy of the study cannot be compared.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// A workload of the study cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The study is ill-formed, or a run fails.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The plan holds an experiment that cannot be read.
    #[error(transparent)]
    Experiment(#[from] ReadError),
    /// A file of results or of a cell cannot be read or written.
    #[error("{0}; {remedy}", remedy = .0.remedy())]
    Data(#[from] DataError),
    /// A file of the sweep cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// File or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file of the sweep is not what it should be.
    #[error("{} is damaged: {problem}", path.display())]
    Damaged {
        /// File that is damaged.
        path: PathBuf,
        /// Description of the defect.
        problem: String,
    },
    /// Another build made the plan.
    #[error("build {planned} planned this sweep, and this is build {own}: another build may compute other results")]
    Build {
        /// Build that made the plan.
        planned: String,
        /// Build that reads the plan.
        own: String,
    },
    /// A file that the study depends on is another one than at the time of the plan.
    #[error("{what} has changed since the sweep was planned")]
    Changed {
        /// Name of the policy or of the workload.
        what: String,
    },
    /// The folder of cells cannot be used, or two runs of one cell gave different results.
    #[error(transparent)]
    Shared(#[from] SharedFolderError),
    /// Cells are missing in a merge.
    #[error("{missing} of {total} cells are missing, the first is {first}")]
    Missing {
        /// Number of missing cells.
        missing: usize,
        /// Number of cells of the study.
        total: usize,
        /// Name of the first missing cell.
        first: String,
    },
}

impl SweepError {
    /// Error about a file or a folder.
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// Remedy of the error, where the error does not say it already.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Build { .. } => Some("run the program that planned the sweep, or plan it anew elsewhere".into()),
            Self::Changed { .. } => Some("restore the file, or plan the sweep anew in another directory".into()),
            Self::Shared(error) => error.remedy().map(str::to_owned),
            Self::Missing { .. } => Some("`goodput sweep run DIR` computes them".into()),
            Self::Damaged { .. } => Some("delete the file, and run the sweep again".into()),
            Self::Setup(error) => error.remedy().map(str::to_owned),
            _ => None,
        }
    }
}
