//! Writes that go through together, or not at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use crate::agent::record;

/// Most changes of one transaction: etcd takes 128 where it is not told otherwise.
const MOST: usize = 100;
/// Most bytes of values in one transaction: etcd takes 1.5 MiB, and JSON makes them a third longer.
const MOST_BYTES: usize = 700_000;

/// A write to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key gets a value.
    Put {
        /// Key below the prefix.
        key: String,
        /// Value of the key.
        value: Vec<u8>,
        /// Lease with which the key ends; `None` for a key that stays.
        lease: Option<i64>,
    },
    /// The key is removed.
    Delete {
        /// Key below the prefix.
        key: String,
    },
}

impl Change {
    /// A value that stays.
    pub fn put(key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self::Put { key: key.into(), value: value.into(), lease: None }
    }

    /// A record that stays, with the number of its format.
    pub fn record(key: impl Into<String>, value: &impl Serialize) -> Self {
        // Records have text as keys, so nothing in them cannot be written as JSON.
        Self::put(key, record::encode(value).unwrap_or_default())
    }

    /// The removal of a key.
    pub fn delete(key: impl Into<String>) -> Self {
        Self::Delete { key: key.into() }
    }

    pub(super) fn request(self, encode: impl Fn(&str) -> String) -> Value {
        match self {
            Self::Put { key, value, lease } => {
                let lease = lease.unwrap_or_default().to_string();
                json!({ "request_put": { "key": encode(&key), "value": STANDARD.encode(value), "lease": lease } })
            }
            Self::Delete { key } => json!({ "request_delete_range": { "key": encode(&key) } }),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Put { value, .. } => value.len(),
            Self::Delete { .. } => 0,
        }
    }
}

/// Changes in parts that fit a transaction each.
pub(super) fn parts(changes: Vec<Change>) -> Vec<Vec<Change>> {
    let (mut parts, mut bytes) = (Vec::<Vec<Change>>::new(), 0);
    for change in changes {
        bytes += change.bytes();
        match parts.last_mut().filter(|part| part.len() < MOST && bytes <= MOST_BYTES) {
            Some(part) => part.push(change),
            None => {
                bytes = change.bytes();
                parts.push(vec![change]);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_in_number_and_in_bytes() {
        let small: Vec<Change> = (0..250).map(|key| Change::put(key.to_string(), "x")).collect();
        let sizes: Vec<usize> = parts(small.clone()).iter().map(Vec::len).collect();
        assert_eq!(sizes, [100, 100, 50]);
        assert_eq!(parts(small.clone()).concat(), small, "in order");
        let large: Vec<Change> = (0..3).map(|key| Change::put(key.to_string(), vec![0; 400_000])).collect();
        assert_eq!(parts(large).len(), 3);
        assert!(parts(Vec::new()).is_empty());
    }
}
