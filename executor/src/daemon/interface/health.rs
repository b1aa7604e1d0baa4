//! Health of a daemon, for load balancers, Kubernetes and people.
//!
//! The interface answers from here, so it answers also while the loop hangs in a call to the engine.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::daemon::durability::leader::DaemonName;

/// A loop that has not come round for so long hangs.
const LONGEST_TURN: Duration = Duration::from_secs(120);

/// Parts of a daemon that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthCheck {
    /// The loop of cycles comes round.
    Loop,
    /// The engine answers sensibly.
    Engine,
    /// Journal and audit log can be written.
    Journal,
    /// The last snapshot is young enough to act on.
    Snapshot,
    /// Decisions are taken: the policy that rules on all hosts is this daemon's.
    Policy,
}

/// Check that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthProblem {
    /// Check that fails.
    pub check: HealthCheck,
    /// Failure, in a sentence without details of the machines.
    pub problem: String,
    /// Time for which it has failed, seconds.
    pub since_secs: u64,
}

/// Answer of `/healthz` and `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthReport {
    /// `ok` or `failing`.
    pub status: &'static str,
    /// Whether this daemon leads; one that stands by takes no submissions.
    pub leads: bool,
    /// Daemon that leads, as last seen.
    pub leader: Option<DaemonName>,
    /// Checks that fail.
    pub problems: Vec<HealthProblem>,
}

#[derive(Debug)]
struct HealthFacts {
    turned: Instant,
    looked: Option<Instant>,
    engine: Option<(String, Instant)>,
    journal: Option<(String, Instant)>,
    undecided: Option<Instant>,
    leads: bool,
    leader: Option<DaemonName>,
}

/// Health that the loop tells and the interface reads.
#[derive(Debug)]
pub struct DaemonHealth {
    began: Instant,
    /// Age from which a snapshot is too old to act on.
    oldest: Duration,
    facts: Mutex<HealthFacts>,
}

impl DaemonHealth {
    /// Health of a daemon that has just begun; snapshots are too old from the age `oldest` on.
    pub fn new(oldest: Duration) -> Self {
        let began = Instant::now();
        let facts = HealthFacts {
            turned: began,
            looked: None,
            engine: None,
            journal: None,
            undecided: None,
            leads: false,
            leader: None,
        };
        Self { began, oldest, facts: Mutex::new(facts) }
    }

    fn facts(&self) -> MutexGuard<'_, HealthFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the end of a cycle, and whether this daemon leads.
    pub fn turned(&self, leads: bool, leader: Option<DaemonName>) {
        let mut facts = self.facts();
        (facts.turned, facts.leads, facts.leader) = (Instant::now(), leads, leader);
    }

    /// Notes a snapshot that was read.
    pub fn looked(&self) {
        let mut facts = self.facts();
        (facts.looked, facts.engine) = (Some(Instant::now()), None);
    }

    /// Notes that the engine failed, with its error.
    pub fn engine_failed(&self, error: &str) {
        let engine = &mut self.facts().engine;
        let since = engine.take().map_or_else(Instant::now, |(_, since)| since);
        *engine = Some((error.to_owned(), since));
    }

    /// Notes that journal or audit log could not be written, with the error; `None`: that they could.
    pub fn journal_written(&self, error: Option<&str>) {
        let journal = &mut self.facts().journal;
        let since = journal.take().map_or_else(Instant::now, |(_, since)| since);
        *journal = error.map(|error| (error.to_owned(), since));
    }

    /// Notes whether nothing is decided, because the policy that rules is not this daemon's.
    pub fn undecided(&self, holds: bool) {
        let undecided = &mut self.facts().undecided;
        *undecided = holds.then(|| undecided.unwrap_or_else(Instant::now));
    }

    /// Whether journal or audit log could not be written.
    pub fn journal_fails(&self) -> bool {
        self.facts().journal.is_some()
    }

    /// Reason why nothing may be accepted now, with details; `None` where it may.
    pub fn refusal(&self) -> Option<String> {
        let facts = self.facts();
        let (error, since) = facts.engine.as_ref().or(facts.journal.as_ref())?;
        Some(format!("{error} (for {} s)", since.elapsed().as_secs()))
    }

    /// Whether the loop comes round: a daemon in which it does not has to be started anew.
    pub fn lives(&self) -> bool {
        self.facts().turned.elapsed() < LONGEST_TURN
    }

    /// Report of all checks.
    pub fn report(&self) -> HealthReport {
        let facts = self.facts();
        let mut problems = Vec::new();
        let mut fails = |check, problem: &str, since: Instant| {
            let since_secs = since.elapsed().as_secs();
            problems.push(HealthProblem { check, problem: problem.to_owned(), since_secs });
        };
        if facts.turned.elapsed() >= LONGEST_TURN {
            fails(HealthCheck::Loop, "the loop of the daemon does not come round", facts.turned);
        }
        if let Some((_, since)) = &facts.engine {
            fails(HealthCheck::Engine, "the cluster manager does not answer, or its answer is not understood", *since);
        }
        if let Some((_, since)) = &facts.journal {
            fails(HealthCheck::Journal, "the journal or the audit log cannot be written", *since);
        }
        // A daemon that stands by decides nothing anyway.
        if let Some(since) = facts.undecided.filter(|_| facts.leads) {
            fails(HealthCheck::Policy, "nothing is decided: the policy that was set is not this daemon's", since);
        }
        match facts.looked {
            None => fails(HealthCheck::Snapshot, "the cluster has not been seen yet", self.began),
            Some(at) if at.elapsed() >= self.oldest => {
                fails(HealthCheck::Snapshot, "the last snapshot of the cluster is too old to act on", at);
            }
            Some(_) => {}
        }
        let status = if problems.is_empty() { "ok" } else { "failing" };
        HealthReport { status, leads: facts.leads, leader: facts.leader.clone(), problems }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_told_until_it_works_again() {
        let health = DaemonHealth::new(Duration::from_millis(200));
        let failing = || health.report().problems.iter().map(|problem| problem.check).collect::<Vec<_>>();
        assert_eq!(failing(), [HealthCheck::Snapshot], "nothing was seen yet");
        health.looked();
        health.turned(true, None);
        assert_eq!((failing(), health.report().status, health.refusal()), (vec![], "ok", None));
        health.engine_failed("sinfo: no answer");
        health.journal_written(Some("disk full"));
        assert_eq!(failing(), [HealthCheck::Engine, HealthCheck::Journal]);
        assert!(health.refusal().is_some_and(|why| why.starts_with("sinfo: no answer (for ")));
        assert!(!serde_json::to_string(&health.report()).unwrap_or_default().contains("sinfo"), "strangers read it");
        health.looked();
        assert!(health.refusal().is_some_and(|why| why.starts_with("disk full")));
        health.journal_written(None);
        assert_eq!(health.refusal(), None);
        std::thread::sleep(Duration::from_millis(250));
        assert_eq!(failing(), [HealthCheck::Snapshot], "it is too old by now");
        assert!(health.lives());
    }
}
