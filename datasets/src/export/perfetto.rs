//! Chrome's trace events as JSON, which <https://ui.perfetto.dev> opens ("Trace Event Format", Google, 2016).
//!
//! | of the trace | of the run |
//! |---|---|
//! | process `node N` | a node; a thread is an accelerator of it |
//! | process `accelerators` | the cluster, where the run did not log placements; a thread is an accelerator |
//! | process `queue` | the jobs that wait for their first accelerator, a lane each |
//! | slice | a job that holds the accelerator, or waits; its arguments are size, application and tenant |
//! | instant `restart` | a job that goes on after a change or a pause, once a process |
//! | counter `accelerators held` | accelerators that jobs hold |
//!
//! A run says how many accelerators of a node a job holds, and not which ones: a job takes the lowest ones that are
//! free. Where the run did not log changes, a job holds its mean number from its start to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde_json::json;

use super::schedule::{HoldingChange, RunSchedule, ScheduledJob};

/// Process of the cluster, and process of the queue.
const PROCESSES: [(u32, &str); 2] = [(1, "accelerators"), (2, "queue")];

/// Process of the first node; each node has the next one.
const FIRST_NODE: u32 = 10;

/// A job that holds so many lanes of a process from one moment to another, seconds.
#[derive(Clone, Copy, Debug)]
struct JobSpan<'a> {
    job: &'a ScheduledJob,
    from: f64,
    to: f64,
    width: u32,
    /// Accelerators of the job on all nodes.
    gpus: u32,
    process: u32,
    /// Whether the job had run before: it goes on after a change or a pause.
    restarted: bool,
}

/// Writes the schedule of a run.
///
/// # Errors
/// Where `out` cannot be written.
pub fn write(schedule: &RunSchedule, out: &mut dyn Write) -> io::Result<()> {
    let mut spans: BTreeMap<u32, Vec<JobSpan<'_>>> = BTreeMap::new();
    for span in held(schedule) {
        spans.entry(span.process).or_default().push(span);
    }
    let nodes = spans.keys().filter(|process| **process >= FIRST_NODE);
    let names = nodes.map(|process| (*process, format!("node {}", process - FIRST_NODE)));
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let known = PROCESSES.into_iter().map(|(process, name)| (process, name.to_owned()));
    for (at, (process, name)) in known.chain(names).enumerate() {
        let event = json!({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}});
        write!(out, "{}\n{event}", if at == 0 { "" } else { "," })?;
    }
    let ends = |span: &JobSpan<'_>| [(span.from, i64::from(span.width)), (span.to, -i64::from(span.width))];
    let mut changes: Vec<(f64, i64)> = spans.values().flatten().flat_map(ends).collect();
    for spans in spans.into_values() {
        lanes(spans, out)?;
    }
    lanes(schedule.jobs.iter().filter_map(waited).collect(), out)?;
    changes.sort_by(|(at, change), (other, by)| at.total_cmp(other).then(change.cmp(by)));
    let mut gpus = 0;
    for (index, (at, change)) in changes.iter().enumerate() {
        gpus += change;
        // Changes of one moment are one value.
        if changes.get(index + 1).is_none_or(|(next, _)| next > at) {
            let event = json!({
                "ph": "C", "name": "accelerators held", "pid": PROCESSES[0].0, "ts": micros(*at), "args": {"gpus": gpus},
            });
            write!(out, ",\n{event}")?;
        }
    }
    writeln!(out, "\n]}}")
}

/// Spans over which jobs held a constant number of accelerators of a process.
fn held(schedule: &RunSchedule) -> Vec<JobSpan<'_>> {
    if schedule.changes.is_empty() {
        return schedule.jobs.iter().filter_map(held_on_average).collect();
    }
    let jobs: BTreeMap<&str, &ScheduledJob> = schedule.jobs.iter().map(|job| (job.name.as_str(), job)).collect();
    let end = schedule.changes.last().map_or(0.0, |change| change.at_secs);
    let (mut open, mut spans) = (BTreeMap::<&str, &HoldingChange>::new(), Vec::new());
    let mut ran = BTreeSet::new();
    let mut close = |change: &HoldingChange, to: f64| {
        let Some(job) = jobs.get(change.job.as_str()).copied().filter(|_| to > change.at_secs && change.gpus > 0)
        else {
            return;
        };
        let restarted = !ran.insert(job.name.as_str());
        let whole = [(PROCESSES[0].0, change.gpus)];
        let placed =
            change.placement.as_ref().map(|slices| slices.iter().map(|(node, gpus)| (FIRST_NODE + node, *gpus)));
        let parts: Vec<(u32, u32)> = placed.map_or_else(|| whole.to_vec(), Iterator::collect);
        let span =
            |(process, width)| JobSpan { job, from: change.at_secs, to, width, gpus: change.gpus, process, restarted };
        spans.extend(parts.into_iter().map(span));
    };
    for change in &schedule.changes {
        if let Some(before) = open.insert(&change.job, change) {
            close(before, change.at_secs);
        }
    }
    open.into_values().for_each(|before| close(before, end));
    spans
}

/// Span from the start of a job to its end, with the mean number of accelerators.
fn held_on_average(job: &ScheduledJob) -> Option<JobSpan<'_>> {
    let (from, to) = (job.start_secs?, job.start_secs? + job.run_secs?);
    let gpus = (job.gpus_mean?.round() as u32).max(1);
    Some(JobSpan { job, from, to, width: gpus, gpus, process: PROCESSES[0].0, restarted: false })
}

/// Span from the submission of a job to its start.
fn waited(job: &ScheduledJob) -> Option<JobSpan<'_>> {
    let (from, to) = (job.submit_secs, job.start_secs?);
    let span = JobSpan { job, from, to, width: 1, gpus: 1, process: PROCESSES[1].0, restarted: false };
    (to > from).then_some(span)
}

/// Writes spans of one process as slices of the lowest lanes that are free.
fn lanes(mut spans: Vec<JobSpan<'_>>, out: &mut dyn Write) -> io::Result<()> {
    spans.sort_by(|span, other| span.from.total_cmp(&other.from));
    let (mut free, mut known) = (BTreeSet::<u32>::new(), 0);
    // Lanes that are held, by the end in microseconds.
    let mut busy: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for span in spans {
        let from = micros(span.from);
        while let Some(entry) = busy.first_entry().filter(|entry| *entry.key() <= from) {
            free.extend(entry.remove());
        }
        let (to, job, process) = (micros(span.to), span.job, span.process);
        let category = if job.application.is_empty() { "job" } else { job.application.as_str() };
        for at in 0..span.width {
            let lane = free.pop_first().unwrap_or_else(|| {
                known += 1;
                known - 1
            });
            busy.entry(to).or_default().push(lane);
            let event = json!({
                "ph": "X", "name": job.name, "cat": category,
                "ts": from, "dur": to - from, "pid": process, "tid": lane,
                "args": {
                    "gpus": span.gpus, "requested_gpus": job.gpus, "application": job.application, "tenant": job.tenant,
                },
            });
            write!(out, ",\n{event}")?;
            if span.restarted && at == 0 {
                let restart = json!({
                    "ph": "i", "s": "t", "name": "restart", "cat": category, "ts": from, "pid": process, "tid": lane,
                    "args": {"job": job.name},
                });
                write!(out, ",\n{restart}")?;
            }
        }
    }
    Ok(())
}

fn micros(secs: f64) -> u64 {
    (secs * 1e6).round() as u64
}
