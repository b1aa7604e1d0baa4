//! Room of sweeps: studies that are run cell by cell, on one machine or on many, and that go on where they stopped.
//!
//! A **cell** is one run: a policy on a workload under a seed. Its key is a hash of everything that its result depends
//! on, and its file holds everything that the results of the study take from it.
//!
//! Files, each of which uses only those above it:
//!
//! - `shared_folder`: files that many tasks write, each of them once.
//! - `error`: what can go wrong.
//! - `content`: hashes of what a cell depends on.
//! - `study`: policies, workloads and seeds, from experiments.
//! - `plan`: the cells of a study with their keys, as `plan.json` holds them.
//! - `cell`: the file of a finished cell.
//! - `store`: the directory of finished cells.
//! - `player`: what plays the cells of one workload.
//! - `shards`: cells dealt out to tasks by their cost.
//! - `sweep`: a plan that is run, and merged into results.

mod cell;
mod content;
mod error;
mod plan;
mod player;
mod shards;
mod shared_folder;
mod store;
mod study;
#[expect(clippy::module_inception, reason = "the room is named after what it is about")]
mod sweep;

pub use cell::FinishedCell;
pub use content::{build_of, files_of};
pub use error::SweepError;
pub use plan::{PlannedCell, PlannedPolicy, PlannedWorkload, SweepPlan};
pub use shards::SweepShard;
pub use shared_folder::{SharedFolder, SharedFolderError, Stored};
pub use store::CellStore;
pub use study::{StudyWorkload, SweepStudy};
pub use sweep::Sweep;
