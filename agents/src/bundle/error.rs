//! Errors of reading and writing bundles.

use std::path::PathBuf;

use super::model::FORMAT;
use crate::nets::archive::ArchiveError;

/// A bundle that cannot be read, used or written.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file system refused.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// Path of the bundle.
        path: PathBuf,
        /// Operation that failed, as a verb.
        action: &'static str,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// No policy of this name comes with the product.
    #[error("there is no shipped policy {name:?}; there are: {known}")]
    NotShipped {
        /// Name that was asked for.
        name: String,
        /// Names of the shipped policies.
        known: String,
    },
    /// Another kind of file.
    #[error("{path}: not a policy bundle: {source}")]
    NotABundle {
        /// Path of the bundle.
        path: PathBuf,
        /// Fault of the archive.
        source: ArchiveError,
    },
    /// A bundle that is damaged.
    #[error("{path}: damaged policy bundle: {source}")]
    Damaged {
        /// Path of the bundle.
        path: PathBuf,
        /// Fault of the archive.
        source: ArchiveError,
    },
    /// A bundle of another version of this program.
    #[error(
        "{path}: bundle format {found}, this program reads format {FORMAT}; export the policy again with this version"
    )]
    Format {
        /// Path of the bundle.
        path: PathBuf,
        /// The format it has.
        found: u32,
    },
    /// A policy trained on other observations.
    #[error(
        "{path}: trained on another observation schema\n  bundle:  {found}\n  program: {expected}\n\
         train the policy again with this version, or run it with the version that trained it"
    )]
    Schema {
        /// Path of the bundle.
        path: PathBuf,
        /// Hash the policy was trained on.
        found: String,
        /// Hash of this program.
        expected: String,
    },
}
