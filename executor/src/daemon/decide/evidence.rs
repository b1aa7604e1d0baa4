//! Records of a running daemon for `goodput live report`: starts and ends of jobs, counts of cycles and
//! decisions, and comparisons by simulation.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Mode;
use goodput_env::job::JobRequest;
use goodput_env::time::SimTime;
use serde_json::json;

use crate::daemon::decide::cycle::CycleReport;
use crate::daemon::durability::journal::{JobAsked, JobStart, PastJob};
use crate::daemon::interface::report::events::{AttemptLeft, JobEnded, JobEvents, JobStarted, Tally};
use crate::daemon::predict::stated;
use crate::daemon::{Daemon, DaemonError, JobClock};
use crate::engine::{ClusterSnapshot, Engine, JobSeen};
use crate::machine::wall_ms;

/// Time from one line of counts to the next.
const TALLY_EVERY: Duration = Duration::from_secs(600);

impl<E: Engine> Daemon<E> {
    /// Takes the time from submission to start and to completion, and writes down what began and ended.
    pub(super) fn measure(&mut self, snapshot: &ClusterSnapshot, leads: bool) -> Result<(), DaemonError> {
        let secs = |from_ms: i64, to_ms: i64| (to_ms - from_ms).max(0) as f64 / 1e3 * self.settings.cycle.speedup;
        let mut events = JobEvents::default();
        let mut history = Vec::new();
        for job in &snapshot.jobs {
            let submit_ms = job.spec.request.submit.as_millis();
            if job.phase.is_over() {
                if self.clocks.remove(&job.key).is_some() {
                    if job.phase == crate::engine::JobPhase::Done {
                        self.metrics.jct.observe(secs(submit_ms, snapshot.at_ms));
                    }
                    history.push(PastJob { ran_secs: self.observer.ran_secs(job, snapshot.at_ms), ..came(job) });
                    events.ended.push(JobEnded { end_ms: snapshot.at_ms, phase: job.phase, ..ended(job, submit_ms) });
                }
                continue;
            }
            let started = job.starts > 0 && !job.phase.holds();
            let new = JobClock { submit_ms, started, attempt: None };
            let clock = self.clocks.entry(job.key.clone()).or_insert_with(|| {
                history.push(came(job));
                new
            });
            let number = job.attempt.as_ref().map(|attempt| attempt.number);
            if let Some(before) = std::mem::replace(&mut clock.attempt, number).filter(|before| number != Some(*before))
            {
                events.left.push(left(job, before, snapshot.at_ms));
            }
            if let Some(attempt) = job.attempt.as_ref().filter(|_| !clock.started) {
                clock.started = true;
                // The first start of a job that runs for the second time is not known any more.
                if attempt.number == 0 {
                    self.metrics.queue_delay.observe(secs(submit_ms, attempt.since_ms));
                    events.started.push(begun(job, submit_ms, attempt.since_ms));
                }
            }
        }
        // Jobs that ended unseen are not told any more: nothing is known of their end.
        if self.clocks.len() > snapshot.jobs.len() {
            let told: BTreeSet<&str> = snapshot.jobs.iter().map(|job| job.key.as_str()).collect();
            self.clocks.retain(|key, _| told.contains(key.as_str()));
        }
        if !leads {
            return Ok(());
        }
        self.journal.keep_history(&history)?;
        if events == JobEvents::default() {
            return Ok(());
        }
        let starts = events.started.iter().map(|job| JobStart {
            submit_ms: job.submit_ms,
            key: job.key.clone(),
            start_ms: job.start_ms,
        });
        self.journal.keep_starts(&starts.collect::<Vec<_>>())?;
        self.audit.write(wall_ms(), "jobs", json!(events))?;
        Ok(())
    }

    /// Counts a cycle, and writes the counts down every ten minutes.
    pub(super) fn count(&mut self, result: &Result<CycleReport, DaemonError>) {
        let fallback = self.status.lock().is_ok_and(|status| !status.fallback.is_empty());
        let tally = &mut self.tally;
        let now_ms = wall_ms();
        if tally.since_ms == 0 {
            tally.since_ms = now_ms;
        }
        tally.cycles += 1;
        match result {
            Ok(report) => {
                tally.decisions += u64::from(report.decided);
                tally.of_fallback += u64::from(report.decided && fallback);
            }
            Err(_) => tally.failed += 1,
        }
        if self.leader.term().is_some() && now_ms - tally.since_ms >= TALLY_EVERY.as_millis() as i64 {
            // The next cycle finds a log that cannot be written.
            let _ = self.write_tally();
        }
    }

    /// Writes the counts since the last line of them.
    pub(super) fn write_tally(&mut self) -> Result<(), DaemonError> {
        let tally = std::mem::take(&mut self.tally);
        if tally.cycles > 0 {
            let mode = self.mode().name().into();
            let policy = self.chooser.name().into();
            self.audit.write(wall_ms(), "tally", json!(Tally { mode, policy, ..tally }))?;
        }
        Ok(())
    }

    /// Asks what would come of other policies, and takes the answers where there are any.
    pub(super) fn compare(&mut self, snapshot: &ClusterSnapshot, leads: bool, now: Instant) -> Result<(), DaemonError> {
        let round = SimTime::from_secs_f64(self.settings.cycle.round_secs);
        let observes = leads && self.mode() == Mode::Observe;
        let mut answers = [None, None];
        for (at, (beside, wanted)) in [(&mut self.shadow, true), (&mut self.outlook, observes)].into_iter().enumerate()
        {
            let Some(beside) = beside else { continue };
            answers[at] = beside.answer();
            if wanted
                && beside.is_due(now)
                && let Some(scene) = self.observer.scene(snapshot, beside.settings(), round)
            {
                beside.ask(scene, now);
            }
        }
        let [shadow, outlook] = answers;
        for (kind, answer) in [("shadow", shadow), ("outlook", outlook)] {
            match answer {
                None => {}
                Some(Err(problem)) => tracing::warn!(problem, "no comparison for the {kind}"),
                Some(Ok(compared)) => {
                    tracing::info!(compared = compared.words(), "{kind}");
                    self.audit.write(wall_ms(), kind, json!({ "compared": compared }))?;
                    if kind == "shadow" {
                        self.metrics.compared(&compared);
                        if let Ok(mut status) = self.status.lock() {
                            status.shadow = Some(compared);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// A job in the history, before its end. The run time that its user stated is its limit.
fn came(job: &JobSeen) -> PastJob {
    let request = JobRequest { limit: stated(job), ..job.spec.request.clone() };
    let asked = JobAsked { tenant: job.tenant.clone(), request };
    PastJob { submit_ms: asked.request.submit.as_millis(), key: job.key.clone(), asked, ran_secs: None }
}

fn begun(job: &JobSeen, submit_ms: i64, start_ms: i64) -> JobStarted {
    let request = &job.spec.request;
    let (key, name, tenant) = (job.key.clone(), request.name.clone(), job.tenant.clone());
    JobStarted { key, name, tenant, gpus: request.gpus, submit_ms, start_ms }
}

fn left(job: &JobSeen, attempt: u32, at_ms: i64) -> AttemptLeft {
    AttemptLeft { key: job.key.clone(), attempt, failures: job.failures, note: job.note.clone(), at_ms }
}

fn ended(job: &JobSeen, submit_ms: i64) -> JobEnded {
    let request = &job.spec.request;
    let (key, name) = (job.key.clone(), request.name.clone());
    JobEnded { key, name, gpus: request.gpus, submit_ms, ..JobEnded::default() }
}
