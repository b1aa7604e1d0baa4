//! A lease outside the host, for any keeper: the rules that make it safe.
//!
//! - The holder counts its lease from *before* it asked for it or renewed it, on a clock that runs
//!   on while the machine sleeps. The keeper counts from when it was asked, so the holder's lease
//!   ends first, and without any call.
//! - An act begins only while a third of the lease is left.
//! - The local journal learns the term, so that what is written there is checked as on one host.
//! - Orders in the journal of a host that did not lead last are void: another daemon has decided
//!   since, and what runs is seen.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::locks::{Locked, Locks};
use super::{DaemonName, LeaseTerms};
use crate::agent::boot_ms;
use crate::daemon::durability::journal::{Journal, JournalError};

/// Answer of a keeper of leases, in time; a sentence for people where it cannot be had.
pub type KeeperAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// A lease that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenLease {
    /// Term of the new leader: greater than any before.
    pub term: u64,
    /// Term of the leader before; 0 where there was none.
    pub before: u64,
    /// End of the lease, counted from before the call, milliseconds since the machine started.
    pub until_boot_ms: i64,
}

/// Outcome of an attempt to get the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Campaign {
    /// This daemon holds the lease from now on.
    Won(TakenLease),
    /// Another daemon holds the lease.
    Held(DaemonName),
    /// Another daemon was faster, or the lease is not free yet.
    Lost,
}

/// Keeper of a lease outside the host. Terms only grow: a keeper never gives a term twice.
pub trait OutsideLease: std::fmt::Debug + Send {
    /// Takes the lease for `me` in a term above `floor`, where no daemon holds it.
    fn campaign<'a>(&'a mut self, me: &'a DaemonName, floor: u64) -> KeeperAnswer<'a, Campaign>;

    /// Renews the lease of this daemon. Returns its end, counted from before the call, milliseconds
    /// since the machine started; `None` where the lease is over.
    fn renew(&mut self) -> KeeperAnswer<'_, Option<i64>>;

    /// Gives up the lease of this daemon.
    fn give_up(&mut self) -> KeeperAnswer<'_, ()>;
}

/// One daemon's hold on a lease outside the host.
#[derive(Debug)]
pub struct OutsideHold {
    lease: Box<dyn OutsideLease>,
    renew: Duration,
    /// Time that must be left of a lease for an act to begin.
    margin: Duration,
    held: Option<Held>,
    trouble: Option<String>,
}

#[derive(Debug)]
struct Held {
    term: u64,
    until_boot_ms: i64,
    /// Time of the last renewal that was tried, milliseconds since the machine started.
    tried_boot_ms: i64,
    #[expect(dead_code, reason = "the lock is held as long as this lives")]
    alive: Locked,
}

impl OutsideHold {
    /// A daemon that does not lead yet.
    pub fn new(lease: Box<dyn OutsideLease>, terms: LeaseTerms) -> Self {
        Self { lease, renew: terms.renew, margin: terms.lease / 3, held: None, trouble: None }
    }

    /// Reason why the keeper could not be asked at the last tick.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Whether the lease is not over.
    pub fn holds(&self) -> bool {
        self.held.as_ref().is_some_and(|held| boot_ms() < held.until_boot_ms)
    }

    /// Whether enough of the lease is left for an act.
    pub fn lasts(&self) -> bool {
        let margin = self.margin.as_millis() as i64;
        self.held.as_ref().is_some_and(|held| boot_ms() + margin < held.until_boot_ms)
    }

    /// Renews the lease or tries to get it. Returns the term while it leads, and the daemon that
    /// does.
    pub async fn tick(
        &mut self,
        me: &DaemonName,
        locks: &Locks,
        journal: &mut Journal,
    ) -> Result<(Option<u64>, Option<DaemonName>), JournalError> {
        if self.held.is_some() {
            self.hold().await;
            let term = self.held.as_ref().map(|held| held.term);
            return Ok((term, term.map(|_| me.clone())));
        }
        // Of the daemons of one state directory one takes part in the election.
        let Some(alive) = locks.live() else { return Ok((None, None)) };
        let row = journal.lease()?;
        let campaign = self.lease.campaign(me, row.term).await;
        self.trouble = campaign.as_ref().err().cloned();
        let taken = match campaign {
            Ok(Campaign::Won(taken)) => taken,
            Ok(Campaign::Held(other)) => return Ok((None, Some(other))),
            Ok(Campaign::Lost) | Err(_) => return Ok((None, None)),
        };
        if taken.before != row.term {
            journal.void_open("another daemon led since")?;
        }
        journal.hold(taken.term, &me.name)?;
        let (term, until_boot_ms) = (taken.term, taken.until_boot_ms);
        self.held = Some(Held { term, until_boot_ms, tried_boot_ms: boot_ms(), alive });
        Ok((Some(term), Some(me.clone())))
    }

    async fn hold(&mut self) {
        let Some(held) = &mut self.held else { return };
        let now = boot_ms();
        if now - held.tried_boot_ms >= self.renew.as_millis() as i64 || self.trouble.is_some() {
            held.tried_boot_ms = now;
            let renewed = self.lease.renew().await;
            self.trouble = renewed.as_ref().err().cloned();
            match renewed {
                Ok(Some(until_boot_ms)) => held.until_boot_ms = until_boot_ms,
                Ok(None) => held.until_boot_ms = 0,
                Err(_) => {}
            }
        }
        if boot_ms() >= held.until_boot_ms {
            self.held = None;
        }
    }

    /// Forgets that it led.
    pub fn step_down(&mut self) {
        self.held = None;
    }

    /// Gives the lease up.
    pub async fn give_up(&mut self) {
        if self.held.take().is_some() {
            // What cannot be given up runs out.
            let _ = self.lease.give_up().await;
        }
    }
}
