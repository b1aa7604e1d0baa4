//! One daemon acts; others stand by.
//!
//! The lease is a row of the journal that its holder renews; a daemon that stands by watches it by
//! its own monotonic clock and takes over when it has not been renewed for long. Wall clocks play
//! no part. The term grows with each change: it goes with every call to an agent, and a daemon that
//! was paused finds its own term over before it acts. Between that check and the end of the act a
//! lock on a file is held, and taking over needs the lock: a leader that is stopped in the middle
//! of an act cannot be replaced behind its back. A second lock is held as long as the leader lives,
//! so that no daemon waits for the lease of a dead one.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::daemon::durability::journal::{Journal, JournalError, LeaseRow};

/// How long a lease lasts and how often it is renewed.
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

/// One daemon's part in the election.
#[derive(Debug)]
pub struct Leader {
    terms: LeaseTerms,
    name: String,
    lock: File,
    life: File,
    /// Held while it leads.
    alive: Option<Locked>,
    term: Option<u64>,
    renewed: Instant,
    /// Time of stepping down. The daemon that leads since then is left time to show that it lives.
    deposed: Option<Instant>,
    /// The lease of another as last seen to change, and when.
    watched: Option<(LeaseRow, Instant)>,
}

/// Held while the leader acts.
#[derive(Debug)]
pub struct Acting(#[expect(dead_code, reason = "the lock is held as long as this lives")] Locked);

/// A file that is locked as long as this lives, whatever other descriptors of it are open.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Where it cannot be unlocked it is as good as held by a leader that lives: the lease
        // decides.
        let _ = self.0.unlock();
    }
}

impl Leader {
    /// A daemon called `name` with its lock file at `lock`, beside the journal.
    ///
    /// # Errors
    /// Where the lock file cannot be opened.
    pub fn new(name: String, lock: &Path, terms: LeaseTerms) -> std::io::Result<Self> {
        let open = |path: &Path| OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let (life, lock) = (open(&lock.with_extension("alive"))?, open(lock)?);
        Ok(Self {
            terms,
            name,
            lock,
            life,
            alive: None,
            term: None,
            renewed: Instant::now(),
            deposed: None,
            watched: None,
        })
    }

    /// The term in which it leads.
    pub fn term(&self) -> Option<u64> {
        self.term
    }

    /// Renews the lease or tries to get it. Returns the term while it leads.
    ///
    /// # Errors
    /// [`JournalError`] where the journal cannot be used.
    pub fn tick(&mut self, journal: &mut Journal, now: Instant) -> Result<Option<u64>, JournalError> {
        if let Some(term) = self.term {
            // One that took over from a leader that was paused gets this lock when that one goes on
            // and steps down.
            self.alive = self.alive.take().or_else(|| try_lock(&self.life));
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
        let alive = try_lock(&self.life);
        let vacant = alive.is_some() || lease.holder.is_empty();
        if vacant || now.duration_since(since) >= self.terms.lease {
            // A leader in the middle of an act holds this lock and must not be replaced.
            let Some(_acting) = self.try_act() else { return Ok(None) };
            if let Some(taken) = journal.take_over(&lease, &self.name)? {
                (self.term, self.renewed, self.watched, self.alive) = (Some(taken.term), now, None, alive);
            }
        }
        Ok(self.term)
    }

    /// Forgets that it led.
    pub fn step_down(&mut self) {
        self.term = None;
        self.watched = None;
        self.alive = None;
        self.deposed = Some(Instant::now());
    }

    /// Leave to act until the guard is dropped; `None` where another daemon is in the middle of an
    /// act.
    pub fn try_act(&self) -> Option<Acting> {
        try_lock(&self.lock).map(Acting)
    }
}

/// Lock on an open file. The file is locked rather than the process: a second open file of one
/// process is kept out as well.
fn try_lock(file: &File) -> Option<Locked> {
    let file = file.try_clone().ok()?;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(Locked(file)),
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
