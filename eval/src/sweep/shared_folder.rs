//! Shared folder: files that any number of tasks on any number of machines write, each of them once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Folder in which a file, once it has its name, is whole and never changes.
///
/// A file is written as a draft, flushed to the disk, and then linked to its name. So a file that has its name is
/// whole, whatever stops a task, and of several tasks that write one file the first one names it.
#[derive(Clone, Debug)]
pub struct SharedFolder(PathBuf);

/// Outcome of handing a file to the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The file is new.
    New,
    /// Another task had stored the very bytes already.
    Known,
}

/// Reason for which a shared folder cannot be used.
#[derive(Debug, Error)]
pub enum SharedFolderError {
    /// A file or the folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// File or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Two tasks computed one file, and got different bytes.
    #[error(
        "this machine computes differently: it gives another result for {name} than the run before, in {} and {}",
        kept.display(), refused.display()
    )]
    Differs {
        /// Name of the file.
        name: String,
        /// File of the first result.
        kept: PathBuf,
        /// File of the second result.
        refused: PathBuf,
    },
}

impl SharedFolderError {
    /// Error about a file or a folder.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// Remedy of the error, where the error does not say it already.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Differs { .. } => Some(
                "compare the processors, the C libraries and the programs of the two machines; results that belong \
                 together come from machines that agree",
            ),
            Self::File { .. } => None,
        }
    }

    /// Whether a file or a folder is not there.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

impl SharedFolder {
    /// The folder at `path`, made where it is absent.
    ///
    /// # Errors
    /// [`SharedFolderError::File`] where it cannot be made.
    pub fn open(path: &Path) -> Result<Self, SharedFolderError> {
        fs::create_dir_all(path).map_err(SharedFolderError::file(path))?;
        Ok(Self(path.to_owned()))
    }

    /// The folder at `path`, which another task has made.
    pub fn existing(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// File of a name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of the files, in no order; drafts are among them.
    ///
    /// # Errors
    /// [`SharedFolderError::File`] where the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, SharedFolderError> {
        let entries = fs::read_dir(&self.0).map_err(SharedFolderError::file(&self.0))?;
        let name =
            |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
        entries.map(name).collect::<Result<_, _>>().map_err(SharedFolderError::file(&self.0))
    }

    /// Contents of a file.
    ///
    /// # Errors
    /// [`SharedFolderError::File`] where it cannot be read.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, SharedFolderError> {
        let path = self.path(name);
        fs::read(&path).map_err(SharedFolderError::file(path))
    }

    /// Stores a file.
    ///
    /// # Errors
    /// [`SharedFolderError::Differs`] where the file is there with other bytes; the new ones stay beside it as
    /// `NAME.differs.PROCESS`. [`SharedFolderError::File`] where the folder cannot be written.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<Stored, SharedFolderError> {
        let (path, draft) = (self.path(name), self.draft(name)?);
        let write = || {
            let mut file = File::create(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(SharedFolderError::file(&draft))?;
        let stored = linked(&draft, &path).map_err(SharedFolderError::file(&path))?;
        if stored == Stored::Known && self.read(name)? != bytes {
            let refused = self.path(&format!("{name}.differs.{}", std::process::id()));
            fs::rename(&draft, &refused).map_err(SharedFolderError::file(&draft))?;
            return Err(SharedFolderError::Differs { name: name.to_owned(), kept: path, refused });
        }
        if draft.exists() {
            fs::remove_file(&draft).map_err(SharedFolderError::file(&draft))?;
        }
        // The name itself is on the disk once the folder is.
        File::open(&self.0).and_then(|folder| folder.sync_all()).map_err(SharedFolderError::file(&self.0))?;
        Ok(stored)
    }

    /// Takes a name with an empty file. Of several tasks one alone gets `true`.
    ///
    /// # Errors
    /// [`SharedFolderError::File`] where the folder cannot be written.
    pub fn take(&self, name: &str) -> Result<bool, SharedFolderError> {
        let path = self.path(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(SharedFolderError::File { path, source }),
        }
    }

    /// A new, empty draft. Machines that share the folder may have tasks of one number, so the name is tried out.
    fn draft(&self, name: &str) -> Result<PathBuf, SharedFolderError> {
        for attempt in 0_u32..u32::MAX {
            let draft = format!("{name}.draft.{}.{attempt}", std::process::id());
            if self.take(&draft)? {
                return Ok(self.path(&draft));
            }
        }
        Err(SharedFolderError::file(&self.0)(ErrorKind::AlreadyExists.into()))
    }

    /// Removes what tasks that were stopped have left.
    ///
    /// # Errors
    /// [`SharedFolderError::File`] where the folder cannot be read, or a draft not be removed.
    pub fn remove_drafts(&self) -> Result<(), SharedFolderError> {
        for name in self.names()?.into_iter().filter(|name| name.contains(".draft.")) {
            let path = self.path(&name);
            fs::remove_file(&path).map_err(SharedFolderError::file(&path))?;
        }
        Ok(())
    }

    /// Removes the folder with all files.
    ///
    /// # Errors
    /// [`SharedFolderError::File`] where it cannot be removed.
    pub fn remove(self) -> Result<(), SharedFolderError> {
        fs::remove_dir_all(&self.0).map_err(SharedFolderError::file(&self.0))
    }
}

/// Gives a file its name, unless another file has it.
fn linked(draft: &Path, path: &Path) -> io::Result<Stored> {
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
