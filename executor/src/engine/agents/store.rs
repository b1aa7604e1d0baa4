//! Jobs on disk: one file each, written whole and forced before anything is done.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::live::LiveJob;
use crate::agent::record::{self, RecordError};
use crate::agent::{AgentError, spool};
use crate::engine::LoanSeen;
use crate::private;

const DRAINED: &str = "drained.json";
const LOANS: &str = "loans.json";

/// Jobs that were read from disk, and the files that could not be.
#[derive(Default)]
pub(super) struct StoredJobs {
    pub(super) jobs: BTreeMap<String, LiveJob>,
    pub(super) faults: Vec<RecordError>,
}

/// The folder of jobs.
pub struct JobStore {
    folder: PathBuf,
}

impl JobStore {
    /// Makes the folder where it is missing.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(folder: PathBuf) -> Result<Self, AgentError> {
        let jobs = folder.join("jobs");
        let make = || -> std::io::Result<()> {
            private::folder(&folder)?;
            [DRAINED, LOANS].iter().try_for_each(|name| private::file(&folder.join(name)))?;
            private::folder(&jobs)?;
            private::files(&jobs)
        };
        let made = make();
        made.map_err(|source| AgentError::Io { action: format!("make {}", folder.display()), source })?;
        Ok(Self { folder })
    }

    /// Jobs on disk that are not among `known`.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn load(&self, known: &BTreeMap<String, LiveJob>) -> Result<StoredJobs, RecordError> {
        let folder = self.folder.join("jobs");
        let mut stored = StoredJobs::default();
        let unreadable = |source| RecordError::Unreadable { path: folder.clone(), source };
        let entries = fs::read_dir(&folder).map_err(unreadable)?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        for name in names {
            if name.strip_suffix(".json").is_none_or(|key| known.contains_key(key)) {
                continue;
            }
            match record::load::<LiveJob>(&folder.join(name)) {
                Ok(job) => stored.jobs.extend(job.map(|job| (job.key.clone(), job))),
                Err(fault) => stored.faults.push(fault),
            }
        }
        Ok(stored)
    }

    /// Writes a job.
    pub(super) fn save(&self, job: &LiveJob) -> Result<(), AgentError> {
        let written = spool::write(&self.folder.join("jobs"), &format!("{}.json", job.key), job);
        written.map_err(|source| AgentError::Io { action: format!("write down job {}", job.key), source })
    }

    /// Nodes that are drained, and why.
    pub(super) fn drained(&self) -> Result<BTreeMap<String, String>, RecordError> {
        Ok(record::load(&self.folder.join(DRAINED))?.unwrap_or_default())
    }

    /// Writes which nodes are drained.
    pub(super) fn save_drained(&self, drained: &BTreeMap<String, String>) -> Result<(), AgentError> {
        let written = spool::write(&self.folder, DRAINED, drained);
        written.map_err(|source| AgentError::Io { action: "write down which nodes are drained".to_owned(), source })
    }

    /// Nodes that are lent.
    pub(super) fn loans(&self) -> Result<BTreeMap<String, LoanSeen>, RecordError> {
        Ok(record::load(&self.folder.join(LOANS))?.unwrap_or_default())
    }

    /// Writes which nodes are lent.
    pub(super) fn save_loans(&self, loans: &BTreeMap<String, LoanSeen>) -> Result<(), AgentError> {
        let written = spool::write(&self.folder, LOANS, loans);
        written.map_err(|source| AgentError::Io { action: "write down which nodes are lent".to_owned(), source })
    }
}
