//! Jobs that people hand in, and those that an engine forgets.
//!
//! An engine may name a job before it has it on disk ([`SubmissionDurability`](crate::engine::Forgets)): one
//! that is killed within seconds comes back without it. So what a user was told is written down,
//! and handed in again where the engine has lost it. That is done once, by these facts:
//!
//! - A job is handed in held, and nothing but an order releases it: one that is gone before it was
//!   placed has not run. One that had been placed is aborted by its engine where it still runs
//!   before anything is released, and goes on from its checkpoint.
//! - A job that ends or is cancelled is shown for a while, so that one that is shown no more, under
//!   an engine that has started since it acknowledged the job, was forgotten. Under an engine that
//!   has not started since, nothing is forgotten.
//! - A job that is shown long enough after the acknowledgement is on the engine's disk: its promise
//!   is kept, and it is never handed in again.
//! - The time of submission, to the millisecond, goes with the job and names it, whatever number it
//!   has. A daemon that dies between handing in and writing that down finds the job by it.
//!
//! A node that the engine drains over a start that it forgot was not drained by an administrator.
//! The daemon takes such a node back, which also makes the node report, and the engine abort there
//! all jobs that it does not know.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use goodput_env::time::SimTime;
use serde_json::json;

use crate::daemon::durability::journal::AcknowledgedSubmission;
use crate::daemon::{Daemon, DaemonError, UnderWay};
use crate::engine::{ClusterSnapshot, Engine, EngineAction, NodeHealth, NodeSeen, Order, Submission};
use crate::machine::wall_ms;

impl<E: Engine> Daemon<E> {
    /// Hands a job to the engine, and has written it down when it returns.
    ///
    /// # Errors
    /// [`DaemonError::Standby`] where this daemon does not lead, [`DaemonError::Unavailable`] where the engine or the
    /// journal fails, and [`DaemonError::Refused`] where application or tenant are not known. [`DaemonError::Engine`]
    /// where the engine does not take it; [`DaemonError::Journal`] where it could not be written down: the engine has
    /// it then.
    pub async fn submit(&mut self, who: &str, job: &Submission) -> Result<String, DaemonError> {
        let _acting = self.may_accept()?;
        self.check_submission(job)?;
        let submit_ms = self.next_submit_ms();
        self.hand_in(who, job, submit_ms).await
    }

    /// Checks that application and tenant of a job are known, and that the engine gives parts of accelerators where the
    /// job asks for one.
    pub(in crate::daemon) fn check_submission(&self, job: &Submission) -> Result<(), DaemonError> {
        if let Some(name) = &job.application
            && !self.observer.knows(name)
        {
            let text = format!(
                "application {name:?} is not in the catalog; leave it out, or name one of: {}",
                self.observer.applications()
            );
            return Err(DaemonError::Refused(text));
        }
        if job.spec.request.share.is_some() && !self.engine.capabilities().fractional {
            let engine = self.engine.name();
            let text = format!(
                "the engine {engine} gives whole accelerators only; leave out --compute and --device-memory, or run \
                 the nodes under node agents"
            );
            return Err(DaemonError::Refused(text));
        }
        match self.observer.unknown_tenant(&job.tenant) {
            Some(problem) => Err(DaemonError::Refused(problem)),
            None => Ok(()),
        }
    }

    /// Time of a submission now, milliseconds of the Unix epoch: it names the job, so no two jobs share one.
    pub(super) fn next_submit_ms(&mut self) -> i64 {
        let promised = self.promises.last().map_or(0, AcknowledgedSubmission::submit_ms);
        self.last_submit_ms = wall_ms().max(promised + 1).max(self.last_submit_ms + 1);
        self.last_submit_ms
    }

    /// Hands a job to the engine under a time of submission. Leave to accept it is held.
    pub(super) async fn hand_in(&mut self, who: &str, job: &Submission, submit_ms: i64) -> Result<String, DaemonError> {
        let mut job = job.clone();
        job.spec.request.submit = SimTime::from_millis(submit_ms);
        let key = self.engine.submit(&job).await?;
        let name = job.spec.request.name.clone();
        if self.engine.capabilities().durability.is_some() {
            self.promise(AcknowledgedSubmission { job, key: key.clone(), acked_ms: wall_ms() }).await?;
        }
        self.audit.write(wall_ms(), "api", json!({ "who": who, "submit": key, "name": name }))?;
        Ok(key)
    }

    async fn promise(&mut self, promise: AcknowledgedSubmission) -> Result<(), DaemonError> {
        self.write_promise(&promise).await?;
        self.promises.push(promise);
        // A try that was cut off has an older time than the last one, which has to be the newest.
        self.promises.sort_by_key(AcknowledgedSubmission::submit_ms);
        Ok(())
    }

