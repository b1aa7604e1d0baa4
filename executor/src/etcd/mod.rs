//! etcd by its JSON gateway: keys under one prefix, leases, and transactions that a deposed leader
//! cannot commit.
//!
//! # Layout
//! - `wire`: HTTP calls to one of the members.
//! - `change`: writes that go through together, or not at all.
//! - [`writer`]: writes of a leader, in their order.

mod change;
mod wire;
pub mod writer;

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goodput_configs::live::leader::EtcdConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::Mutex;

use crate::agent::record::{self, RecordError};
pub use change::Change;
use wire::Wire;

/// Key of the term, below the prefix. Only an election changes the value.
pub const TERM: &str = "term";

/// Entries of one page of a listing.
const PAGE: u64 = 1000;

/// Reason why etcd did not do what it was asked.
#[derive(Debug, Error)]
pub enum EtcdError {
    /// No member answers, or the members have no majority: the fate of the call is not known.
    #[error("etcd does not answer: {problem}; see [leader.lease.etcd] endpoints, and `etcdctl endpoint health`")]
    Unreachable {
        /// Failure at each endpoint.
        problem: String,
    },
    /// etcd answered with an error.
    #[error("etcd refuses {call}: {problem}")]
    Refused {
        /// Path of the call.
        call: &'static str,
        /// Message of etcd.
        problem: String,
    },
    /// The certificates cannot be used.
    #[error("[leader.lease.etcd] tls: {0}")]
    Setup(String),
    /// The value of a key cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Another daemon leads by now, and nothing was written.
    #[error("term {term} is over: another daemon leads since; nothing was written to etcd")]
    Deposed {
        /// Term of this daemon.
        term: u64,
    },
}

/// An etcd cluster, for the keys under one prefix. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Etcd {
    wire: Arc<Mutex<Wire>>,
    prefix: String,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key below the prefix.
    pub key: String,
    /// Value of the key.
    pub value: Vec<u8>,
    /// Revision of the cluster at the last change of the key.
    pub changed: i64,
    /// Revision of the cluster when the key was made.
    pub created: i64,
}

impl Entry {
    /// Record that the key holds.
    ///
    /// # Errors
    /// [`RecordError::Damaged`], or [`RecordError::Newer`] where a later program wrote it.
    pub fn record<T: DeserializeOwned>(&self) -> Result<T, RecordError> {
        record::decode(Path::new(&format!("etcd key {}", self.key)), &self.value)
    }
}

/// Keys of a range at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Revision of the cluster that the range was read at.
    pub revision: i64,
    /// Number of keys in the range, listed or not.
    pub count: u64,
    /// Keys that are listed, in order.
    pub entries: Vec<Entry>,
}

/// A lease that etcd granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Number of the lease.
    pub id: i64,
    /// Seconds until the lease ends, counted by etcd from when it granted or renewed the lease.
    pub ttl_s: i64,
}

#[derive(Deserialize)]
struct Ranged {
    header: Header,
    #[serde(default)]
    kvs: Vec<Kv>,
    #[serde(default)]
    more: bool,
    #[serde(default, deserialize_with = "wire::number")]
    count: i64,
}

#[derive(Deserialize)]
struct Committed {
    header: Header,
    #[serde(default)]
    succeeded: bool,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default, deserialize_with = "wire::number")]
    revision: i64,
}

#[derive(Deserialize)]
struct Kv {
    key: String,
    #[serde(default)]
    value: String,
    #[serde(default, deserialize_with = "wire::number")]
    mod_revision: i64,
    #[serde(default, deserialize_with = "wire::number")]
    create_revision: i64,
}

#[derive(Deserialize)]
struct Leased {
    #[serde(rename = "ID", default, deserialize_with = "wire::number")]
    id: i64,
    #[serde(rename = "TTL", default, deserialize_with = "wire::number")]
    ttl: i64,
}

impl Etcd {
    /// The cluster that `settings` name. It is asked at the first call.
    ///
    /// # Errors
    /// [`EtcdError::Setup`] where the certificates cannot be used.
    pub fn new(settings: &EtcdConfig) -> Result<Self, EtcdError> {
        let wire = Arc::new(Mutex::new(Wire::new(settings)?));
        Ok(Self { wire, prefix: settings.prefix.clone() })
    }

    async fn call(&self, call: &'static str, body: &Value) -> Result<Value, EtcdError> {
        self.wire.lock().await.call(call, body).await
    }

    /// Key below the prefix as etcd's JSON writes it.
    fn key(&self, key: &str) -> String {
        STANDARD.encode(format!("{}/{key}", self.prefix))
    }

