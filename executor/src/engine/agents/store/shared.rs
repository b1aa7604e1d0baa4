//! Wanted state in etcd: whichever daemon leads finds it, and only the leader changes it.
//!
//! | key below the prefix | value |
//! |---|---|
//! | `agents/jobs/KEY` | a job |
//! | `agents/drained` | nodes that are drained |
//! | `agents/loans` | nodes that are lent |

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{StoreError, Wanted};
use crate::engine::LoanSeen;
use crate::engine::agents::live::LiveJob;
use crate::etcd::{Change, Entry, Etcd};

const ALL: &str = "agents/";
const JOBS: &str = "agents/jobs/";
const DRAINED: &str = "agents/drained";
const LOANS: &str = "agents/loans";

/// The keys of one cluster.
pub(in crate::engine::agents) struct SharedStore {
    etcd: Etcd,
    /// Revision of etcd up to which everything is known; 0 before the first look.
    revision: i64,
    /// Number of keys at that revision.
    count: u64,
}

impl SharedStore {
    pub fn new(etcd: Etcd) -> Self {
        Self { etcd, revision: 0, count: 0 }
    }

    /// Brings `wanted` up to date by the keys that changed since the last call.
    pub async fn read(&mut self, wanted: &mut Wanted, anew: bool) -> Result<(), StoreError> {
        let known = (self.revision > 0 && !anew).then_some(self.revision + 1);
        let mut listed = self.etcd.list(ALL, known.unwrap_or(0)).await?;
        let new = listed.entries.iter().filter(|entry| entry.created >= known.unwrap_or(0)).count() as u64;
        if known.is_none() || listed.count != self.count + new {
            // Keys are gone: which ones, only the whole list tells.
            if known.is_some() {
                listed = self.etcd.list(ALL, 0).await?;
            }
            *wanted = Wanted::default();
        }
        (self.revision, self.count) = (listed.revision, listed.count);
        for entry in listed.entries {
            take(wanted, &entry);
        }
        Ok(())
    }

    pub async fn save(&mut self, term: Option<u64>, jobs: &[LiveJob]) -> Result<(), StoreError> {
        let changes = jobs.iter().map(|job| Change::put(format!("{JOBS}{}", job.key), json(job)));
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
        self.write(term, vec![Change::put(DRAINED, json(drained))]).await
    }

    pub async fn save_loans(
        &mut self,
        term: Option<u64>,
        loans: &BTreeMap<String, LoanSeen>,
    ) -> Result<(), StoreError> {
        self.write(term, vec![Change::put(LOANS, json(loans))]).await
    }

    async fn write(&mut self, term: Option<u64>, changes: Vec<Change>) -> Result<(), StoreError> {
        let term = term.ok_or(StoreError::StandsBy)?;
        Ok(self.etcd.write(term, changes).await?)
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn take(wanted: &mut Wanted, entry: &Entry) {
    match entry.key.as_str() {
        DRAINED => wanted.drained = read(entry).unwrap_or_default(),
        LOANS => wanted.loans = read(entry).unwrap_or_default(),
        key if key.starts_with(JOBS) => {
            if let Some(job) = read::<LiveJob>(entry) {
                wanted.jobs.insert(job.key.clone(), job);
            }
        }
        _ => {}
    }
}

fn read<T: DeserializeOwned>(entry: &Entry) -> Option<T> {
    let read = serde_json::from_slice(&entry.value);
    if let Err(error) = &read {
        tracing::error!(key = entry.key, %error, "a key of etcd cannot be read; its job is not known");
    }
    read.ok()
}
