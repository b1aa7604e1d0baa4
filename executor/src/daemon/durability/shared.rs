//! What the daemons of several hosts must know of each other's promises, in etcd: the journal is of
//! one host.
//!
//! | key below the prefix | value |
//! |---|---|
//! | `mode` | the mode that a call set |
//! | `promises/MS` | a submission that the engine may yet forget |
//! | `ends/MS/KEY` | when a job was seen to be over that the engine may yet forget |
//! | `orders/ID` | an order that a person gave, until it is carried out |
//!
//! All but the mode are written on condition that the writer leads. A new leader reads them into its
//! own journal before it decides. Orders of policies are not among them: what runs is seen, and the
//! policy of the new leader decides anew.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use goodput_configs::live::deployment::Mode;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::journal::{AcknowledgedSubmission, JobEnd};
use crate::daemon::{Daemon, DaemonError, UnderWay};
use crate::engine::{Engine, Order, OrderId};
use crate::etcd::{Change, Entries, Etcd, EtcdError};

const MODE: &str = "mode";
const PROMISES: &str = "promises/";
const ENDS: &str = "ends/";
const ORDERS: &str = "orders/";

/// The keys of one cluster.
#[derive(Debug)]
pub(in crate::daemon) struct SharedBook {
    etcd: Etcd,
    /// Orders of persons that are written there, by id.
    orders: Vec<String>,
}

/// What an earlier leader left.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Legacy {
    pub promises: Vec<AcknowledgedSubmission>,
    pub ends: BTreeMap<JobEnd, i64>,
    pub orders: Vec<Order>,
}

impl SharedBook {
    pub fn new(etcd: Etcd) -> Self {
        Self { etcd, orders: Vec::new() }
    }

    /// Mode that a call has set; `None` where none has.
    pub async fn mode(&self) -> Result<Option<Mode>, EtcdError> {
        let entry = self.etcd.get(MODE).await?;
        let named = |name: String| Mode::by_name(&name).unwrap_or_default();
        Ok(entry.and_then(|entry| String::from_utf8(entry.value).ok()).map(named))
    }

    /// Sets the mode of all daemons. Any daemon may: a person told it to.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), EtcdError> {
        self.etcd.commit(&json!([]), vec![Change::put(MODE, mode.name())]).await.map(|_| ())
    }

    /// Writes a promise, or its new key.
    pub async fn promise(&self, term: u64, promise: &AcknowledgedSubmission) -> Result<(), EtcdError> {
        let key = format!("{PROMISES}{}", promise.submit_ms());
        self.etcd.write(term, vec![Change::put(key, bytes(promise))]).await
    }

    /// Forgets promises.
    pub async fn settle(&self, term: u64, submitted_ms: &[i64]) -> Result<(), EtcdError> {
        let changes = submitted_ms.iter().map(|submit_ms| Change::delete(format!("{PROMISES}{submit_ms}")));
        self.etcd.write(term, changes.collect()).await
    }

    /// Writes ends that are `new`, and forgets those that are `old`.
    pub async fn keep_ends(&self, term: u64, new: &[(JobEnd, i64)], old: &[JobEnd]) -> Result<(), EtcdError> {
        let name = |end: &JobEnd| format!("{ENDS}{}/{}", end.submit_ms, end.key);
        let put = new.iter().map(|(end, seen_ms)| Change::put(name(end), seen_ms.to_string()));
        let changes = put.chain(old.iter().map(|end| Change::delete(name(end)))).collect();
        self.etcd.write(term, changes).await
    }

    /// Writes an order that a person gave.
    pub async fn order(&mut self, term: u64, order: &Order) -> Result<(), EtcdError> {
        self.etcd.write(term, vec![Change::put(format!("{ORDERS}{}", order.id.0), bytes(order))]).await?;
        self.orders.push(order.id.0.clone());
        Ok(())
    }

    /// Forgets orders of persons that are not among the `open` ones any more.
    pub async fn close_orders(&mut self, term: u64, open: impl Fn(&str) -> bool) -> Result<(), EtcdError> {
        let closed: Vec<Change> =
            self.orders.iter().filter(|id| !open(id)).map(|id| Change::delete(format!("{ORDERS}{id}"))).collect();
        if closed.is_empty() {
            return Ok(());
        }
        self.etcd.write(term, closed).await?;
        self.orders.retain(|id| open(id));
        Ok(())
    }

    /// What an earlier leader left.
    pub async fn legacy(&mut self) -> Result<Legacy, EtcdError> {
        let promises = read(self.etcd.list(PROMISES, 0).await?);
        let orders: Vec<Order> = read(self.etcd.list(ORDERS, 0).await?);
        self.orders = orders.iter().map(|order| order.id.0.clone()).collect();
        let ends = self.etcd.list(ENDS, 0).await?.entries.into_iter().filter_map(|entry| {
            let (submit_ms, key) = entry.key.strip_prefix(ENDS)?.split_once('/')?;
            let end = JobEnd { submit_ms: submit_ms.parse().ok()?, key: key.to_owned() };
            Some((end, String::from_utf8(entry.value).ok()?.parse().ok()?))
        });
        Ok(Legacy { promises, ends: ends.collect(), orders })
    }
}

