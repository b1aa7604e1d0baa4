//! The lease as a row of the journal, for daemons of one host.
//!
//! The holder renews the row; a daemon that stands by watches it by its own monotonic clock and
//! takes over when it has not been renewed for long. Wall clocks play no part. Between the check of
//! the term and the end of an act a lock on a file is held, and taking over needs the lock: a leader
//! that is stopped in the middle of an act cannot be replaced behind its back. A second lock is held
//! as long as the leader lives, so that no daemon waits for the lease of a dead one.

use std::time::Instant;

use super::locks::{Locked, Locks};
use super::{DaemonName, LeaseTerms};
use crate::daemon::durability::journal::{Journal, JournalError, LeaseRow};

/// Name of the fact in the journal that says where the leader is reached.
const ADDRESS: &str = "leader_address";

/// One daemon's hold on the row.
#[derive(Debug)]
pub struct JournalLease {
    terms: LeaseTerms,
    /// Held while it leads.
    alive: Option<Locked>,
    term: Option<u64>,
    renewed: Instant,
    /// Time of stepping down. The daemon that leads since then is left time to show that it lives.
    deposed: Option<Instant>,
    /// The lease of another as last seen to change, and when.
    watched: Option<(LeaseRow, Instant)>,
}

impl JournalLease {
    /// A daemon that does not lead yet.
    pub fn new(terms: LeaseTerms) -> Self {
        Self { terms, alive: None, term: None, renewed: Instant::now(), deposed: None, watched: None }
    }

    /// Renews the lease or tries to get it. Returns the term while it leads, and the daemon that
    /// does.
    pub fn tick(
        &mut self,
        me: &DaemonName,
        locks: &Locks,
        journal: &mut Journal,
        now: Instant,
    ) -> Result<(Option<u64>, Option<DaemonName>), JournalError> {
        let term = self.hold(me, locks, journal, now)?;
        let seen = match (term, &self.watched) {
            (Some(_), _) => Some(me.clone()),
            (None, Some((row, _))) if !row.holder.is_empty() => {
                let address = journal.fact(ADDRESS)?.filter(|address| !address.is_empty());
                Some(DaemonName { name: row.holder.clone(), address })
            }
            _ => None,
        };
        Ok((term, seen))
    }

    fn hold(
        &mut self,
        me: &DaemonName,
        locks: &Locks,
        journal: &mut Journal,
        now: Instant,
    ) -> Result<Option<u64>, JournalError> {
        if let Some(term) = self.term {
            // One that took over from a leader that was paused gets this lock when that one goes on
            // and steps down.
            self.alive = self.alive.take().or_else(|| locks.live());
            if now.duration_since(self.renewed) < self.terms.renew {
                return Ok(self.term);
            }
            match journal.renew(term) {
                Ok(()) => self.renewed = now,
                Err(JournalError::Deposed { .. }) => self.step_down(),
                Err(error) => return Err(error),
            }
            return Ok(self.term);
        }
        let lease = journal.lease()?;
        let since = match &self.watched {
            Some((seen, since)) if *seen == lease => *since,
            _ => {
                self.watched = Some((lease.clone(), now));
                now
            }
        };
        if self.deposed.is_some_and(|at| now.duration_since(at) < self.terms.lease) {
            return Ok(None);
        }
        let alive = locks.live();
        let vacant = alive.is_some() || lease.holder.is_empty();
        if vacant || now.duration_since(since) >= self.terms.lease {
            // A leader in the middle of an act holds this lock and must not be replaced.
            let Some(_acting) = locks.act() else { return Ok(None) };
            if let Some(taken) = journal.take_over(&lease, &me.name)? {
                journal.remember(ADDRESS, me.address.as_deref().unwrap_or_default())?;
                (self.term, self.renewed, self.watched, self.alive) = (Some(taken.term), now, None, alive);
            }
        }
        Ok(self.term)
    }

    /// Leads on in a later term, which the journal has.
    pub fn lead_on(&mut self, term: u64) {
        self.term = Some(term);
    }

    /// Forgets that it led.
    pub fn step_down(&mut self) {
        self.term = None;
        self.watched = None;
        self.alive = None;
        self.deposed = Some(Instant::now());
    }
}
