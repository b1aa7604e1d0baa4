//! Lease of the leader, as an agent sees it: the highest term seen, and until when the lease is
//! good.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use goodput_configs::live::node_agent::Fencing;
use serde::{Deserialize, Serialize};

use super::clock::boot_ms;
use super::error::AgentError;
use super::keeper::{Deadline, LEASE_DEADLINE};
use super::record::{self, RecordError};
use super::spool;

/// Name of the file with the highest term seen.
pub(super) const TERM: &str = "term.json";

/// The lease of the node.
#[derive(Debug)]
pub struct LeaseBook {
    folder: PathBuf,
    fencing: Fencing,
    held: Held,
    /// Time at which the leader of the term spoke last; at first that of the agent's start.
    spoken: Instant,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Held {
    term: u64,
    leader: String,
}

impl LeaseBook {
    /// Opens the lease with what was written in `folder`.
    ///
    /// # Errors
    /// It cannot be told which term was seen last; an agent that took any term would obey a leader of long ago.
    pub fn open(folder: PathBuf, fencing: Fencing) -> Result<Self, RecordError> {
        let held = record::load(&folder.join(TERM))?.unwrap_or_default();
        Ok(Self { folder, fencing, held, spoken: Instant::now() })
    }

    /// Name of the leader of the highest term, and the time since it spoke.
    pub fn leader(&self) -> (&str, Duration) {
        (&self.held.leader, self.spoken.elapsed())
    }

    /// Highest term seen.
    pub fn term(&self) -> u64 {
        self.held.term
    }

    /// Lets an order of `term` pass, or not. A higher term is remembered before anything is done in
    /// its name.
    pub fn admit(&mut self, term: u64, leader: Option<&str>) -> Result<(), AgentError> {
        let same = term == self.held.term;
        // A term has one leader, so another one with the same term is turned away.
        let other = leader.is_some_and(|leader| !self.held.leader.is_empty() && leader != self.held.leader);
        if term < self.held.term || (same && other) {
            return Err(AgentError::OldTerm { term, current: self.held.term });
        }
        let leader = leader.unwrap_or(if same { &self.held.leader } else { "" });
        if !same || leader != self.held.leader {
            let held = Held { term, leader: leader.to_owned() };
            spool::write(&self.folder, TERM, &held).map_err(AgentError::io("remember the term"))?;
            self.held = held;
        }
        self.spoken = Instant::now();
        Ok(())
    }

    /// Renews: jobs that die without the daemon live on for a while, counted from `as_of_boot_ms`.
    /// Never makes it shorter.
    pub fn renew(&self, as_of_boot_ms: i64) -> io::Result<()> {
        let Fencing::Kill { after_ms } = self.fencing else { return Ok(()) };
        let after_ms = i64::try_from(after_ms).unwrap_or(i64::MAX);
        // A time ahead of this machine's clock would make the lease too long.
        let kill_at_boot_ms = as_of_boot_ms.min(boot_ms()).saturating_add(after_ms);
        if self.deadline().is_some_and(|deadline| deadline >= kill_at_boot_ms) {
            return Ok(());
        }
        spool::write(&self.folder, LEASE_DEADLINE, &Deadline { kill_at_boot_ms })
    }

    fn deadline(&self) -> Option<i64> {
        let deadline = spool::read::<Deadline>(&self.folder, LEASE_DEADLINE)?;
        // After a restart of the machine its clock begins again.
        let after_ms = if let Fencing::Kill { after_ms } = self.fencing { after_ms as i64 } else { 0 };
        Some(deadline.kill_at_boot_ms).filter(|at| *at <= boot_ms().saturating_add(after_ms))
    }

    /// Whether jobs may start: where they die without the daemon, only while it is heard of.
    pub fn is_good(&self) -> bool {
        self.watched().is_none() || self.deadline().is_some_and(|deadline| boot_ms() < deadline)
    }

    /// The folder that keepers are to watch.
    pub fn watched(&self) -> Option<PathBuf> {
        matches!(self.fencing, Fencing::Kill { .. }).then(|| self.folder.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_only_grow_also_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let open = || LeaseBook::open(folder.path().to_owned(), Fencing::Keep).unwrap();
        let mut book = open();
        book.admit(3, Some("a")).unwrap();
        book.admit(3, None).unwrap();
        assert!(matches!(book.admit(2, Some("b")), Err(AgentError::OldTerm { term: 2, current: 3 })));
        let mut book = open();
        assert_eq!(book.term(), 3);
        assert!(book.admit(2, Some("b")).is_err());
        assert!(book.admit(3, Some("b")).is_err(), "one term has one leader");
        book.admit(4, Some("b")).unwrap();
        std::fs::write(folder.path().join(TERM), "{\"te").unwrap();
        let torn = LeaseBook::open(folder.path().to_owned(), Fencing::Keep).unwrap_err();
        assert!(torn.to_string().contains("term.json is damaged"), "{torn}");
    }
}
