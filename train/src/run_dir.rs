//! One run, one directory: resolved configuration, manifest, progress, checkpoints, policy, report.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// A directory or file of a run that cannot be used.
#[derive(Debug, Error)]
pub enum RunDirError {
    /// The directory cannot be written.
    #[error("cannot write {}: {source}; choose a directory that can be written with --run-dir", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The directory already holds a run.
    #[error("{} already holds a run; continue it with --resume, or choose another --run-dir", path.display())]
    Exists {
        /// Path of the directory.
        path: PathBuf,
    },
    /// Another process writes into the directory.
    #[error("another command writes into {}; wait until it ends, or choose another directory with --run-dir", path.display())]
    InUse {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory holds no run.
    #[error("{} cannot be read: {source}; this takes the directory of an earlier run that has come so far", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A table cannot be written.
    #[error(transparent)]
    Table(#[from] goodput_datasets::DataError),
}

/// Name of the file with the manifest.
const MANIFEST: &str = "manifest.json";

/// The directory of a run.
#[derive(Clone, Debug)]
pub struct RunDir(PathBuf);

/// Provenance of a run, written once at its start. Nothing in it changes results, so it may hold
/// the wall clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunManifest {
    /// Command line of the start, with every override.
    pub argv: Vec<String>,
    /// Version of the product.
    pub version: String,
    /// Start of the run, in seconds since 1970.
    pub started_unix_secs: u64,
    /// Master seed of the experiment.
    pub seed: u64,
    /// SHA-256 of the resolved configuration.
    pub config_sha256: String,
}

impl RunDir {
    /// Makes the directory for a new run.
    ///
    /// # Errors
    /// [`RunDirError`] where it cannot be written or already holds a run.
    pub fn create(path: &Path) -> Result<Self, RunDirError> {
        let dir = Self(path.to_path_buf());
        if dir.path("config.toml").exists() {
            return Err(RunDirError::Exists { path: path.to_path_buf() });
        }
        for folder in ["", "checkpoints", "tb"] {
            let path = dir.path(folder);
            fs::create_dir_all(&path).map_err(|source| RunDirError::Write { path, source })?;
        }
        // Libraries that write here may panic where they cannot, so find out now.
        dir.write("tb/.probe", b"")?;
        let probe = dir.path("tb/.probe");
        fs::remove_file(&probe).map_err(|source| RunDirError::Write { path: probe, source })?;
        Ok(dir)
    }

    /// Claims the directory for this process, as long as what is returned lives.
    ///
    /// # Errors
    /// [`RunDirError::InUse`] where another process has claimed it.
    pub fn claim(&self) -> Result<fs::File, RunDirError> {
        let claim = fs::File::open(&self.0).map_err(|source| RunDirError::Read { path: self.0.clone(), source })?;
        match claim.try_lock() {
            Err(fs::TryLockError::WouldBlock) => Err(RunDirError::InUse { path: self.0.clone() }),
            // Some file systems have no locks.
            Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(claim),
        }
    }

    /// Makes the directory where it does not exist; what is in it may be overwritten.
    ///
    /// # Errors
    /// [`RunDirError::Write`] where it cannot be written.
    pub fn reuse(path: &Path) -> Result<Self, RunDirError> {
        fs::create_dir_all(path).map_err(|source| RunDirError::Write { path: path.to_path_buf(), source })?;
        Ok(Self(path.to_path_buf()))
    }

    /// Opens the directory of an earlier run.
    ///
    /// # Errors
    /// [`RunDirError::Read`] where there is none.
    pub fn open(path: &Path) -> Result<Self, RunDirError> {
        let dir = Self(path.to_path_buf());
        dir.read("config.toml")?;
        Ok(dir)
    }

    /// Manifest that the start of the run wrote. A run that was resumed keeps the manifest of its start.
    ///
    /// # Errors
    /// [`RunDirError::Read`] where the manifest is missing or damaged.
    pub fn manifest(&self) -> Result<RunManifest, RunDirError> {
        let damaged = |error: serde_json::Error| RunDirError::Read { path: self.path(MANIFEST), source: error.into() };
        serde_json::from_slice(&self.read(MANIFEST)?).map_err(damaged)
    }

    /// Writes the manifest of a run that starts.
    ///
    /// # Errors
    /// [`RunDirError::Write`].
    pub fn write_manifest(&self, manifest: &RunManifest) -> Result<(), RunDirError> {
        let path = self.path(MANIFEST);
        let text =
            serde_json::to_vec_pretty(manifest).map_err(|error| RunDirError::Write { path, source: error.into() })?;
        self.write(MANIFEST, &text)
    }

    /// SHA-256, in hexadecimal, of the resolved configuration.
    ///
    /// # Errors
    /// [`RunDirError::Read`].
    pub fn config_sha256(&self) -> Result<String, RunDirError> {
        Ok(sha256(&self.read("config.toml")?))
    }

    /// A file of the run.
    pub fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.0.clone() } else { self.0.join(name) }
    }

    /// Writes a file whole or not at all.
    ///
    /// # Errors
    /// [`RunDirError::Write`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunDirError> {
        let path = self.path(name);
        let draft = self.path(&format!("{name}.draft"));
        let write = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&draft, bytes)?;
            // A rename replaces the old file in one step, so a reader meets either of them whole.
            fs::rename(&draft, &path)
        };
        write().map_err(|source| RunDirError::Write { path: path.clone(), source })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`RunDirError::Read`].
    pub fn read(&self, name: &str) -> Result<Vec<u8>, RunDirError> {
        let path = self.path(name);
        fs::read(&path).map_err(|source| RunDirError::Read { path, source })
    }
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
