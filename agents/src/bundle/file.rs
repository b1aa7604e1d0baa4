//! A bundle as a file.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::error::BundleError;
use super::model::PolicyBundle;
use crate::nets::archive::ArchiveError;

impl PolicyBundle {
    /// Reads a bundle and checks that this program can run it.
    ///
    /// # Errors
    /// When the file is not a sound bundle of this format, or of another schema.
    pub fn load(path: &Path) -> Result<Self, BundleError> {
        Self::inspect(path)?.checked(path)
    }

    /// The bundle, if it was trained on this program's observations or features; `path` is only for
    /// messages.
    ///
    /// # Errors
    /// [`BundleError::Schema`] where it was not, [`BundleError::Damaged`] where it says so and has
    /// another shape.
    pub fn checked(self, path: &Path) -> Result<Self, BundleError> {
        let (path, expected) = (path.to_owned(), self.schema());
        if self.card.schema_hash != expected {
            return Err(BundleError::Schema { path, found: self.card.schema_hash, expected });
        }
        match self.misshapen() {
            Some(reason) => Err(BundleError::Damaged { path, source: ArchiveError::BadHeader { reason } }),
            None => Ok(self),
        }
    }

    /// Reads a bundle whatever its schema, to look at it.
    ///
    /// # Errors
    /// When the file is not a sound bundle of this format.
    pub fn inspect(path: &Path) -> Result<Self, BundleError> {
        let bytes =
            fs::read(path).map_err(|source| BundleError::Io { path: path.to_owned(), action: "read", source })?;
        Self::from_bytes(&bytes, path)
    }

    /// Writes the bundle beside its place and moves it there: a reader sees the old file or the
    /// whole new one.
    ///
    /// # Errors
    /// When the file system refuses; nothing is left behind.
    pub fn save(&self, path: &Path) -> Result<(), BundleError> {
        let failed = |action| move |source| BundleError::Io { path: path.to_owned(), action, source };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        // The process id keeps two writers from sharing a temporary file.
        name.push(format!(".tmp-{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let written = fs::File::create(&temporary).and_then(|mut file| {
            file.write_all(&self.to_bytes())?;
            // The bytes must be on disk before the move, or a crash could leave an empty bundle.
            file.sync_all()
        });
        let moved =
            written.map_err(failed("write")).and_then(|()| fs::rename(&temporary, path).map_err(failed("replace")));
        if moved.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&temporary);
        }
        moved
    }
}
