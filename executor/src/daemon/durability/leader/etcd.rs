//! The lease in etcd.
//!
//! | key below the prefix | value |
//! |---|---|
//! | `leader` | name and address of the leader; bound to an etcd lease, with which it ends |
//! | `term` | number of the last leadership; it stays |
//!
//! An election is one transaction: where there is no `leader` and `term` is as it was read, both are
//! written. So terms grow by elections alone, and a write on condition that `term` is unchanged is a
//! write of the leader ([`LeaderWriter`](crate::etcd::writer::LeaderWriter)).

use std::path::PathBuf;

use super::DaemonName;
use super::outside::{Campaign, KeeperAnswer, OutsideLease, TakenLease};
use crate::agent::boot_ms;
use crate::etcd::{Change, Etcd, EtcdError, TERM};

/// Key of the leader, below the prefix.
const LEADER: &str = "leader";

/// A daemon's lease in etcd.
#[derive(Debug)]
pub struct EtcdLease {
    etcd: Etcd,
    ttl_s: i64,
    /// File with the number of the lease granted last, so that a daemon that comes back need not
    /// wait for the lease of its dead predecessor.
    file: PathBuf,
    /// Lease that was granted and not given back: held, or left behind by a call that failed.
    granted: Option<i64>,
    /// Revision of the leader's key when this daemon wrote it.
    written: i64,
}

impl EtcdLease {
    /// A lease of `ttl_s` seconds; its number is kept in `file`, which belongs to this daemon alone.
    pub fn new(etcd: Etcd, ttl_s: u32, file: PathBuf) -> Self {
        let granted = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        Self { etcd, ttl_s: i64::from(ttl_s), file, granted, written: 0 }
    }

    async fn try_campaign(&mut self, me: &DaemonName, floor: u64) -> Result<Campaign, EtcdError> {
        // Left behind by a predecessor that died, or by a call that failed half way.
        if let Some(old) = self.granted {
            self.etcd.revoke(old).await?;
            self.granted = None;
        }
        if let Some(leader) = self.etcd.get(LEADER).await? {
            return Ok(Campaign::Held(serde_json::from_slice(&leader.value).unwrap_or_default()));
        }
        let term = self.etcd.get(TERM).await?;
        let seen = term.as_ref().map_or(0, |entry| entry.changed);
        let before = term.and_then(|entry| String::from_utf8(entry.value).ok()?.parse().ok()).unwrap_or(0);
        let asked_boot_ms = boot_ms();
        let grant = self.etcd.grant(self.ttl_s).await?;
        self.granted = Some(grant.id);
        // Without the file a daemon that comes back waits for the lease to end: slower, and as safe.
        let _ = std::fs::write(&self.file, grant.id.to_string());
        let next = before.max(floor) + 1;
        let me = serde_json::to_vec(me).unwrap_or_default();
        let changes = vec![
            Change::put(TERM, next.to_string()),
            Change::Put { key: LEADER.into(), value: me, lease: Some(grant.id) },
        ];
        let conditions = [self.etcd.unchanged(LEADER, 0), self.etcd.unchanged(TERM, seen)];
        if self.etcd.commit(&conditions, changes).await?.is_none() {
            return Ok(Campaign::Lost);
        }
        self.written = self.etcd.get(LEADER).await?.map_or(0, |entry| entry.changed);
        let until_boot_ms = asked_boot_ms + grant.ttl_s * 1000;
        Ok(Campaign::Won(TakenLease { term: next, before, until_boot_ms }))
    }

    async fn try_renew(&mut self) -> Result<Option<i64>, EtcdError> {
        let Some(id) = self.granted else { return Ok(None) };
        let asked_boot_ms = boot_ms();
        let Some(grant) = self.etcd.keep_alive(id).await? else { return Ok(None) };
        // An administrator may have removed the key by hand: the lease alone proves nothing.
        let leader = self.etcd.get(LEADER).await?;
        let mine = leader.is_some_and(|entry| entry.changed == self.written);
        Ok(mine.then_some(asked_boot_ms + grant.ttl_s * 1000))
    }
}

impl OutsideLease for EtcdLease {
    fn campaign<'a>(&'a mut self, me: &'a DaemonName, floor: u64) -> KeeperAnswer<'a, Campaign> {
        Box::pin(async move { self.try_campaign(me, floor).await.map_err(|error| error.to_string()) })
    }

    fn renew(&mut self) -> KeeperAnswer<'_, Option<i64>> {
        Box::pin(async move { self.try_renew().await.map_err(|error| error.to_string()) })
    }

    fn give_up(&mut self) -> KeeperAnswer<'_, ()> {
        Box::pin(async move {
            if let Some(id) = self.granted.take() {
                self.etcd.revoke(id).await.map_err(|error| error.to_string())?;
            }
            Ok(())
        })
    }
}
