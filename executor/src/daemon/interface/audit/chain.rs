//! Check of the whole log, through all of its files.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::{AuditError, AuditLine, GENESIS};

/// Log that holds together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Number of the first line that is kept.
    pub first: u64,
    /// Lines that were checked.
    pub lines: u64,
    /// Hash of the last line.
    pub hash: String,
}

/// Name of a closed file of the log at `path`, by the number of its first line.
pub(super) fn closed_name(path: &Path, first: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{first:012}.jsonl"))
}

/// Closed files of the log at `path`, oldest first.
pub(super) fn closed(path: &Path) -> io::Result<Vec<PathBuf>> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_closed = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_prefix(&format!("{stem}-")).and_then(|rest| rest.strip_suffix(".jsonl"));
        number.is_some_and(|number| number.len() == 12 && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).filter(is_closed).collect();
    files.sort_unstable();
    Ok(files)
}

/// Checks the chain of the log at `path`, and of the closed files before it. Where the oldest files are gone, the
/// chain begins with the first line that is kept.
///
/// # Errors
/// [`AuditError::Broken`] at the first line that does not fit.
pub fn verify(path: &Path) -> Result<Chain, AuditError> {
    let fault = |action| move |source| AuditError::Io { path: path.into(), action, source };
    let mut files = closed(path).map_err(fault("find the files before it"))?;
    files.push(path.to_owned());
    let (mut first, mut good, mut prev) = (None, 0, GENESIS.to_owned());
    for file in files {
        let fault = |action| {
            let path = file.clone();
            move |source| AuditError::Io { path, action, source }
        };
        let lines = BufReader::new(File::open(&file).map_err(fault("open it"))?).split(b'\n');
        for (number, text) in (1..).zip(lines) {
            let text = text.map_err(fault("read it"))?;
            let upto = good;
            let broken = |problem: String| AuditError::Broken { path: file.clone(), line: number, problem, good: upto };
            let line: AuditLine = serde_json::from_slice(&text)
                .map_err(|error| broken(format!("not a line of an audit log: {error}")))?;
            if first.is_none() && line.seq > 1 {
                (good, prev) = (line.seq - 1, line.prev.clone());
            }
            if line.seq != good + 1 {
                return Err(broken(format!("it has number {}", line.seq)));
            }
            if line.prev != prev {
                return Err(broken("it does not follow the line before".into()));
            }
            if line.hash != line.digest() {
                return Err(broken("it was changed".into()));
            }
            first.get_or_insert(line.seq);
            (good, prev) = (line.seq, line.hash);
        }
    }
    let first = first.unwrap_or(1);
    Ok(Chain { first, lines: good + 1 - first, hash: prev })
}
