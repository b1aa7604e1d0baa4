//! One daemon acts; others stand by.
//!
//! A leader has a term, which grows with each change of leader. The term goes with every call to an
//! agent, and a daemon that was paused finds its own term over before it acts.
//!
//! # Layout
//! - `locks`: files that keep the daemons of one state directory apart.
//! - `journal`: the lease as a row of the journal, for daemons of one host.
//! - [`outside`]: a lease outside the host, for any keeper; [`etcd`] and [`kubernetes`]: the lease there.
//! - `lease_object`: the object of Kubernetes; [`lease_mode`]: the mode in its annotations.

pub mod etcd;
mod journal;
pub mod kubernetes;
pub mod lease_mode;
mod lease_object;
mod locks;
pub mod outside;

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::daemon::durability::journal::{Journal, JournalError};
use journal::JournalLease;
use locks::{Locked, Locks};
use outside::{OutsideHold, OutsideLease};

/// Duration of a lease, and the interval of its renewal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeaseTerms {
    /// Without renewal for so long, another daemon takes over.
    pub lease: Duration,
    /// Time between renewals.
    pub renew: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), renew: Duration::from_secs(5) }
    }
}

/// A daemon as others name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonName {
    /// Name of the daemon.
    pub name: String,
    /// URL of its interface; `None` where the deployment file names none.
    pub address: Option<String>,
}

/// One daemon's part in the election.
#[derive(Debug)]
pub struct Leader {
    me: DaemonName,
    locks: Locks,
    home: LeaseHome,
    term: Option<u64>,
    /// Daemon that leads, as last seen.
    seen: Option<DaemonName>,
}

/// Keeper of the lease.
#[derive(Debug)]
enum LeaseHome {
    Journal(JournalLease),
    Outside(OutsideHold),
}

/// Held while the leader acts.
#[derive(Debug)]
pub struct Acting(#[expect(dead_code, reason = "the lock is held as long as this lives")] Locked);

impl Leader {
    /// A daemon called `me` with its lock file at `lock`, beside the journal, which keeps the lease.
    ///
    /// # Errors
    /// Where the lock file cannot be opened.
    pub fn new(me: DaemonName, lock: &Path, terms: LeaseTerms) -> std::io::Result<Self> {
        let home = LeaseHome::Journal(JournalLease::new(terms));
        Ok(Self { me, locks: Locks::open(lock)?, home, term: None, seen: None })
    }

    /// The daemon with its lease kept outside the host.
    #[must_use]
    pub fn outside(self, lease: Box<dyn OutsideLease>, terms: LeaseTerms) -> Self {
        Self { home: LeaseHome::Outside(OutsideHold::new(lease, terms)), ..self }
    }

    /// The term in which it leads.
    pub fn term(&self) -> Option<u64> {
        self.term
    }

    /// Whether the lease is good at this moment, as far as that is known without a call.
    pub fn holds(&self) -> bool {
        match &self.home {
            LeaseHome::Journal(_) => self.term.is_some(),
            LeaseHome::Outside(hold) => hold.holds(),
        }
    }

    /// The daemon that leads, as last seen; `None` where none does, or none is known.
    pub fn seen(&self) -> Option<&DaemonName> {
        self.seen.as_ref()
    }

    /// Trouble with the keeper of the lease at the last tick.
    pub fn trouble(&self) -> Option<&str> {
        match &self.home {
            LeaseHome::Journal(_) => None,
            LeaseHome::Outside(hold) => hold.trouble(),
        }
    }

    /// Renews the lease or tries to get it. Returns the term while it leads.
    ///
    /// # Errors
    /// [`JournalError`] where the journal cannot be used. A lease outside the host that cannot be
    /// reached is [trouble](Self::trouble): the daemon leads on until its lease is over, and then
    /// stands by.
    pub async fn tick(&mut self, journal: &mut Journal, now: Instant) -> Result<Option<u64>, JournalError> {
        (self.term, self.seen) = match &mut self.home {
            LeaseHome::Journal(lease) => lease.tick(&self.me, &self.locks, journal, now)?,
            LeaseHome::Outside(hold) => hold.tick(&self.me, &self.locks, journal).await?,
        };
        Ok(self.term)
    }

    /// Leads on in a term above `above`, which machines have seen of a leader that is no more; `None` where the lease
    /// has to be taken anew for that, at the next tick.
    ///
    /// # Errors
    /// [`JournalError::Deposed`] where it does not lead; [`JournalError::Database`] where the journal
    /// cannot be written.
    pub async fn raise(&mut self, journal: &mut Journal, above: u64) -> Result<Option<u64>, JournalError> {
        let term = self.term.ok_or(JournalError::Deposed { term: above })?;
        match &mut self.home {
            LeaseHome::Journal(lease) => {
                let raised = journal.raise(term, above + 1)?;
                lease.lead_on(raised);
                self.term = Some(raised);
            }
            LeaseHome::Outside(hold) => {
                // The next election goes by the term in the journal.
                journal.hold(above, &self.me.name)?;
                hold.give_up().await;
                self.term = None;
            }
        }
        Ok(self.term)
    }

    /// Forgets that it led.
    pub fn step_down(&mut self) {
        (self.term, self.seen) = (None, None);
        match &mut self.home {
            LeaseHome::Journal(lease) => lease.step_down(),
            LeaseHome::Outside(hold) => hold.step_down(),
        }
    }

    /// Gives the lease up, so that another daemon need not wait, and forgets that it led.
    pub async fn resign(&mut self, journal: &mut Journal) {
        let Some(term) = self.term else { return };
        // What cannot be given up runs out.
        let _ = journal.resign(term);
        if let LeaseHome::Outside(hold) = &mut self.home {
            hold.give_up().await;
        }
        self.step_down();
    }

    /// Leave to act until the guard is dropped; `None` where another daemon is in the middle of an
    /// act, or the lease does not last long enough.
    pub fn try_act(&self) -> Option<Acting> {
        let lasts = match &self.home {
            LeaseHome::Journal(_) => true,
            LeaseHome::Outside(hold) => hold.lasts(),
        };
        self.locks.act().filter(|_| lasts).map(Acting)
    }
}
