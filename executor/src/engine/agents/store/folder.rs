//! Jobs on disk: one file each, written whole and forced before anything is done.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::Wanted;
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

    /// Everything that is written down.
    pub fn read(&self) -> Wanted {
        Wanted { jobs: self.jobs(), loans: self.loans(), drained: self.drained() }
    }

    fn jobs(&self) -> BTreeMap<String, LiveJob> {
        let folder = self.folder.join("jobs");
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let jobs =
            names.filter(|name| name.ends_with(".json")).filter_map(|name| spool::read::<LiveJob>(&folder, &name));
        jobs.map(|job| (job.key.clone(), job)).collect()
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
    fn drained(&self) -> BTreeMap<String, String> {
        spool::read(&self.folder, DRAINED).unwrap_or_default()
    }

    /// Writes which nodes are drained.
    pub fn save_drained(&self, drained: &BTreeMap<String, String>) -> Result<(), AgentError> {
        let written = spool::write(&self.folder, DRAINED, drained);
        written.map_err(|source| AgentError::Io { action: "write down which nodes are drained".to_owned(), source })
    }

    /// Nodes that are lent.
    fn loans(&self) -> BTreeMap<String, LoanSeen> {
        spool::read(&self.folder, LOANS).unwrap_or_default()
    }

    /// Writes which nodes are lent.
    pub fn save_loans(&self, loans: &BTreeMap<String, LoanSeen>) -> Result<(), AgentError> {
        let written = spool::write(&self.folder, LOANS, loans);
        written.map_err(|source| AgentError::Io { action: "write down which nodes are lent".to_owned(), source })
    }
}
