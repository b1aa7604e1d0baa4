//! Facts that the daemons of several hosts must know of each other, in etcd: the journal is of one host.
//!
//! | key below the prefix | value |
//! |---|---|
//! | `mode` | the mode that a call set |
//! | `promises/MS` | a submission that the engine may yet forget |
//! | `ends/MS/KEY` | when a job was seen to be over that the engine may yet forget |
//! | `tries/DIGEST` | the first try of a submission with an idempotency key |
//! | `orders/ID` | an order that a person gave, until it is carried out |
//! | `book` | written when the first leader had its own journal in the keys above |
//! | `policy/...` | changes of the policy, and bundles: see `policies` |
//!
//! All but the mode are written on condition that the writer leads. A new leader reads them into its
//! own journal before it decides. Orders of policies are not among them: what runs is seen, and the
//! policy of the new leader decides anew.

pub(in crate::daemon) mod policies;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use goodput_configs::live::deployment::Mode;
use serde::de::DeserializeOwned;

use super::journal::{AcknowledgedSubmission, FirstTry, JobEnd, KeyedTry, REMEMBERED_MS};
use super::kept_mode;
use crate::agent::record::RecordError;
use crate::daemon::{Daemon, DaemonError, UnderWay};
use crate::engine::{Engine, Order, OrderId, digest};
use crate::etcd::writer::LeaderWriter;
use crate::etcd::{Change, Entries, Entry, Etcd, EtcdError};
use crate::machine::wall_ms;

const MODE: &str = "mode";
const PROMISES: &str = "promises/";
const ENDS: &str = "ends/";
const TRIES: &str = "tries/";
const ORDERS: &str = "orders/";
const BOOK: &str = "book";

/// The keys of one cluster.
#[derive(Debug)]
pub(in crate::daemon) struct SharedBook {
    etcd: Etcd,
    writer: LeaderWriter,
    /// Orders of persons that are written there, by id.
    orders: Vec<String>,
    /// Revision of the cluster at which the changes of the policy were read last; 0 before that.
    policies_seen: i64,
}

/// Facts that an earlier leader left.
#[derive(Debug, Default)]
struct Legacy {
    promises: Vec<AcknowledgedSubmission>,
    ends: BTreeMap<JobEnd, i64>,
    tries: Vec<KeyedTry>,
    orders: Vec<Order>,
    /// Records that are there and cannot be used.
    damaged: Vec<RecordError>,
}

impl SharedBook {
    /// The keys in `etcd`.
    pub fn new(etcd: Etcd) -> Self {
        Self { writer: LeaderWriter::new(etcd.clone(), "book"), etcd, orders: Vec::new(), policies_seen: 0 }
    }

    /// Mode that a call has set; `None` where none has.
    pub async fn mode(&self) -> Result<Option<Mode>, EtcdError> {
        let entry = self.etcd.get(MODE).await?;
        let named = |name: String| Mode::by_name(&name).unwrap_or_default();
        Ok(entry.and_then(|entry| String::from_utf8(entry.value).ok()).map(named))
    }

