//! Jobs on disk: one file each, written whole and forced before anything is done.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::WantedState;
use crate::agent::record::{self, RecordError};
use crate::agent::{AgentError, spool};
use crate::engine::LoanSeen;
use crate::engine::agents::live::LiveJob;
use crate::private;

const DRAINED: &str = "drained.json";
const LOANS: &str = "loans.json";

/// The folder of jobs.
pub(in crate::engine::agents) struct FolderStore {
    folder: PathBuf,
}

impl FolderStore {
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

    /// Brings `wanted` up to date. Where this daemon leads, that takes up jobs that are not known: jobs that were put
    /// back from a backup, and jobs that a daemon wrote which leads no more.
    ///
    /// # Errors
    /// A later program wrote a file, or it cannot be told which nodes are drained or lent.
    pub fn read(&self, wanted: &mut WantedState, leads: bool) -> Result<(), RecordError> {
        if !leads {
            wanted.jobs.clear();
        }
        self.take_up(wanted)?;
        if !leads {
            (wanted.loans, wanted.drained) = (self.loans()?, self.drained()?);
        }
        Ok(())
    }

    fn take_up(&self, wanted: &mut WantedState) -> Result<(), RecordError> {
        let folder = self.folder.join("jobs");
        wanted.faults.clear();
        let unreadable = |source| RecordError::Unreadable { path: folder.clone(), source };
        let entries = fs::read_dir(&folder).map_err(unreadable)?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        for name in names {
            if name.strip_suffix(".json").is_none_or(|key| wanted.jobs.contains_key(key)) {
                continue;
            }
            match record::load::<LiveJob>(&folder.join(name)) {
                Ok(job) => wanted.jobs.extend(job.map(|job| (job.key.clone(), job))),
                Err(newer @ RecordError::Newer { .. }) => return Err(newer),
                Err(fault) => wanted.faults.push(fault),
            }
        }
        Ok(())
    }

    /// Writes a job.
    pub fn save(&self, job: &LiveJob) -> Result<(), AgentError> {
        let written = spool::write(&self.folder.join("jobs"), &format!("{}.json", job.key), job);
        written.map_err(|source| AgentError::Io { action: format!("write down job {}", job.key), source })
    }

    /// Removes a job.
    pub fn remove(&self, key: &str) -> Result<(), AgentError> {
        match fs::remove_file(self.folder.join("jobs").join(format!("{key}.json"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(AgentError::Io { action: format!("remove job {key}"), source: error })
            }
            _ => Ok(()),
        }
    }

    /// Nodes that are drained, and why.
    fn drained(&self) -> Result<BTreeMap<String, String>, RecordError> {
        Ok(record::load(&self.folder.join(DRAINED))?.unwrap_or_default())
    }

    /// Writes which nodes are drained.
    pub fn save_drained(&self, drained: &BTreeMap<String, String>) -> Result<(), AgentError> {
        let written = spool::write(&self.folder, DRAINED, drained);
        written.map_err(|source| AgentError::Io { action: "write down which nodes are drained".to_owned(), source })
    }

    /// Nodes that are lent.
    fn loans(&self) -> Result<BTreeMap<String, LoanSeen>, RecordError> {
        Ok(record::load(&self.folder.join(LOANS))?.unwrap_or_default())
    }

    /// Writes which nodes are lent.
    pub fn save_loans(&self, loans: &BTreeMap<String, LoanSeen>) -> Result<(), AgentError> {
        let written = spool::write(&self.folder, LOANS, loans);
        written.map_err(|source| AgentError::Io { action: "write down which nodes are lent".to_owned(), source })
    }
}