    fn below(&self, kv: Kv) -> Option<Entry> {
        let key = String::from_utf8(STANDARD.decode(kv.key).ok()?).ok()?;
        let key = key.strip_prefix(&self.prefix)?.strip_prefix('/')?.to_owned();
        Some(Entry {
            key,
            value: STANDARD.decode(kv.value).ok()?,
            changed: kv.mod_revision,
            created: kv.create_revision,
        })
    }

    /// The keys that begin with `under` and have changed since revision `since`; all of them where
    /// it is 0. The revision and the count are those of one moment.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub async fn list(&self, under: &str, since: i64) -> Result<Entries, EtcdError> {
        let mut listed = Entries::default();
        let mut from = format!("{}/{under}", self.prefix).into_bytes();
        let end = end_of(&from);
        loop {
            let body = json!({
                "key": STANDARD.encode(&from), "range_end": STANDARD.encode(&end), "limit": PAGE.to_string(),
                "min_mod_revision": since.to_string(), "revision": listed.revision.to_string(),
            });
            let page: Ranged = wire::read("/v3/kv/range", self.call("/v3/kv/range", &body).await?)?;
            if listed.revision == 0 {
                (listed.revision, listed.count) = (page.header.revision, page.count.max(0) as u64);
            }
            let last = page.kvs.last().and_then(|kv| STANDARD.decode(&kv.key).ok());
            listed.entries.extend(page.kvs.into_iter().filter_map(|kv| self.below(kv)));
            match last.filter(|_| page.more) {
                // The next page begins at the least key after the last one.
                Some(last) => from = [last.as_slice(), &[0]].concat(),
                None => return Ok(listed),
            }
        }
    }

    /// A key; `None` where there is none.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub async fn get(&self, key: &str) -> Result<Option<Entry>, EtcdError> {
        let body = json!({ "key": self.key(key) });
        let page: Ranged = wire::read("/v3/kv/range", self.call("/v3/kv/range", &body).await?)?;
        Ok(page.kvs.into_iter().find_map(|kv| self.below(kv)))
    }

    /// A lease of `ttl_s` seconds.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub async fn grant(&self, ttl_s: i64) -> Result<Grant, EtcdError> {
        let answer = self.call("/v3/lease/grant", &json!({ "TTL": ttl_s.to_string() })).await?;
        let Leased { id, ttl } = wire::read("/v3/lease/grant", answer)?;
        Ok(Grant { id, ttl_s: ttl })
    }

    /// Renews a lease; `None` where it is over.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub async fn keep_alive(&self, id: i64) -> Result<Option<Grant>, EtcdError> {
        let mut answer = self.call("/v3/lease/keepalive", &json!({ "ID": id.to_string() })).await?;
        let Leased { id, ttl } = wire::read("/v3/lease/keepalive", answer["result"].take())?;
        Ok((ttl > 0).then_some(Grant { id, ttl_s: ttl }))
    }

    /// Ends a lease, and with it the keys that are bound to it. One that is over already is no
    /// error.
    ///
    /// # Errors
    /// [`EtcdError::Unreachable`].
    pub async fn revoke(&self, id: i64) -> Result<(), EtcdError> {
        match self.call("/v3/lease/revoke", &json!({ "ID": id.to_string() })).await {
            Ok(_) | Err(EtcdError::Refused { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes `changes` together where `conditions` (etcd's comparisons) hold. Returns the revision that the changes
    /// made; `None` where the conditions do not hold.
    ///
    /// # Errors
    /// [`EtcdError`]; an unreachable etcd may have made the changes, or may yet make them.
    pub(crate) async fn commit(&self, conditions: &[Value], changes: Vec<Change>) -> Result<Option<i64>, EtcdError> {
        let changes: Vec<Value> = changes.into_iter().map(|change| change.request(|key| self.key(key))).collect();
        let answer = self.call("/v3/kv/txn", &json!({ "compare": conditions, "success": changes })).await?;
        let Committed { header, succeeded } = wire::read("/v3/kv/txn", answer)?;
        Ok(succeeded.then_some(header.revision))
    }

    /// Comparison that holds where a key has this value.
    pub(crate) fn equal(&self, key: &str, value: &str) -> Value {
        json!({ "key": self.key(key), "target": "VALUE", "result": "EQUAL", "value": STANDARD.encode(value) })
    }

    /// Comparison that holds where a key has not changed since revision `changed`; 0 where there is
    /// no such key.
    pub(crate) fn unchanged(&self, key: &str, changed: i64) -> Value {
        json!({ "key": self.key(key), "target": "MOD", "result": "EQUAL", "mod_revision": changed.to_string() })
    }
}

/// The first key after all those that begin with `prefix`.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Every byte was the greatest one: etcd reads a zero as "to the end".
    vec![0]
}