    /// Sets the mode of all daemons. Any daemon may: a person told it to.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), EtcdError> {
        // A call that was given up and goes through late must not undo this one.
        let seen = self.etcd.get(MODE).await?.map_or(0, |entry| entry.changed);
        let unchanged = [self.etcd.unchanged(MODE, seen)];
        let set = self.etcd.commit(&unchanged, vec![Change::put(MODE, mode.name())]).await?;
        let problem = "the mode was set by another call just now; look at it and set it again".to_owned();
        set.map(drop).ok_or(EtcdError::Refused { call: "/v3/kv/txn", problem })
    }

    /// Writes a promise, or its new key.
    pub async fn promise(&self, term: u64, promise: &AcknowledgedSubmission) -> Result<(), EtcdError> {
        self.writer.write(term, vec![put_promise(promise)]).await
    }

    /// Forgets promises that the engine can keep by itself.
    pub async fn settle(&self, term: u64, submitted_ms: &[i64]) -> Result<(), EtcdError> {
        let changes = submitted_ms.iter().map(|submit_ms| Change::delete(format!("{PROMISES}{submit_ms}")));
        self.writer.write(term, changes.collect()).await
    }

    /// Writes ends that are `new`, and forgets those that are `old`.
    pub async fn keep_ends(&self, term: u64, new: &[(JobEnd, i64)], old: &[JobEnd]) -> Result<(), EtcdError> {
        let put = new.iter().map(|(end, seen_ms)| put_end(end, *seen_ms));
        let changes = put.chain(old.iter().map(|end| Change::delete(end_key(end)))).collect();
        self.writer.write(term, changes).await
    }

    /// Writes an order that a person gave.
    pub async fn order(&mut self, term: u64, order: &Order) -> Result<(), EtcdError> {
        self.writer.write(term, vec![Change::record(format!("{ORDERS}{}", order.id.0), order)]).await?;
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
        self.writer.write(term, closed).await?;
        self.orders.retain(|id| open(id));
        Ok(())
    }

    /// Writes the first try of a submission, or the key of its job.
    async fn keep_try(&self, term: u64, kept: &KeyedTry) -> Result<(), EtcdError> {
        self.writer.write(term, vec![put_try(kept)]).await
    }

    /// Forgets a try of which no job came.
    async fn forget_try(&self, term: u64, who: &str, key: &str) -> Result<(), EtcdError> {
        self.writer.write(term, vec![Change::delete(try_key(who, key))]).await
    }

    /// Whether a leader had its journal in these keys.
    async fn is_begun(&self) -> Result<bool, EtcdError> {
        Ok(self.etcd.get(BOOK).await?.is_some())
    }

    /// Has what the journal of the first leader keeps in these keys. The mark is the last change, so that a leader
    /// that was cut off begins anew.
    async fn begin(&self, term: u64, mut kept: Vec<Change>) -> Result<(), EtcdError> {
        kept.push(Change::put(BOOK, term.to_string()));
        self.writer.write(term, kept).await
    }

    /// Facts that an earlier leader left. Idempotency keys that are too old are forgotten.
    async fn legacy(&mut self, term: u64, now_ms: i64) -> Result<Legacy, EtcdError> {
        let mut damaged = Vec::new();
        let promises = read(&self.etcd.list(PROMISES, 0).await?, &mut damaged)?;
        let orders: Vec<Order> = read(&self.etcd.list(ORDERS, 0).await?, &mut damaged)?;
        self.orders = orders.iter().map(|order| order.id.0.clone()).collect();
        let ends = self.etcd.list(ENDS, 0).await?.entries.into_iter().filter_map(|entry| read_end(&entry)).collect();
        let tries: Vec<KeyedTry> = read(&self.etcd.list(TRIES, 0).await?, &mut damaged)?;
        let is_old = |kept: &KeyedTry| now_ms - kept.first.at_ms > REMEMBERED_MS;
        let (old, tries): (Vec<KeyedTry>, Vec<KeyedTry>) = tries.into_iter().partition(is_old);
        let forgotten = old.iter().map(|kept| Change::delete(try_key(&kept.who, &kept.key)));
        self.writer.write(term, forgotten.collect()).await?;
        Ok(Legacy { promises, ends, tries, orders, damaged })
    }
}

fn put_promise(promise: &AcknowledgedSubmission) -> Change {
    Change::record(format!("{PROMISES}{}", promise.submit_ms()), promise)
}

fn end_key(end: &JobEnd) -> String {
    format!("{ENDS}{}/{}", end.submit_ms, end.key)
}

fn put_end(end: &JobEnd, seen_ms: i64) -> Change {
    Change::put(end_key(end), seen_ms.to_string())
}

fn read_end(entry: &Entry) -> Option<(JobEnd, i64)> {
    let (submit_ms, key) = entry.key.strip_prefix(ENDS)?.split_once('/')?;
    let end = JobEnd { submit_ms: submit_ms.parse().ok()?, key: key.to_owned() };
    Some((end, std::str::from_utf8(&entry.value).ok()?.parse().ok()?))
}

fn try_key(who: &str, key: &str) -> String {
    format!("{TRIES}{}", digest(&[who, key]))
}

fn put_try(kept: &KeyedTry) -> Change {
    Change::record(try_key(&kept.who, &kept.key), kept)
}

