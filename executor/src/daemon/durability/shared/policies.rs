//! Changes of the policy in etcd, with the bundles of the policies that may decide: one history for all hosts.
//!
//! | key below the prefix | value |
//! |---|---|
//! | `policy/changes/NUMBER` | a change; the one with the greatest number rules |
//! | `policy/bundles/SHA256` | number of the parts and of the bytes of a bundle, written after its parts |
//! | `policy/parts/SHA256/PART` | a part of the bundle |
//!
//! The leader writes them, on condition that it leads. The bundles of policies to which a rollback can go stay, up to
//! a number; older ones are removed.

use serde::{Deserialize, Serialize};

use super::SharedBook;
use crate::agent::record::RecordError;
use crate::daemon::durability::journal::PolicyChange;
use crate::etcd::{Change, Entry, EtcdError};

const CHANGES: &str = "policy/changes/";
const BUNDLES: &str = "policy/bundles/";
const PARTS: &str = "policy/parts/";

/// Bytes of a part: etcd takes 1.5 MiB in a request, and JSON makes them a third longer.
const PART: usize = 512 << 10;
/// Largest bundle, bytes: etcd's quota is 2 GiB where it is not told otherwise.
pub(in crate::daemon) const LARGEST: usize = 64 << 20;
/// Bundles that are kept.
pub(in crate::daemon) const KEPT: usize = 8;

/// A bundle that is there whole.
#[derive(Debug, Serialize, Deserialize)]
struct StoredBundle {
    parts: usize,
    bytes: usize,
}

/// The history as etcd has it.
#[derive(Debug, Default)]
pub(in crate::daemon) struct KeptPolicies {
    /// Changes that can be read, in order.
    pub changes: Vec<PolicyChange>,
    /// Number of the last change, which rules; 0 where there is none.
    pub last: i64,
    /// Fault of the change that rules, where it cannot be read.
    pub fault: Option<RecordError>,
    /// Revision of the cluster at which it was read.
    pub revision: i64,
}

impl KeptPolicies {
    /// The change that rules; `None` where there is none.
    ///
    /// # Errors
    /// A sentence where it cannot be read.
    pub fn ruling(&self) -> Result<Option<PolicyChange>, String> {
        match &self.fault {
            Some(fault) => Err(format!("change {} of the policy rules, and cannot be read: {fault}", self.last)),
            None => Ok(self.changes.last().cloned()),
        }
    }
}

impl SharedBook {
    /// The history, as no earlier write of this leader can change it any more.
    pub async fn settled_policies(&self, term: u64) -> Result<KeptPolicies, EtcdError> {
        self.writer.settle(term).await?;
        self.policies().await
    }

    /// The history, where it has changed since the last look that was noted.
    pub async fn new_policies(&self) -> Result<Option<KeptPolicies>, EtcdError> {
        let news = self.etcd.list(CHANGES, self.policies_seen + 1).await?;
        if news.entries.is_empty() {
            return Ok(None);
        }
        self.policies().await.map(Some)
    }

    /// Notes that the history was taken up as it was read.
    pub fn note_policies(&mut self, kept: &KeptPolicies) {
        self.policies_seen = kept.revision;
    }

    async fn policies(&self) -> Result<KeptPolicies, EtcdError> {
        let listed = self.etcd.list(CHANGES, 0).await?;
        let mut kept = KeptPolicies { revision: listed.revision, ..KeptPolicies::default() };
        for entry in &listed.entries {
            // A key without a number holds no change.
            let Some(number) = number_of(entry) else { continue };
            kept.last = number;
            match entry.record::<PolicyChange>() {
                Ok(change) => {
                    kept.fault = None;
                    kept.changes.push(PolicyChange { number: kept.last, ..change });
                }
                // An older change that cannot be read is missing from the history, and does no other harm.
                Err(fault) => kept.fault = Some(fault),
            }
        }
        Ok(kept)
    }

    /// Writes changes under their numbers, with bundles by SHA-256, and removes the bundles that are not among those
    /// to `keep`. Up to ninety changes are there together, or none of them.
    pub async fn change_policies(
        &self,
        term: u64,
        changes: &[PolicyChange],
        bundles: &[(String, Vec<u8>)],
        keep: &[String],
    ) -> Result<(), EtcdError> {
        let stored = self.etcd.list(BUNDLES, 0).await?;
        let name = |entry: &Entry| entry.key.strip_prefix(BUNDLES).map(str::to_owned);
        for (sha256, bytes) in bundles {
            if stored.entries.iter().filter_map(name).all(|there| there != *sha256) {
                // Whatever of a bundle arrives before a call fails, the changes come after all of it.
                self.writer.write(term, put_bundle(sha256, bytes)).await?;
            }
        }
        let mut all: Vec<Change> =
            changes.iter().map(|change| Change::record(format!("{CHANGES}{:010}", change.number), change)).collect();
        for entry in &stored.entries {
            let Some(sha256) = name(entry).filter(|sha256| !keep.contains(sha256)) else { continue };
            let parts = entry.record::<StoredBundle>().map_or(0, |stored| stored.parts);
            all.push(Change::delete(entry.key.clone()));
            all.extend((0..parts).map(|part| Change::delete(part_key(&sha256, part))));
        }
        self.writer.write(term, all).await
    }

    /// Bytes of a bundle; `None` where they are not there whole. The reader checks the SHA-256.
    pub async fn bundle(&self, sha256: &str) -> Result<Option<Vec<u8>>, EtcdError> {
        let Some(entry) = self.etcd.get(&format!("{BUNDLES}{sha256}")).await? else { return Ok(None) };
        let stored: StoredBundle = entry.record()?;
        let mut bytes = Vec::with_capacity(stored.bytes.min(LARGEST));
        for part in 0..stored.parts {
            let Some(part) = self.etcd.get(&part_key(sha256, part)).await? else { return Ok(None) };
            bytes.extend(part.value);
        }
        Ok((bytes.len() == stored.bytes).then_some(bytes))
    }
}

/// Number of the change that a key holds.
fn number_of(entry: &Entry) -> Option<i64> {
    entry.key.strip_prefix(CHANGES)?.parse().ok()
}

fn part_key(sha256: &str, part: usize) -> String {
    format!("{PARTS}{sha256}/{part:04}")
}

fn put_bundle(sha256: &str, bytes: &[u8]) -> Vec<Change> {
    let parts = bytes.chunks(PART);
    let stored = StoredBundle { parts: parts.len(), bytes: bytes.len() };
    let mut changes: Vec<Change> =
        parts.enumerate().map(|(at, part)| Change::put(part_key(sha256, at), part)).collect();
    changes.push(Change::record(format!("{BUNDLES}{sha256}"), &stored));
    changes
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_cut_into_parts_below_the_limit_of_a_request() {
        let bytes: Vec<u8> = (0..3 * PART + 7).map(|at| (at % 251) as u8).collect();
        let changes = put_bundle("ab", &bytes);
        let mut found = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            let Change::Put { key, value, .. } = change else { panic!("{change:?}") };
            if at + 1 == changes.len() {
                assert_eq!(key, "policy/bundles/ab", "the mark that it is whole comes last");
            } else {
                assert!(value.len() <= PART && *key == part_key("ab", at), "{key}");
                found.extend(value.clone());
            }
        }
        assert_eq!((found == bytes, changes.len()), (true, 5));
    }
}
