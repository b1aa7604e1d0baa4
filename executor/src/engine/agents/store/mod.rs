//! The wanted state, written down before any agent is told: jobs, loans of nodes, drained nodes.
//!
//! # Layout
//! - `folder`: files of one host. `shared`: keys of etcd, for daemons of several hosts.

mod folder;
mod shared;

use std::collections::BTreeMap;

use super::live::LiveJob;
use crate::agent::AgentError;
use crate::agent::record::RecordError;
use crate::engine::{EngineError, LoanSeen};
use crate::etcd::EtcdError;
use folder::FolderStore;
use shared::SharedStore;

/// Everything that is written down.
#[derive(Debug, Default)]
pub(super) struct WantedState {
    /// Jobs by key.
    pub jobs: BTreeMap<String, LiveJob>,
    /// Nodes that are lent.
    pub loans: BTreeMap<String, LoanSeen>,
    /// Nodes that are drained, and why.
    pub drained: BTreeMap<String, String>,
    /// Records that are there and cannot be used.
    pub faults: Vec<RecordError>,
}

/// Place where it is written down.
pub(super) enum JobStore {
    /// A folder of this host.
    Folder(FolderStore),
    /// Keys of etcd, which the daemons of all hosts read and only the leader writes.
    Shared(SharedStore),
}

/// A read or a write that failed; nothing may be done that relies on it.
pub(super) enum StoreError {
    Folder(AgentError),
    Record(RecordError),
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
            StoreError::Etcd(EtcdError::Record(error)) => {
                return EngineError::Unreadable { engine: "agents", what: "its keys", problem: error.to_string() };
            }
            StoreError::Record(error) => {
                return EngineError::Unreadable { engine: "agents", what: "its folder", problem: error.to_string() };
            }
            StoreError::Etcd(error) => {
                (error.to_string(), "nothing is done that cannot be written down; the next cycle tries again")
            }
            StoreError::StandsBy => {
                ("agents do not obey this daemon".to_owned(), "another daemon leads, or will lead in some seconds")
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

impl From<RecordError> for StoreError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

impl From<EtcdError> for StoreError {
    fn from(error: EtcdError) -> Self {
        Self::Etcd(error)
    }
}

impl JobStore {
    /// Brings `wanted` up to date by what others have written. Nothing but backups is written by others while this
    /// daemon leads, in `term`; `anew` reads all of it all the same, where a write may have gone through or not.
    pub async fn read(&mut self, wanted: &mut WantedState, term: Option<u64>, anew: bool) -> Result<(), StoreError> {
        match (self, term) {
            (Self::Folder(folder), _) => Ok(folder.read(wanted, term.is_some())?),
            (Self::Shared(_), Some(_)) if !anew => Ok(()),
            (Self::Shared(shared), _) => {
                if let Some(term) = term {
                    shared.settle(term).await?;
                }
                Ok(shared.read(wanted, anew).await?)
            }
        }
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

    /// The files of `folder`, and what they hold.
    pub fn folder(folder: std::path::PathBuf) -> Result<(Self, WantedState), AgentError> {
        let (store, mut wanted) = (FolderStore::open(folder)?, WantedState::default());
        store.read(&mut wanted, false)?;
        Ok((Self::Folder(store), wanted))
    }

    /// The keys of `etcd`.
    pub fn shared(etcd: crate::etcd::Etcd) -> Self {
        Self::Shared(SharedStore::new(etcd))
    }
}