/// Records that can be used; the others are `damaged`.
fn read<T: DeserializeOwned>(listed: &Entries, damaged: &mut Vec<RecordError>) -> Result<Vec<T>, EtcdError> {
    let mut records = Vec::with_capacity(listed.entries.len());
    for entry in &listed.entries {
        match entry.record() {
            Ok(record) => records.push(record),
            Err(newer @ RecordError::Newer { .. }) => return Err(newer.into()),
            Err(fault) => damaged.push(fault),
        }
    }
    Ok(records)
}

impl<E: Engine> Daemon<E> {
    /// Term for a write that other daemons read; an error where this daemon stands by.
    pub(in crate::daemon) fn leading(&self) -> Result<u64, DaemonError> {
        self.leader.term().ok_or_else(|| self.stands_by())
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

    /// Writes the first try of a submission, or the key of its job, and has it on disk when it returns.
    pub(super) async fn keep_try(&mut self, who: &str, key: &str, first: &FirstTry) -> Result<(), DaemonError> {
        if let Some(shared) = &self.shared {
            let kept = KeyedTry { who: who.to_owned(), key: key.to_owned(), first: first.clone() };
            shared.keep_try(self.leading()?, &kept).await?;
        }
        Ok(self.journal.keep_try(who, key, first)?)
    }

    /// Forgets a try of which no job came.
    pub(super) async fn forget_try(&mut self, who: &str, key: &str) -> Result<(), DaemonError> {
        if let Some(shared) = &self.shared {
            shared.forget_try(self.leading()?, who, key).await?;
        }
        Ok(self.journal.forget_try(who, key)?)
    }

    /// Gives the job of a time of submission, which was handed in again, its new key.
    pub(super) async fn rename_try(&mut self, submit_ms: i64, job: &str) -> Result<(), DaemonError> {
        let Some(KeyedTry { who, key, first }) = self.journal.try_of(submit_ms)? else { return Ok(()) };
        self.keep_try(&who, &key, &FirstTry { job: Some(job.to_owned()), ..first }).await
    }

    /// Takes what an earlier leader left, on whichever host, into the journal of this one.
    pub(in crate::daemon) async fn inherit(&mut self) -> Result<(), DaemonError> {
        let term = self.leading()?;
        let Some(shared) = &mut self.shared else { return Ok(()) };
        if !shared.is_begun().await? {
            // Until now the journal of this host was all there was.
            let promises = self.journal.promises()?.0.iter().map(put_promise).collect::<Vec<_>>();
            let ends = self.journal.ends()?.into_iter().map(|(end, seen_ms)| put_end(&end, seen_ms));
            let tries = self.journal.tries()?;
            let mode = kept_mode::read(&self.journal)?.map(|mode| Change::put(MODE, mode.name()));
            let kept = promises.into_iter().chain(ends).chain(tries.iter().map(put_try)).chain(mode);
            shared.begin(term, kept.collect()).await?;
        }
        let Legacy { promises, ends, tries, orders, damaged } = shared.legacy(term, wall_ms()).await?;
        let held = |submit_ms| promises.iter().any(|promise| promise.submit_ms() == submit_ms);
        let stale = self.journal.promises()?.0.into_iter().map(|promise| promise.submit_ms());
        let stale: Vec<i64> = stale.filter(|submit_ms| !held(*submit_ms)).collect();
        self.journal.settle(&stale)?;
        promises.iter().try_for_each(|promise| self.journal.promise(promise))?;
        let stale: Vec<JobEnd> = self.journal.ends()?.into_keys().filter(|end| !ends.contains_key(end)).collect();
        self.journal.keep_ends(&ends.into_iter().collect::<Vec<_>>(), &stale)?;
        self.journal.replace_tries(&tries)?;
        let known: BTreeSet<OrderId> = self.open.iter().map(|under_way| under_way.order.id.clone()).collect();
        let new = orders.into_iter().filter(|order| !known.contains(&order.id));
        let (since, note) = (Instant::now(), "taken up from another daemon");
        self.open.extend(new.map(|order| UnderWay { order, since, note: note.into() }));
        damaged.iter().for_each(|fault| self.alert("damaged", &fault.to_string()));
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
