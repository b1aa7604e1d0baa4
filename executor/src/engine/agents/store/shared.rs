//! WantedState state in etcd: whichever daemon leads finds it, and only the leader changes it.
//!
//! | key below the prefix | value |
//! |---|---|
//! | `agents/jobs/KEY` | a job |
//! | `agents/drained` | nodes that are drained |
//! | `agents/loans` | nodes that are lent |

use std::collections::BTreeMap;

use super::{StoreError, WantedState};
use crate::agent::record::RecordError;
use crate::engine::LoanSeen;
use crate::engine::agents::live::LiveJob;
use crate::etcd::writer::LeaderWriter;
use crate::etcd::{Change, Entry, Etcd, EtcdError};

const ALL: &str = "agents/";
const JOBS: &str = "agents/jobs/";
const DRAINED: &str = "agents/drained";
const LOANS: &str = "agents/loans";

/// The keys of one cluster.
pub(in crate::engine::agents) struct SharedStore {
    etcd: Etcd,
    writer: LeaderWriter,
    /// Revision of etcd up to which everything is known; 0 before the first look.
    revision: i64,
    /// Number of keys at that revision.
    count: u64,
}

impl SharedStore {
    pub fn new(etcd: Etcd) -> Self {
        Self { writer: LeaderWriter::new(etcd.clone(), "agents"), etcd, revision: 0, count: 0 }
    }

    /// Brings `wanted` up to date by the keys that changed since the last call.
    pub async fn read(&mut self, wanted: &mut WantedState, anew: bool) -> Result<(), EtcdError> {
        // A damaged key may have been mended or removed, so all keys are read until none is.
        let known = (self.revision > 0 && !anew && wanted.faults.is_empty()).then_some(self.revision + 1);
        let mut listed = self.etcd.list(ALL, known.unwrap_or(0)).await?;
        let new = listed.entries.iter().filter(|entry| entry.created >= known.unwrap_or(0)).count() as u64;
        if known.is_none() || listed.count != self.count + new {
            // Keys are gone: which ones, only the whole list tells.
            if known.is_some() {
                listed = self.etcd.list(ALL, 0).await?;
            }
            *wanted = WantedState::default();
        }
        (self.revision, self.count) = (0, listed.count);
        for entry in listed.entries {
            match take(wanted, &entry) {
                Ok(()) => {}
                Err(newer @ RecordError::Newer { .. }) => return Err(newer.into()),
                Err(fault) => wanted.faults.push(fault),
            }
        }
        self.revision = listed.revision;
        Ok(())
    }

    /// Makes certain that no earlier write can go through any more.
    pub async fn settle(&mut self, term: u64) -> Result<(), EtcdError> {
        self.writer.settle(term).await
    }

    pub async fn save(&mut self, term: Option<u64>, jobs: &[LiveJob]) -> Result<(), StoreError> {
        let changes = jobs.iter().map(|job| Change::record(format!("{JOBS}{}", job.key), job));
        self.write(term, changes.collect()).await
    }

    pub async fn remove(&mut self, term: Option<u64>, keys: &[String]) -> Result<(), StoreError> {
        let changes = keys.iter().map(|key| Change::delete(format!("{JOBS}{key}")));
        self.write(term, changes.collect()).await
    }

    pub async fn save_drained(
        &mut self,
        term: Option<u64>,
        drained: &BTreeMap<String, String>,
    ) -> Result<(), StoreError> {
        self.write(term, vec![Change::record(DRAINED, drained)]).await
    }

    pub async fn save_loans(
        &mut self,
        term: Option<u64>,
        loans: &BTreeMap<String, LoanSeen>,
    ) -> Result<(), StoreError> {
        self.write(term, vec![Change::record(LOANS, loans)]).await
    }

    async fn write(&mut self, term: Option<u64>, changes: Vec<Change>) -> Result<(), StoreError> {
        let term = term.ok_or(StoreError::StandsBy)?;
        Ok(self.writer.write(term, changes).await?)
    }
}

fn take(wanted: &mut WantedState, entry: &Entry) -> Result<(), RecordError> {
    match entry.key.as_str() {
        DRAINED => wanted.drained = entry.record()?,
        LOANS => wanted.loans = entry.record()?,
        key if key.starts_with(JOBS) => {
            let job: LiveJob = entry.record()?;
            wanted.jobs.insert(job.key.clone(), job);
        }
        _ => {}
    }
    Ok(())
}
