//! Lines of the audit log of a folder in their order, rotated files first.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::daemon::interface::audit::AuditLine;

/// Report that cannot be made.
#[derive(Debug, Error)]
pub enum LiveReportError {
    /// The folder holds no audit log.
    #[error(
        "{folder}: no audit log is there; name the state directory of the daemon ([state] directory), or a copy of it"
    )]
    NoLog {
        /// Folder that was looked at.
        folder: PathBuf,
    },
    /// The system refused.
    #[error("cannot read {path}: {source}")]
    Io {
        /// File or folder that cannot be read.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Gives every line of the log to `take`, and returns the number of lines that are none. A line that a
/// running daemon has not finished yet is one of them.
///
/// # Errors
/// [`LiveReportError`] where there is no log, or a file cannot be read.
pub(super) fn lines(folder: &Path, mut take: impl FnMut(AuditLine)) -> Result<usize, LiveReportError> {
    let mut unreadable = 0;
    // A file that is rotated between two reads is met twice; its lines count once.
    let mut last = 0;
    for (path, _) in logs(folder)? {
        let fault = |source| LiveReportError::Io { path: path.clone(), source };
        for line in BufReader::new(File::open(&path).map_err(fault)?).split(b'\n') {
            match serde_json::from_slice::<AuditLine>(&line.map_err(fault)?) {
                Ok(line) if line.seq <= last => {}
                Ok(line) => {
                    last = line.seq;
                    take(line);
                }
                Err(_) => unreadable += 1,
            }
        }
    }
    Ok(unreadable)
}

/// Files of the log, each with the number of its first line, oldest first. The names of rotated files begin
/// as the log's does.
fn logs(folder: &Path) -> Result<Vec<(PathBuf, u64)>, LiveReportError> {
    let fault = |source| LiveReportError::Io { path: folder.into(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("audit") && name.contains("jsonl") && path.is_file() {
            let fault = |source| LiveReportError::Io { path: path.clone(), source };
            let mut first = Vec::new();
            BufReader::new(File::open(&path).map_err(fault)?).read_until(b'\n', &mut first).map_err(fault)?;
            let number = serde_json::from_slice::<AuditLine>(&first).map_or(u64::MAX, |line| line.seq);
            found.push((path, number));
        }
    }
    if found.is_empty() {
        return Err(LiveReportError::NoLog { folder: folder.into() });
    }
    found.sort_by(|(one, a), (other, b)| (a, one).cmp(&(b, other)));
    Ok(found)
}
