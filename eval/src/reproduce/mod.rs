//! Published tables, run again: ours beside theirs with the difference.
//!
//! One file a table. Each names the public files it needs below a data directory (`data/` and
//! `reference/` as the originals are laid out), runs the policies under the conventions of that
//! publication, and gives one row a published figure.

mod afs_direction;
mod contended;
pub mod deepboot;
pub mod elasticflow;
pub mod fgd;
mod fgd_lists;
pub mod fgd_policies;
pub mod gavel;
mod gavel_deviations;
mod pipeswitch;
mod pollux_autoscaling;
pub mod pollux_table;
pub mod rlscheduler;
pub mod shockwave;
pub mod sia;
mod themis_fairness;
mod ties;
pub mod tiresias;

use std::path::{Path, PathBuf};

use goodput_datasets::DataError;
use goodput_env::sim::SimError;
use thiserror::Error;

/// A published table.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// Name on the command line.
    pub name: &'static str,
    /// Subject of the table, in one line.
    pub about: &'static str,
    /// Publication, and the artifact that made the figures.
    pub source: &'static str,
    /// Public files it reads, below the data directory.
    pub files: &'static [&'static str],
    run: fn(&Path) -> Result<Vec<ReproducedFigure>, ReproduceError>,
}

/// One published figure beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct ReproducedFigure {
    /// Policy, workload and setting of the run.
    pub case: String,
    /// Name of the measured quantity, with its unit: `jct_mean_secs`, `makespan_secs`,
    /// `allocated_percent`, ...
    pub metric: &'static str,
    /// As published; `None` where nothing was.
    pub theirs: Option<f64>,
    /// As we measure it.
    pub ours: f64,
}

impl ReproducedFigure {
    /// Ours relative to theirs, minus one.
    pub fn difference(&self) -> Option<f64> {
        self.theirs.filter(|theirs| *theirs != 0.0).map(|theirs| self.ours / theirs - 1.0)
    }
}

/// Reason for which a table cannot be reproduced.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// A public file is not there.
    #[error("{} is absent: {name} needs it", path.display())]
    Absent {
        /// Name of the table.
        name: &'static str,
        /// Path of the missing file.
        path: PathBuf,
    },
    /// A public file cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A reference file is not what it should be.
    #[error("{}: {problem}", path.display())]
    Reference {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        problem: String,
    },
    /// A run failed.
    #[error("{case}: {source}")]
    Run {
        /// Policy, workload and setting of the run.
        case: String,
        /// Error of the simulator.
        source: SimError,
    },
}

/// All of them.
pub const REPRODUCTIONS: &[Reproduction] = &[
    pollux_table::TABLE,
    pollux_autoscaling::TABLE,
    sia::SMALL,
    sia::PHILLY,
    sia::DEVIATIONS,
    tiresias::SMALL,
    tiresias::LARGE,
    tiresias::SAMPLED,
    gavel::MEDIUM,
    gavel::SIZES,
    gavel_deviations::TABLE,
    shockwave::simulated::TABLE,
    shockwave::measured::TABLE,
    afs_direction::TABLE,
    deepboot::SMALL,
    deepboot::FAIR,
    deepboot::LENDING,
    deepboot::ELASTICITY,
    elasticflow::CLUSTERS,
    elasticflow::TESTBED,
    themis_fairness::TABLE,
    fgd::TABLE,
    fgd_lists::LISTS,
    fgd::TIES,
    fgd_policies::POLICIES,
    pipeswitch::TABLE,
    rlscheduler::TABLE,
    ties::TABLE,
];

impl Reproduction {
    /// Recomputes the published figures from the public files below `data`.
    ///
    /// # Errors
    /// [`ReproduceError`] where a file is absent or unusable, or a run fails.
    pub fn run(&self, data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
        if let Some(absent) = self.files.iter().map(|file| data.join(file)).find(|file| !file.exists()) {
            return Err(ReproduceError::Absent { name: self.name, path: absent });
        }
        (self.run)(data)
    }
}
