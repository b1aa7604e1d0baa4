//! The disk of a node: an agent that cannot write takes no jobs, for it could not tell its successor of them.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::error::AgentError;
use super::node::Agent;
use crate::private;

/// Time between two trials.
const EVERY: Duration = Duration::from_secs(2);

/// A trial that takes longer counts as failed: the disk hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a trial: as many as the records and the first output of some attempts take.
const ROOM: usize = 256 * 1024;

/// File of the trial, in the folder of the agent.
const TRIAL: &str = "trial";

/// Result of the last trial of a disk.
#[derive(Debug)]
pub(super) struct DiskWatch {
    folder: PathBuf,
    trouble: Mutex<Option<String>>,
}

impl DiskWatch {
    /// A disk that is not in doubt yet, with the folder of the agent.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, trouble: Mutex::new(None) }
    }

    /// Trouble of the last trial; `None` where the disk took what was written.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Error of a write in the watch's words where the disk is full; the next trial is not waited for.
    pub(super) fn explain(&self, error: AgentError) -> AgentError {
        let AgentError::Io { source, .. } = &error else { return error };
        let full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if !full && source.kind() != io::ErrorKind::ReadOnlyFilesystem {
            return error;
        }
        let words = self.words(&source.to_string());
        self.note(Some(words.clone()));
        AgentError::NoRoom(words)
    }

    fn note(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn words(&self, problem: &str) -> String {
        format!("{} takes no writes: {problem}; make room there, or mend the disk", self.folder.display())
    }

    /// Writes a file, forces it to disk and removes it.
    fn try_it(folder: &std::path::Path) -> io::Result<()> {
        let trial = folder.join(TRIAL);
        let written = private::create(&trial).and_then(|mut file| {
            file.write_all(&[0x5a; ROOM])?;
            file.sync_all()
        });
        // A full disk must not stay full for the trial's sake.
        let removed = fs::remove_file(&trial);
        written.and(removed)
    }
}

impl Agent {
    /// Tries the disk again and again, for ever.
    pub(super) async fn watch_disk(self: Arc<Self>) {
        loop {
            let folder = self.disk.folder.clone();
            let mut trial = tokio::task::spawn_blocking(move || DiskWatch::try_it(&folder));
            let result = loop {
                match timeout(PATIENCE, &mut trial).await {
                    Ok(result) => break result,
                    // One trial at a time hangs on a disk that hangs.
                    Err(_) => self.disk.note(Some(self.disk.words("it does not answer"))),
                }
            };
            let problem = match result {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            self.disk.note(problem.map(|problem| self.disk.words(&problem)));
            sleep(EVERY).await;
        }
    }
}
