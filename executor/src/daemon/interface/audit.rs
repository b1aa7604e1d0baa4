//! One line per decision, each with the hash of the line before: what was seen, decided, let pass
//! and done can be read later, and a line that is changed or taken out breaks the chain.
//!
//! The log is one file that is written, `audit.jsonl`, and those before it, which have the number of
//! their first line in their names. Each line is on disk when its write returns. Daemons that share a
//! directory write to one log by turns: a lock is held for each line.
//!
//! # Layout
//! - `tail`: the last line of a file, and what is damaged behind it.
//! - `chain`: the check of the whole log.

mod chain;
mod tail;

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::private;
pub use chain::{Chain, verify};
use tail::LogTail;

/// Time for which a write waits for another daemon that writes.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// Size of the files of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSize {
    /// A file that is larger is closed and a new one begun, bytes.
    pub file: u64,
    /// Closed files that are kept; all of them where 0.
    pub kept: u32,
}

impl Default for AuditSize {
    /// Sixteen closed files of 64 MiB.
    fn default() -> Self {
        Self { file: 64 << 20, kept: 16 }
    }
}

/// The end of a log, to be written on.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    size: AuditSize,
    /// Held for each line.
    lock: File,
    file: File,
    /// Length of the file after the last line that is known.
    end: u64,
    seq: u64,
    prev: String,
    /// Damage that was found and set aside, not told yet.
    damage: Option<String>,
}

impl Audit {
    /// Opens or makes the log. A last line that was cut off by a crash is dropped: it was never
    /// acknowledged. Lines at the end that are damaged are set aside; see [`Audit::take_damage`].
    ///
    /// # Errors
    /// [`AuditError`] where the files cannot be used.
    pub fn open(path: &Path, size: AuditSize) -> Result<Self, AuditError> {
        let fault = |action| move |source| AuditError::Io { path: path.into(), action, source };
        let lock = private::options().create(true).truncate(false).write(true).open(path.with_extension("lock"));
        let lock = lock.map_err(fault("open its lock"))?;
        let file = append(path).map_err(fault("open it"))?;
        let (end, seq, prev) = (0, 0, GENESIS.to_owned());
        let mut audit = Self { path: path.into(), size, lock, file, end, seq, prev, damage: None };
        audit.locked(Self::find_end)?;
        Ok(audit)
    }

    /// Damage that was found at the end of the log, in words with a remedy, once.
    pub fn take_damage(&mut self) -> Option<String> {
        self.damage.take()
    }

    /// Adds a line, and has it on disk when it returns.
    ///
    /// # Errors
    /// [`AuditError::Io`] where it cannot be written.
    pub fn write(&mut self, at_ms: i64, kind: &str, body: Value) -> Result<(), AuditError> {
        self.locked(|audit| {
            audit.follow()?;
            if audit.end >= audit.size.file {
                audit.rotate()?;
            }
            audit.add(at_ms, kind, body)
        })
    }

