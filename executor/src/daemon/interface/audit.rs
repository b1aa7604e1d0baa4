//! One line per decision, each with the hash of the line before: what was seen, decided, let pass
//! and done can be read later, and a line that is changed or taken out breaks the chain.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::private;

/// Hash that the first line follows.
const GENESIS: &str = "genesis";

/// A log that does not hold together, or cannot be used.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The file system refused.
    #[error("audit log {path}: cannot {action}: {source}")]
    Io {
        /// Path of the log.
        path: PathBuf,
        /// Action that failed.
        action: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// The chain is broken.
    #[error("audit log {path}, line {line}: {problem}; lines up to {good} hold together")]
    Broken {
        /// Path of the log.
        path: PathBuf,
        /// The first line that does not fit, from 1.
        line: u64,
        /// Fault of the line.
        problem: String,
        /// The last line that fits.
        good: u64,
    },
}

/// Line of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditLine {
    /// Number, from 1.
    pub seq: u64,
    /// Milliseconds of the Unix epoch.
    pub at_ms: i64,
    /// Kind of event: `decision`, `mode`, `fallback`, `order`, `api`, `start`.
    pub kind: String,
    /// The rest of it.
    pub body: Value,
    /// Hash of the line before.
    pub prev: String,
    /// Hash of this line.
    pub hash: String,
}

impl AuditLine {
    fn digest(&self) -> String {
        let text = format!("{}\n{}\n{}\n{}\n{}", self.seq, self.at_ms, self.kind, self.body, self.prev);
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The end of a log, to be written on.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    file: File,
    seq: u64,
    prev: String,
}

impl Audit {
    /// Opens or makes the log. A last line that was cut off by a crash is dropped: it was never
    /// acknowledged.
    ///
    /// # Errors
    /// [`AuditError`] where the file cannot be used, or its last whole line is not one of this log.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let fault = |action| move |source| AuditError::Io { path: path.into(), action, source };
        let mut file = private::options().read(true).append(true).create(true).open(path).map_err(fault("open it"))?;
        let (mut seq, mut prev, mut end) = (0, GENESIS.to_string(), 0);
        for line in AuditLines::new(&file).map_err(fault("read it"))? {
            let (text, upto) = line.map_err(fault("read it"))?;
            let Some(text) = text.strip_suffix('\n') else { break };
            let line: AuditLine = serde_json::from_str(text).map_err(|error| AuditError::Broken {
                path: path.into(),
                line: seq + 1,
                problem: format!("not a line of an audit log: {error}"),
                good: seq,
            })?;
            (seq, prev, end) = (line.seq, line.hash, upto);
        }
        file.set_len(end).map_err(fault("cut off a torn line"))?;
        file.seek(SeekFrom::End(0)).map_err(fault("read it"))?;
        Ok(Self { path: path.into(), file, seq, prev })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// [`AuditError::Io`] where it cannot be written.
    pub fn write(&mut self, at_ms: i64, kind: &str, body: Value) -> Result<(), AuditError> {
        let mut line = AuditLine {
            seq: self.seq + 1,
            at_ms,
            kind: kind.into(),
            body,
            prev: self.prev.clone(),
            hash: String::new(),
        };
        line.hash = line.digest();
        let fault = |source| AuditError::Io { path: self.path.clone(), action: "write to it", source };
        // A line and its end are written by one call, so that a crash tears at most the last line.
        let mut text = serde_json::to_string(&line).map_err(|error| fault(error.into()))?;
        text.push('\n');
        let end = self.file.stream_position().map_err(fault)?;
        if let Err(source) = self.file.write_all(text.as_bytes()) {
            // A line that a full disk has cut would run into the next line and break the chain.
            self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::Start(end))).map_err(fault)?;
            return Err(fault(source));
        }
        (self.seq, self.prev) = (line.seq, line.hash);
        Ok(())
    }
}

/// Checks the chain of a log; gives the number of its lines and the hash of the last.
///
/// # Errors
/// [`AuditError::Broken`] at the first line that does not fit.
pub fn verify(path: &Path) -> Result<(u64, String), AuditError> {
    let fault = |action| move |source| AuditError::Io { path: path.into(), action, source };
    let file = File::open(path).map_err(fault("open it"))?;
    let (mut good, mut prev) = (0, GENESIS.to_string());
    for line in AuditLines::new(&file).map_err(fault("read it"))? {
        let (text, _) = line.map_err(fault("read it"))?;
        let broken = |problem: String| AuditError::Broken { path: path.into(), line: good + 1, problem, good };
        let line: AuditLine =
            serde_json::from_str(&text).map_err(|error| broken(format!("not a line of an audit log: {error}")))?;
        if line.seq != good + 1 {
            return Err(broken(format!("it has number {}", line.seq)));
        }
        if line.prev != prev {
            return Err(broken("it does not follow the line before".into()));
        }
        if line.hash != line.digest() {
            return Err(broken("it was changed".into()));
        }
        (good, prev) = (line.seq, line.hash);
    }
    Ok((good, prev))
}

/// Lines with where they end.
struct AuditLines {
    reader: BufReader<File>,
    at: u64,
}

impl AuditLines {
    fn new(file: &File) -> io::Result<Self> {
        let mut file = file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Self { reader: BufReader::new(file), at: 0 })
    }
}

impl Iterator for AuditLines {
    type Item = io::Result<(String, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut text = String::new();
        match self.reader.read_line(&mut text) {
            Ok(0) => None,
            Ok(read) => {
                self.at += read as u64;
                Some(Ok((text, self.at)))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_changed_or_missing_line_breaks_the_chain_and_a_torn_one_is_dropped() {
        let path = tempfile::tempdir().unwrap().keep().join("audit.jsonl");
        let mut audit = Audit::open(&path).unwrap();
        for at in 0..5 {
            audit.write(at, "decision", serde_json::json!({ "at": at, "share": 0.1 })).unwrap();
        }
        drop(audit);
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"seq\":6,").unwrap();
        let mut audit = Audit::open(&path).unwrap();
        audit.write(9, "mode", Value::Null).unwrap();
        assert_eq!(verify(&path).unwrap().0, 6);
        let text = std::fs::read_to_string(&path).unwrap();
        for (changed, at) in [
            (text.replacen("\"at\":3", "\"at\":4", 1), 4),
            (text.lines().enumerate().filter(|(line, _)| *line != 2).map(|(_, l)| format!("{l}\n")).collect(), 3),
        ] {
            std::fs::write(&path, changed).unwrap();
            let error = verify(&path).unwrap_err();
            assert!(matches!(error, AuditError::Broken { line, .. } if line == at), "{error}");
        }
    }
}
