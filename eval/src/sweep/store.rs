//! Store: the directory of finished cells.

use std::path::{Path, PathBuf};

use super::cell::FinishedCell;
use super::error::SweepError;
use super::shared_folder::{SharedFolder, Stored};
use crate::run::RunHead;

/// Directory of finished cells, a file `KEY.parquet` each.
#[derive(Clone, Debug)]
pub struct CellStore(SharedFolder);

fn file(key: &str) -> String {
    format!("{key}.parquet")
}

impl CellStore {
    /// The cells of the sweep in `dir`; the folder is made where it is absent.
    ///
    /// # Errors
    /// [`SweepError::Shared`] where it cannot be made.
    pub fn open(dir: &Path) -> Result<Self, SweepError> {
        Ok(Self(SharedFolder::open(&dir.join("cells"))?))
    }

    /// File of a cell.
    pub fn path(&self, key: &str) -> PathBuf {
        self.0.path(&file(key))
    }

    /// Whether a cell is finished.
    pub fn has(&self, key: &str) -> bool {
        self.path(key).exists()
    }

    /// Stores a finished cell.
    ///
    /// # Errors
    /// [`SweepError::Shared`] where the cell is there with other bytes, or the store cannot be written.
    pub fn put(&self, key: &str, cell: &FinishedCell) -> Result<Stored, SweepError> {
        Ok(self.0.put(&file(key), &cell.to_bytes(&self.path(key))?)?)
    }

    /// Head of a finished cell.
    ///
    /// # Errors
    /// [`SweepError`] where it is missing or damaged.
    pub fn head(&self, key: &str) -> Result<RunHead, SweepError> {
        FinishedCell::read_head(&self.path(key))
    }

    /// A finished cell.
    ///
    /// # Errors
    /// [`SweepError`] where it is missing or damaged.
    pub fn read(&self, key: &str) -> Result<FinishedCell, SweepError> {
        FinishedCell::read(&self.path(key))
    }

    /// Removes what tasks that were stopped have left.
    ///
    /// # Errors
    /// [`SweepError::Shared`] where the folder cannot be read, or a draft not be removed.
    pub fn remove_drafts(&self) -> Result<(), SweepError> {
        Ok(self.0.remove_drafts()?)
    }

    /// Removes the folder with all cells.
    ///
    /// # Errors
    /// [`SweepError::Shared`] where it cannot be removed.
    pub fn remove(self) -> Result<(), SweepError> {
        Ok(self.0.remove()?)
    }
}