impl<E: Engine> Daemon<E> {
    /// Term for a write that other daemons read; an error where this daemon stands by.
    pub(in crate::daemon) fn leading(&self) -> Result<u64, DaemonError> {
        let stands_by = || DaemonError::Refused("this daemon stands by; ask the one that leads".into());
        self.leader.term().ok_or_else(stands_by)
    }

    /// Writes a promise, or its new key, and has it on disk when it returns.
    pub(in crate::daemon) async fn write_promise(
        &mut self,
        promise: &AcknowledgedSubmission,
    ) -> Result<(), DaemonError> {
        if let Some(shared) = &self.shared {
            shared.promise(self.leading()?, promise).await?;
        }
        Ok(self.journal.promise(promise)?)
    }

    /// Forgets promises: the engine no longer can.
    pub(in crate::daemon) async fn settle(&mut self, submitted_ms: &[i64]) -> Result<(), DaemonError> {
        if let Some(shared) = self.shared.as_ref().filter(|_| !submitted_ms.is_empty()) {
            shared.settle(self.leading()?, submitted_ms).await?;
        }
        Ok(self.journal.settle(submitted_ms)?)
    }

    /// Writes down ends that are `new` and forgets those that are `old`.
    pub(in crate::daemon) async fn write_ends(
        &mut self,
        new: &[(JobEnd, i64)],
        old: &[JobEnd],
    ) -> Result<(), DaemonError> {
        if let Some(shared) = self.shared.as_ref().filter(|_| !new.is_empty() || !old.is_empty()) {
            shared.keep_ends(self.leading()?, new, old).await?;
        }
        Ok(self.journal.keep_ends(new, old)?)
    }

    /// Takes what an earlier leader left, on whichever host, into the journal of this one.
    pub(in crate::daemon) async fn inherit(&mut self) -> Result<(), DaemonError> {
        let Some(shared) = &mut self.shared else { return Ok(()) };
        let Legacy { promises, ends, orders } = shared.legacy().await?;
        let held = |submit_ms| promises.iter().any(|promise| promise.submit_ms() == submit_ms);
        let stale = self.journal.promises()?.into_iter().map(|promise| promise.submit_ms());
        let stale: Vec<i64> = stale.filter(|submit_ms| !held(*submit_ms)).collect();
        self.journal.settle(&stale)?;
        promises.iter().try_for_each(|promise| self.journal.promise(promise))?;
        let stale: Vec<JobEnd> = self.journal.ends()?.into_keys().filter(|end| !ends.contains_key(end)).collect();
        self.journal.keep_ends(&ends.into_iter().collect::<Vec<_>>(), &stale)?;
        let known: BTreeSet<OrderId> = self.open.iter().map(|under_way| under_way.order.id.clone()).collect();
        let new = orders.into_iter().filter(|order| !known.contains(&order.id));
        let (since, note) = (Instant::now(), "taken up from another daemon");
        self.open.extend(new.map(|order| UnderWay { order, since, note: note.into() }));
        Ok(())
    }

    /// Forgets orders of persons that are closed.
    pub(in crate::daemon) async fn forget_closed(&mut self) -> Result<(), DaemonError> {
        let Some(term) = self.leader.term() else { return Ok(()) };
        let Some(shared) = &mut self.shared else { return Ok(()) };
        let open = |id: &str| self.open.iter().any(|under_way| under_way.order.id.0 == id);
        Ok(shared.close_orders(term, open).await?)
    }
}

fn bytes(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Values that can be read; the log names the keys of others.
fn read<T: DeserializeOwned>(listed: Entries) -> Vec<T> {
    let value = |entry: &crate::etcd::Entry| {
        let read = serde_json::from_slice(&entry.value);
        if let Err(error) = &read {
            tracing::error!(key = entry.key, %error, "a key of etcd cannot be read");
        }
        read.ok()
    };
    listed.entries.iter().filter_map(value).collect()
}
