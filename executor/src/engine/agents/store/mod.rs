//! What is wanted, written down before any agent is told: jobs, loans of nodes, drained nodes.
//!
//! # Layout
//! - `folder`: files of one host. `shared`: keys of etcd, for daemons of several hosts.

mod folder;
mod shared;

use std::collections::BTreeMap;

use super::live::LiveJob;
use crate::agent::AgentError;
use crate::engine::{EngineError, LoanSeen};
use crate::etcd::EtcdError;
use folder::FolderStore;
use shared::SharedStore;

/// Everything that is written down.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wanted {
    /// Jobs by key.
    pub jobs: BTreeMap<String, LiveJob>,
    /// Nodes that are lent.
    pub loans: BTreeMap<String, LoanSeen>,
    /// Nodes that are drained, and why.
    pub drained: BTreeMap<String, String>,
}

/// Place where it is written down.
pub(super) enum JobStore {
    /// A folder of this host.
    Folder(FolderStore),
    /// Keys of etcd, which the daemons of all hosts read and only the leader writes.
    Shared(SharedStore),
}

/// A write that failed; nothing may be done that relies on it.
pub(super) enum StoreError {
    Folder(AgentError),
    Etcd(EtcdError),
    /// A daemon that does not lead writes nothing that others read.
    StandsBy,
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        let (problem, remedy) = match error {
            StoreError::Folder(error) => {
                (error.to_string(), "make room or mend the disk; nothing is done that cannot be written down")
            }
            StoreError::Etcd(error) => {
                (error.to_string(), "nothing is done that cannot be written down; the next cycle tries again")
            }
            StoreError::StandsBy => {
                let problem = "this daemon stands by; ask the one that leads".to_owned();
                return EngineError::Refused { engine: "agents", problem };
            }
        };
        EngineError::Unreachable { engine: "agents", problem, remedy }
    }
}

impl From<AgentError> for StoreError {
    fn from(error: AgentError) -> Self {
        Self::Folder(error)
    }
}

impl From<EtcdError> for StoreError {
    fn from(error: EtcdError) -> Self {
        Self::Etcd(error)
    }
}

impl JobStore {
    /// What is written down now. `anew` reads all of it; else what is known to be unchanged since
    /// the last call is left as it is in `wanted`.
    pub async fn read(&mut self, wanted: &mut Wanted, anew: bool) -> Result<(), StoreError> {
        match self {
            Self::Folder(folder) => *wanted = folder.read(),
            Self::Shared(shared) => shared.read(wanted, anew).await?,
        }
        Ok(())
    }

    /// Writes jobs, in the name of the leader of `term`.
    pub async fn save(&mut self, term: Option<u64>, jobs: &[LiveJob]) -> Result<(), StoreError> {
        match self {
            Self::Folder(folder) => Ok(jobs.iter().try_for_each(|job| folder.save(job))?),
            Self::Shared(shared) => shared.save(term, jobs).await,
        }
    }

    /// Removes jobs that ended long ago.
    pub async fn remove(&mut self, term: Option<u64>, keys: &[String]) -> Result<(), StoreError> {
        match self {
            Self::Folder(folder) => Ok(keys.iter().try_for_each(|key| folder.remove(key))?),
            Self::Shared(shared) => shared.remove(term, keys).await,
        }
    }

    /// Writes which nodes are drained.
    pub async fn save_drained(
        &mut self,
        term: Option<u64>,
        drained: &BTreeMap<String, String>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Folder(folder) => Ok(folder.save_drained(drained)?),
            Self::Shared(shared) => shared.save_drained(term, drained).await,
        }
    }

    /// Writes which nodes are lent.
    pub async fn save_loans(
        &mut self,
        term: Option<u64>,
        loans: &BTreeMap<String, LoanSeen>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Folder(folder) => Ok(folder.save_loans(loans)?),
            Self::Shared(shared) => shared.save_loans(term, loans).await,
        }
    }

    /// The files of `folder`.
    pub fn folder(folder: std::path::PathBuf) -> Result<Self, AgentError> {
        FolderStore::open(folder).map(Self::Folder)
    }

    /// The keys of `etcd`.
    pub fn shared(etcd: crate::etcd::Etcd) -> Self {
        Self::Shared(SharedStore::new(etcd))
    }
}
