//! PeriodEvidence of a period, gathered line by line from the audit log.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::completions::Compared;
use super::events::{JobEvents, JobStarted, Tally};
use super::{KeptBack, LiveReport, RealJobs, RiskCount, Risks};
use crate::daemon::interface::audit::AuditLine;
use crate::daemon::shadow::ShadowComparison;
use crate::engine::{JobPhase, Order};

/// Jobs listed by their interruptions.
const LISTED: usize = 10;
/// Milliseconds of an hour.
const HOUR_MS: f64 = 3_600_000.0;

/// Lines of the log, as far as they bear on the report.
#[derive(Debug, Default)]
pub(super) struct PeriodEvidence {
    period: Option<[i64; 2]>,
    watched_ms: i64,
    observed_ms: i64,
    policies: Vec<String>,
    started: BTreeMap<(String, i64), JobStarted>,
    done: BTreeSet<(String, i64)>,
    not_done: BTreeSet<(String, i64)>,
    decisions: u64,
    cycles: [u64; 2],
    of_fallback: u64,
    /// Orders that the mode kept back, by job, start and verb.
    kept_back: BTreeSet<(String, u32, &'static str)>,
    left_out: BTreeSet<(String, String)>,
    fallbacks: BTreeMap<String, RiskCount>,
    alerts: BTreeMap<String, RiskCount>,
    restarts: usize,
    outlook: Compared,
    shadow: Compared,
}

/// Part of a line about a decision that the report needs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DecisionLine {
    mode: String,
    instead: Value,
    orders: Vec<Order>,
    left_out: Vec<LeftOutLine>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LeftOutLine {
    job: Option<String>,
    rule: String,
}

impl PeriodEvidence {
    /// Takes a line in.
    pub(super) fn take(&mut self, line: &AuditLine) {
        let [_, last] = self.period.get_or_insert([line.at_ms; 2]);
        *last = line.at_ms.max(*last);
        let body = &line.body;
        match line.kind.as_str() {
            "decision" => self.decision(DecisionLine::deserialize(body).unwrap_or_default()),
            "jobs" => self.jobs(JobEvents::deserialize(body).unwrap_or_default()),
            "tally" => self.tally(Tally::deserialize(body).unwrap_or_default(), line.at_ms),
            "alert" => {
                let word = |key: &str| body[key].as_str().unwrap_or_default();
                self.alerts.entry(word("kind").into()).or_default().add(word("text"));
            }
            "start" => {
                self.restarts += 1;
                self.policy(body["policy"].as_str().unwrap_or_default());
            }
            kind @ ("outlook" | "shadow") => {
                let Ok(compared) = ShadowComparison::deserialize(&body["compared"]) else { return };
                let side = if kind == "outlook" { &mut self.outlook } else { &mut self.shadow };
                side.take(line.at_ms, compared);
            }
            _ => {}
        }
    }

    fn policy(&mut self, name: &str) {
        if !name.is_empty() && self.policies.last().is_none_or(|last| last != name) {
            self.policies.push(name.into());
        }
    }

    fn decision(&mut self, line: DecisionLine) {
        // What was carried out did change something.
        if line.mode == "observe" {
            let subject = |order: &Order| order.action.subject().unwrap_or_else(|| order.job.clone());
            self.kept_back.extend(line.orders.iter().map(|order| (subject(order), order.starts, order.action.verb())));
        }
        self.left_out.extend(line.left_out.into_iter().map(|of| (of.rule, of.job.unwrap_or_default())));
        let (reason, text) = match &line.instead {
            Value::String(reason) => (reason.clone(), String::new()),
            Value::Object(fields) => match fields.iter().next() {
                Some((reason, text)) => (reason.clone(), text.as_str().unwrap_or_default().to_owned()),
                None => return,
            },
            _ => return,
        };
        self.fallbacks.entry(reason).or_default().add(&text);
    }

    fn jobs(&mut self, events: JobEvents) {
        // A daemon that starts again sees the first start of running jobs once more.
        for job in events.started {
            self.started.entry((job.key.clone(), job.submit_ms)).or_insert(job);
        }
        for job in events.ended {
            let side = if job.phase == JobPhase::Done { &mut self.done } else { &mut self.not_done };
            side.insert((job.key, job.submit_ms));
        }
    }

    fn tally(&mut self, tally: Tally, at_ms: i64) {
        let span = (at_ms - tally.since_ms).max(0);
        self.watched_ms += span;
        if tally.mode == "observe" {
            self.observed_ms += span;
            self.decisions += tally.decisions;
        }
        self.of_fallback += tally.of_fallback;
        self.cycles = [self.cycles[0] + tally.failed, self.cycles[1] + tally.cycles];
        self.policy(&tally.policy);
    }

    /// Report of what was taken in.
    pub(super) fn report(self, days: f64) -> LiveReport {
        let observed_hours = self.observed_ms as f64 / HOUR_MS;
        let names = self.started.values().map(|job| (job.key.clone(), job.name.clone())).collect();
        let sides = [(&self.outlook, true), (&self.shadow, false)];
        let completions = sides.map(|(side, as_it_is)| side.report(as_it_is, &names));
        LiveReport {
            days,
            period_ms: self.period.unwrap_or_default(),
            watched_hours: self.watched_ms as f64 / HOUR_MS,
            observed_hours,
            too_little: Vec::new(),
            jobs: self.real(),
            kept_back: self.kept_back(observed_hours / 24.0),
            completions: completions.into_iter().filter(|of| of.comparisons > 0).collect(),
            risks: Risks {
                guard: self.left_out.iter().fold(BTreeMap::new(), |mut rules, (rule, _)| {
                    *rules.entry(rule.clone()).or_default() += 1;
                    rules
                }),
                fallbacks: self.fallbacks,
                decisions_of_fallback: self.of_fallback,
                alerts: self.alerts,
                failed_cycles: self.cycles,
                restarts: self.restarts,
                unreadable_lines: 0,
            },
            policies: self.policies,
        }
    }

    fn real(&self) -> RealJobs {
        let delay = |job: &JobStarted| (job.start_ms - job.submit_ms).max(0) as f64 / 1e3;
        let mut delays: Vec<f64> = self.started.values().map(delay).collect();
        delays.sort_by(f64::total_cmp);
        let count = delays.len();
        RealJobs {
            started: count,
            done: self.done.len(),
            not_done: self.not_done.len(),
            mean_delay_secs: (count > 0).then(|| delays.iter().sum::<f64>() / count as f64),
            p90_delay_secs: delays.get((0.9 * count as f64).ceil() as usize - usize::from(count > 0)).copied(),
        }
    }

    fn kept_back(&self, observed_days: f64) -> KeptBack {
        let mut orders: BTreeMap<String, usize> = BTreeMap::new();
        let mut interrupted: BTreeMap<&str, usize> = BTreeMap::new();
        for (job, _, verb) in &self.kept_back {
            *orders.entry((*verb).into()).or_default() += 1;
            if matches!(*verb, "stop" | "resize" | "migrate") {
                *interrupted.entry(job).or_default() += 1;
            }
        }
        let interruptions: usize = interrupted.values().sum();
        let mut most: Vec<(String, usize)> = interrupted.iter().map(|(job, count)| ((*job).into(), *count)).collect();
        most.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        most.truncate(LISTED);
        KeptBack {
            decisions: self.decisions,
            orders,
            preempted_jobs: interrupted.len(),
            preemptions_per_day: if observed_days > 0.0 { interruptions as f64 / observed_days } else { 0.0 },
            most_preempted: most,
        }
    }
}
