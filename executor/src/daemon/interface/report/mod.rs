//! Report of a daemon that observes: what would have changed, which jobs would have gained, and what
//! would have gone wrong. It is made from the audit log alone, of a daemon that runs or from a copy of its folder.
//!
//! # Layout
//! - [`events`]: lines of the log that are there for the report.
//! - `files`: the log in order, rotated files first. `evidence`: what the lines of the period say.
//! - `intervals`: intervals of means over comparisons that are close in time.
//! - `completions`: what simulations say of completion times.

mod completions;
pub mod events;
mod evidence;
mod files;
mod intervals;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use completions::{CompletionReport, JobOutlook};
pub use files::LiveReportError;
pub use intervals::MeanInterval;

/// Hours of observation below which a report says that there is too little data.
const ENOUGH_HOURS: f64 = 24.0;
/// Jobs below which a report says that there is too little data.
const ENOUGH_JOBS: usize = 20;
/// Milliseconds of a day.
const DAY_MS: f64 = 86_400_000.0;

/// Report about a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveReport {
    /// Days that were asked for.
    pub days: f64,
    /// First and last line of the log in the period, milliseconds of the Unix epoch.
    pub period_ms: [i64; 2],
    /// Time for which a daemon ran and led, hours.
    pub watched_hours: f64,
    /// Part of that time in the mode `observe`, hours.
    pub observed_hours: f64,
    /// Policies that were to decide, in the order of their appearance.
    pub policies: Vec<String>,
    /// Sentences about data that is missing. Empty where the report rests on enough.
    pub too_little: Vec<String>,
    /// Jobs of the period as they really ran.
    pub jobs: RealJobs,
    /// Orders that the policy would have given and that the mode kept back.
    pub kept_back: KeptBack,
    /// Completion times by simulation, against the cluster as it is and against the shadow policy.
    pub completions: Vec<CompletionReport>,
    /// Signs that the policy would not have been safe to rely on.
    pub risks: Risks,
}

/// Jobs as they really ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RealJobs {
    /// Jobs that began.
    pub started: usize,
    /// Jobs that ended well.
    pub done: usize,
    /// Jobs that failed or were cancelled.
    pub not_done: usize,
    /// Mean time from submission to the first start, seconds.
    pub mean_delay_secs: Option<f64>,
    /// 90th percentile of that time, seconds.
    pub p90_delay_secs: Option<f64>,
}

/// Orders that were decided in the mode `observe`. An order that every round repeats counts once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptBack {
    /// Decisions of the policy or of its fallback.
    pub decisions: u64,
    /// Orders by verb.
    pub orders: BTreeMap<String, usize>,
    /// Jobs that would have been moved, resized or stopped while they ran, at least once.
    pub preempted_jobs: usize,
    /// Such interruptions for each day of observation.
    pub preemptions_per_day: f64,
    /// Jobs that would have been interrupted most often.
    pub most_preempted: Vec<(String, usize)>,
}

/// Signs of trouble, by kind, and how often.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Risks {
    /// Changes that the guard left out, by rule. A change that every round repeats counts once for a job.
    pub guard: BTreeMap<String, usize>,
    /// Times that the policy was not relied on, by reason.
    pub fallbacks: BTreeMap<String, RiskCount>,
    /// Decisions that the fallback took.
    pub decisions_of_fallback: u64,
    /// Alerts by kind.
    pub alerts: BTreeMap<String, RiskCount>,
    /// Cycles that ended early, of all cycles.
    pub failed_cycles: [u64; 2],
    /// Starts of the daemon.
    pub restarts: usize,
    /// Lines of the log that could not be read.
    pub unreadable_lines: usize,
}

/// Number of times that something happened, and the last text about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskCount {
    /// Number of times.
    pub count: usize,
    /// Text of the last time.
    pub last: String,
}

impl RiskCount {
    fn add(&mut self, text: &str) {
        self.count += 1;
        self.last = text.into();
    }
}

impl LiveReport {
    /// Report about the last `days` days before `now_ms` from the state directory `folder`.
    ///
    /// # Errors
    /// [`LiveReportError`] where there is no audit log, or it cannot be read.
    pub fn read(folder: &Path, days: f64, now_ms: i64) -> Result<Self, LiveReportError> {
        let from_ms = now_ms - (days * DAY_MS) as i64;
        let mut evidence = evidence::PeriodEvidence::default();
        let unreadable = files::lines(folder, |line| {
            if line.at_ms >= from_ms {
                evidence.take(&line);
            }
        })?;
        let mut report = evidence.report(days);
        report.risks.unreadable_lines = unreadable;
        report.too_little = report.shortcomings();
        Ok(report)
    }

    /// Whether nothing is missing that a decision should rest on.
    pub fn rests_on_enough(&self) -> bool {
        self.too_little.is_empty()
    }

    fn shortcomings(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let Self { observed_hours, days, .. } = self;
        if *observed_hours < ENOUGH_HOURS {
            missing.push(format!(
                "the daemon observed for {observed_hours:.1} hours of the {days} days: let it observe for a day at least, better for two weeks"
            ));
        }
        if self.jobs.started < ENOUGH_JOBS {
            let started = self.jobs.started;
            missing
                .push(format!("{started} jobs began in that time: fewer than {ENOUGH_JOBS} say little about others"));
        }
        if self.completions.is_empty() {
            missing.push(
                "no simulation compares the policy with the cluster as it is: the daemon makes one every [report] every_secs while it observes and jobs are there".into(),
            );
        }
        for of in self.completions.iter().filter(|of| of.difference.is_none()) {
            let (one, other, count) = (&of.policy, &of.against, of.comparisons);
            missing.push(format!(
                "{count} comparisons of {one} with {other} are too few, or too close in time, for an interval"
            ));
        }
        missing
    }
}
