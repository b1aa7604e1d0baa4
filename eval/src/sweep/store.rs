//! Store: the directory of finished cells, which any number of tasks on any number of machines write to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::cell::FinishedCell;
use super::error::SweepError;
use crate::run::RunHead;

/// Directory of finished cells, a file `KEY.parquet` each.
///
/// A cell is written as a draft, flushed to the disk, and then linked to its name. So a file that has its name is
/// whole, whatever stops a task, and of several tasks that finish one cell the first one names the file.
#[derive(Clone, Debug)]
pub struct CellStore(PathBuf);

/// Outcome of handing a cell to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The cell is new.
    New,
    /// Another task had stored the very bytes already.
    Known,
}

impl CellStore {
    /// The cells of the sweep in `dir`; the folder is made where it is absent.
    ///
    /// # Errors
    /// [`SweepError::File`] where it cannot be made.
    pub fn open(dir: &Path) -> Result<Self, SweepError> {
        let cells = dir.join("cells");
        fs::create_dir_all(&cells).map_err(SweepError::file(&cells))?;
        Ok(Self(cells))
    }

    /// File of a cell.
    pub fn path(&self, key: &str) -> PathBuf {
        self.0.join(format!("{key}.parquet"))
    }

    /// Whether a cell is finished.
    pub fn has(&self, key: &str) -> bool {
        self.path(key).exists()
    }

    /// Stores a finished cell.
    ///
    /// # Errors
    /// [`SweepError::Differs`] where the cell is there with other bytes; the new ones stay beside it as
    /// `KEY.differs.PROCESS`. [`SweepError::File`] where the store cannot be written.
    pub fn put(&self, key: &str, cell: &FinishedCell) -> Result<Stored, SweepError> {
        let path = self.path(key);
        let bytes = cell.to_bytes(&path)?;
        let draft = self.draft(key)?;
        let write = || {
            let mut file = File::create(&draft)?;
            file.write_all(&bytes)?;
            file.sync_all()
        };
        write().map_err(SweepError::file(&draft))?;
        let stored = name(&draft, &path).map_err(SweepError::file(&path))?;
        if stored == Stored::Known && fs::read(&path).map_err(SweepError::file(&path))? != bytes {
            let refused = self.0.join(format!("{key}.differs.{}", std::process::id()));
            fs::rename(&draft, &refused).map_err(SweepError::file(&draft))?;
            return Err(SweepError::Differs { key: key.to_owned(), kept: path, refused });
        }
        if draft.exists() {
            fs::remove_file(&draft).map_err(SweepError::file(&draft))?;
        }
        // The name itself is on the disk once the folder is.
        File::open(&self.0).and_then(|folder| folder.sync_all()).map_err(SweepError::file(&self.0))?;
        Ok(stored)
    }

    /// A new, empty draft. Machines that share the directory may have tasks of one number, so the name is tried out.
    fn draft(&self, key: &str) -> Result<PathBuf, SweepError> {
        for attempt in 0_u32.. {
            let draft = self.0.join(format!("{key}.draft.{}.{attempt}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&draft) {
                Ok(_) => return Ok(draft),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < u32::MAX => {}
                Err(source) => return Err(SweepError::File { path: draft, source }),
            }
        }
        Err(SweepError::file(&self.0)(ErrorKind::AlreadyExists.into()))
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
    /// [`SweepError::File`] where the folder cannot be read, or a draft not be removed.
    pub fn remove_drafts(&self) -> Result<(), SweepError> {
        for entry in fs::read_dir(&self.0).map_err(SweepError::file(&self.0))? {
            let path = entry.map_err(SweepError::file(&self.0))?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".draft.")) {
                fs::remove_file(&path).map_err(SweepError::file(&path))?;
            }
        }
        Ok(())
    }

    /// Removes the folder with all cells.
    ///
    /// # Errors
    /// [`SweepError::File`] where it cannot be removed.
    pub fn remove(self) -> Result<(), SweepError> {
        fs::remove_dir_all(&self.0).map_err(SweepError::file(&self.0))
    }
}

/// Gives a file its name, unless another file has it.
fn name(draft: &Path, path: &Path) -> io::Result<Stored> {
    match fs::hard_link(draft, path) {
        Ok(()) => Ok(Stored::New),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Stored::Known),
        // A file system without links: renaming is as whole, and only the check of a second writer may come too late.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
            if path.exists() {
                return Ok(Stored::Known);
            }
            fs::rename(draft, path).map(|()| Stored::New)
        }
        Err(error) => Err(error),
    }
}