    /// Does something while no other daemon writes.
    fn locked<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T, AuditError>) -> Result<T, AuditError> {
        let began = Instant::now();
        loop {
            match self.lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => {
                    let source = io::Error::new(io::ErrorKind::TimedOut, "another daemon is in the middle of a line");
                    return Err(self.fault("write to it")(source));
                }
                Err(TryLockError::Error(source)) => return Err(self.fault("lock it")(source)),
            }
        }
        let done = what(self);
        // A lock that cannot be given back is given back by the end of the process.
        let _ = self.lock.unlock();
        done
    }

    fn fault(&self, action: &'static str) -> impl Fn(io::Error) -> AuditError + use<> {
        let path = self.path.clone();
        move |source| AuditError::Io { path: path.clone(), action, source }
    }

    /// Takes up the lines of another daemon, and the file that it began.
    fn follow(&mut self) -> Result<(), AuditError> {
        let fault = self.fault("look at it");
        let ours = self.file.metadata().map_err(&fault)?;
        let named = fs::metadata(&self.path).ok();
        if named.as_ref().is_none_or(|named| named.ino() != ours.ino() || named.dev() != ours.dev()) {
            self.file = append(&self.path).map_err(self.fault("open it"))?;
            return self.find_end();
        }
        if ours.len() == self.end { Ok(()) } else { self.find_end() }
    }

    /// Reads the end of the log, and sets aside what is damaged there.
    fn find_end(&mut self) -> Result<(), AuditError> {
        let LogTail { last, end, damaged } = tail::read(&self.file).map_err(self.fault("read it"))?;
        if let Some(damaged) = damaged {
            let aside = self.path.with_extension("damaged");
            let kept = append(&aside).and_then(|mut file| {
                file.write_all(&damaged)?;
                file.sync_all()
            });
            kept.map_err(self.fault("set damaged lines aside"))?;
            self.damage = Some(format!(
                "{} ended in {} bytes that are no lines of it; they were moved to {}, and the log goes on after line {}: \
                 find out what wrote them (a disk, a copy, a person), and keep both files",
                self.path.display(),
                damaged.len(),
                aside.display(),
                last.as_ref().map_or(0, |line| line.seq)
            ));
        }
        self.file.set_len(end).map_err(self.fault("cut off a torn line"))?;
        self.end = end;
        (self.seq, self.prev) = match last {
            Some(line) => (line.seq, line.hash),
            None => self.before()?,
        };
        Ok(())
    }

    /// Number and hash of the last line in the closed files.
    fn before(&self) -> Result<(u64, String), AuditError> {
        let fault = self.fault("read the file before it");
        let Some(newest) = chain::closed(&self.path).map_err(&fault)?.pop() else { return Ok((0, GENESIS.into())) };
        let last = File::open(newest).and_then(|file| tail::read(&file)).map_err(&fault)?.last;
        Ok(last.map_or_else(|| (0, GENESIS.into()), |line| (line.seq, line.hash)))
    }

    /// Closes the file and begins a new one; closed files beyond the number that is kept go, oldest first.
    fn rotate(&mut self) -> Result<(), AuditError> {
        let fault = self.fault("begin a new file");
        let first = tail::first(&self.file).map_err(&fault)?;
        fs::rename(&self.path, chain::closed_name(&self.path, first)).map_err(&fault)?;
        self.file = append(&self.path).map_err(&fault)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(&fault)?;
        }
        self.end = 0;
        let closed = chain::closed(&self.path).map_err(&fault)?;
        let surplus = if self.size.kept == 0 { 0 } else { closed.len().saturating_sub(self.size.kept as usize) };
        closed[..surplus].iter().try_for_each(fs::remove_file).map_err(self.fault("remove an old file"))
    }

    fn add(&mut self, at_ms: i64, kind: &str, body: Value) -> Result<(), AuditError> {
        let (seq, prev) = (self.seq + 1, self.prev.clone());
        let mut line = AuditLine { seq, at_ms, kind: kind.into(), body, prev, hash: String::new() };
        line.hash = line.digest();
        let fault = self.fault("write to it");
        // A line and its end are written by one call, so that a crash tears at most the last line.
        let mut text = serde_json::to_string(&line).map_err(|error| fault(error.into()))?;
        text.push('\n');
        if let Err(source) = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data()) {
            // A line that a full disk has cut would run into the next line and break the chain.
            self.file.set_len(self.end).map_err(&fault)?;
            return Err(fault(source));
        }
        self.end += text.len() as u64;
        (self.seq, self.prev) = (line.seq, line.hash);
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    private::options().read(true).append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn open(path: &Path) -> Audit {
        Audit::open(path, AuditSize::default()).unwrap()
    }

    fn place() -> PathBuf {
        tempfile::tempdir().unwrap().keep().join("audit.jsonl")
    }

    fn append_text(path: &Path, text: &[u8]) {
        append(path).unwrap().write_all(text).unwrap();
    }

    #[test]
    fn a_changed_or_missing_line_breaks_the_chain_and_a_torn_one_is_dropped() {
        let path = place();
        let mut audit = open(&path);
        for at in 0..5 {
            audit.write(at, "decision", serde_json::json!({ "at": at, "share": 0.1 })).unwrap();
        }
        drop(audit);
        append_text(&path, b"{\"seq\":6,");
        let mut audit = open(&path);
        assert_eq!(audit.take_damage(), None, "a torn line was never acknowledged");
        audit.write(9, "mode", Value::Null).unwrap();
        assert_eq!(verify(&path).unwrap().lines, 6);
        let text = fs::read_to_string(&path).unwrap();
        for (changed, at) in [
            (text.replacen("\"at\":3", "\"at\":4", 1), 4),
            (text.lines().enumerate().filter(|(line, _)| *line != 2).map(|(_, l)| format!("{l}\n")).collect(), 3),
        ] {
            fs::write(&path, changed).unwrap();
            let error = verify(&path).unwrap_err();
            assert!(matches!(error, AuditError::Broken { line, .. } if line == at), "{error}");
        }
    }

    #[test]
    fn a_garbled_end_is_set_aside_and_the_log_goes_on() {
        let path = place();
        let mut audit = open(&path);
        for at in 0..3 {
            audit.write(at, "decision", Value::Null).unwrap();
        }
        drop(audit);
        let changed = fs::read_to_string(&path).unwrap().replacen("\"at_ms\":2", "\"at_ms\":7", 1);
        fs::write(&path, changed).unwrap();
        append_text(&path, b"\x00\xff garbage\n");
        let mut audit = open(&path);
        let damage = audit.take_damage().unwrap();
        assert!(damage.contains("audit.damaged") && damage.contains("after line 2"), "{damage}");
        audit.write(9, "mode", Value::Null).unwrap();
        assert_eq!(verify(&path).unwrap().lines, 3, "two good lines and the new one");
        let aside = fs::read(path.with_extension("damaged")).unwrap();
        assert!(aside.ends_with(b"\x00\xff garbage\n") && aside.starts_with(b"{"), "both bad lines are kept");
        fs::write(&path, b"nothing of it is a line\n").unwrap();
        let mut audit = open(&path);
        assert!(audit.take_damage().is_some_and(|damage| damage.contains("after line 0")));
        audit.write(9, "mode", Value::Null).unwrap();
        assert_eq!(verify(&path).unwrap().lines, 1);
    }

    #[test]
    fn files_are_closed_by_size_and_the_chain_goes_through_all_that_are_kept() {
        let path = place();
        let write = |audit: &mut Audit, count: i64| {
            (0..count).for_each(|at| audit.write(at, "decision", serde_json::json!("x".repeat(100))).unwrap());
        };
        let mut audit = Audit::open(&path, AuditSize { file: 2000, kept: 3 }).unwrap();
        write(&mut audit, 30);
        // A file that was begun and not written on yet.
        audit.rotate().unwrap();
        drop(audit);
        let mut audit = Audit::open(&path, AuditSize { file: 2000, kept: 3 }).unwrap();
        write(&mut audit, 30);
        let closed = chain::closed(&path).unwrap();
        assert_eq!(closed.len(), 3);
        let Chain { first, lines, .. } = verify(&path).unwrap();
        assert_eq!(first + lines - 1, 60, "numbers go on over files and restarts");
        assert!(first > 1, "old files are gone");
        fs::remove_file(&closed[1]).unwrap();
        let gap = verify(&path).unwrap_err();
        assert!(matches!(gap, AuditError::Broken { .. }), "a file that is taken out breaks the chain: {gap}");
    }

    #[test]
    fn daemons_that_take_turns_write_one_chain() {
        let path = place();
        let size = AuditSize { file: 1000, kept: 0 };
        let mut two = [Audit::open(&path, size).unwrap(), Audit::open(&path, size).unwrap()];
        for at in 0..40 {
            two[at % 3 % 2].write(at as i64, "decision", Value::Null).unwrap();
        }
        assert_eq!(verify(&path).unwrap().lines, 40);
    }
}