    /// Takes up the promises of an earlier daemon.
    pub(in crate::daemon) async fn take_up_promises(&mut self) -> Result<(), DaemonError> {
        let Some(durability) = self.engine.capabilities().durability else { return Ok(()) };
        let (promises, damaged) = self.journal.promises()?;
        for key in damaged {
            let text = format!(
                "what was promised of job {key} is damaged in {}: where the queue does not show it, hand it in again",
                self.journal.path().display()
            );
            self.alert("damaged", &text);
        }
        let (old, young): (Vec<AcknowledgedSubmission>, Vec<AcknowledgedSubmission>) =
            promises.into_iter().partition(|promise| age(promise) > durability.shows_ended_for);
        self.promises = young;
        // What is not shown by now may have ended unseen: people are told, and decide.
        let shown = |promise: &AcknowledgedSubmission| {
            let seen = self.last.as_ref().map(|(snapshot, _)| by_submission(snapshot));
            seen.is_some_and(|seen| seen.contains_key(&promise.submit_ms()))
        };
        let gone: Vec<String> = old.iter().filter(|p| !shown(p)).map(|promise| promise.key.clone()).collect();
        for key in gone {
            self.alert("gone", &format!("job {key} is not shown any more: it ended unseen, or was forgotten; hand it in again where it is wanted"));
        }
        self.settle(&old.iter().map(AcknowledgedSubmission::submit_ms).collect::<Vec<_>>()).await
    }

    /// Settles the promises that the engine can no longer forget, and hands in again what it has
    /// forgotten.
    pub(in crate::daemon) async fn keep_promises(
        &mut self,
        snapshot: &ClusterSnapshot,
        acts: bool,
    ) -> Result<(), DaemonError> {
        let Some(durability) = self.engine.capabilities().durability.filter(|_| !self.promises.is_empty()) else {
            return Ok(());
        };
        let shown = by_submission(snapshot);
        let (mut kept, mut missing) = (Vec::new(), Vec::new());
        for promise in &mut self.promises {
            match shown.get(&promise.submit_ms()) {
                Some(&(key, over)) => {
                    // A daemon died before it could write the new number down.
                    promise.key = key.into();
                    if over || age(promise) >= durability.durable_after {
                        kept.push(promise.submit_ms());
                    }
                }
                None => missing.push(promise.clone()),
            }
        }
        if let (Some(_), true) = (missing.first(), acts)
            && let Some(since_ms) = self.engine.remembers_since().await?
        {
            for promise in missing.into_iter().filter(|promise| promise.acked_ms < since_ms) {
                self.resubmit(promise).await?;
            }
        }
        self.settle(&kept).await?;
        self.promises.retain(|promise| !kept.contains(&promise.submit_ms()));
        Ok(())
    }

    /// Orders nodes back into service that the engine drained by its own fault.
    pub(in crate::daemon) fn take_back_nodes(
        &mut self,
        snapshot: &ClusterSnapshot,
        term: u64,
    ) -> Result<(), DaemonError> {
        let Some(durability) = self.engine.capabilities().durability else { return Ok(()) };
        let drained = |node: &&NodeSeen| {
            node.health == NodeHealth::Drained
                && node.note.starts_with(durability.drains_over)
                && node.free == node.gpus
        };
        for node in snapshot.nodes.iter().filter(drained) {
            let undrain = EngineAction::Undrain { node: node.name.clone() };
            if self.open.iter().any(|under_way| under_way.order.action == undrain) {
                continue;
            }
            let new = Order::named(&format!("recovery {}", snapshot.version), "", 0, undrain);
            self.journal.intend(term, "recovery", std::slice::from_ref(&new), wall_ms())?;
            self.open.push(UnderWay { order: new, since: Instant::now(), note: String::new() });
            self.alert(
                "drained",
                &format!("{} drained {} over a start that it forgot; taken back", self.engine.name(), node.name),
            );
        }
        Ok(())
    }

    async fn resubmit(&mut self, promise: AcknowledgedSubmission) -> Result<(), DaemonError> {
        // What was ordered for it is void: its number may be another job's by now.
        self.void(&promise.key, "the engine forgot the job")?;
        let key = self.engine.submit(&promise.job).await?;
        let again = AcknowledgedSubmission { key: key.clone(), acked_ms: wall_ms(), job: promise.job };
        self.write_promise(&again).await?;
        self.rename_try(again.submit_ms(), &key).await?;
        let text =
            format!("job {} was forgotten by {}; handed in again, it is job {key}", promise.key, self.engine.name());
        self.promises.retain(|promise| promise.submit_ms() != again.submit_ms());
        self.promises.push(again);
        // A new submission relies on the last promise being the newest.
        self.promises.sort_by_key(AcknowledgedSubmission::submit_ms);
        self.alert("forgotten", &text);
        Ok(())
    }
}

fn age(promise: &AcknowledgedSubmission) -> Duration {
    Duration::from_millis((wall_ms() - promise.acked_ms).max(0) as u64)
}

/// Key of each job and whether it is over, by its time of submission, milliseconds.
pub(super) fn by_submission(snapshot: &ClusterSnapshot) -> BTreeMap<i64, (&str, bool)> {
    let named = |job: &'_ crate::engine::JobSeen| job.spec.request.submit.as_millis();
    snapshot.jobs.iter().map(|job| (named(job), (job.key.as_str(), job.phase.is_over()))).collect()
}
