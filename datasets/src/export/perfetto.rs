//! Chrome's trace events as JSON, which <https://ui.perfetto.dev> opens ("Trace Event Format", Google, 2016).
//!
//! | of the trace | of the run |
//! |---|---|
//! | process `accelerators` | the cluster; a thread is an accelerator |
//! | process `queue` | the jobs that wait for their first accelerator, a lane each |
//! | slice | a job that holds the accelerator, or waits; its arguments are size, application and tenant |
//! | counter `accelerators held` | accelerators that jobs hold |
//!
//! A run says how many accelerators a job holds, and not which ones: a job takes the lowest ones that are free. Where
//! the run did not log changes, a job holds its mean number from its start to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde_json::json;

use super::schedule::{RunSchedule, ScheduledJob};

/// Process of the accelerators, and process of the queue.
const PROCESSES: [(u32, &str); 2] = [(1, "accelerators"), (2, "queue")];

/// A job that holds so many lanes from one moment to another, seconds.
#[derive(Clone, Copy, Debug)]
struct JobSpan<'a> {
    job: &'a ScheduledJob,
    from: f64,
    to: f64,
    width: u32,
}

/// Writes the schedule of a run.
///
/// # Errors
/// Where `out` cannot be written.
pub fn write(schedule: &RunSchedule, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    for (at, (process, name)) in PROCESSES.into_iter().enumerate() {
        let event = json!({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}});
        write!(out, "{}\n{event}", if at == 0 { "" } else { "," })?;
    }
    let held = held(schedule);
    let mut changes: Vec<(f64, i64)> = held
        .iter()
        .flat_map(|span| {
            let width = i64::from(span.width);
            [(span.from, width), (span.to, -width)]
        })
        .collect();
    lanes(PROCESSES[0].0, held, out)?;
    lanes(PROCESSES[1].0, waiting(schedule), out)?;
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

/// Spans over which jobs held a constant number of accelerators.
fn held(schedule: &RunSchedule) -> Vec<JobSpan<'_>> {
    if schedule.changes.is_empty() {
        return schedule.jobs.iter().filter_map(held_on_average).collect();
    }
    let jobs: BTreeMap<&str, &ScheduledJob> = schedule.jobs.iter().map(|job| (job.name.as_str(), job)).collect();
    let end = schedule.changes.last().map_or(0.0, |change| change.at_secs);
    let span = |name: &str, (from, width): (f64, u32), to: f64| {
        let job = jobs.get(name).copied().filter(|_| to > from && width > 0)?;
        Some(JobSpan { job, from, to, width })
    };
    let (mut open, mut spans) = (BTreeMap::<&str, (f64, u32)>::new(), Vec::new());
    for change in &schedule.changes {
        if let Some(before) = open.insert(&change.job, (change.at_secs, change.gpus)) {
            spans.extend(span(&change.job, before, change.at_secs));
        }
    }
    spans.extend(open.into_iter().filter_map(|(name, before)| span(name, before, end)));
    spans
}

/// Span from the start of a job to its end, with the mean number of accelerators.
fn held_on_average(job: &ScheduledJob) -> Option<JobSpan<'_>> {
    let (from, to) = (job.start_secs?, job.start_secs? + job.run_secs?);
    Some(JobSpan { job, from, to, width: (job.gpus_mean?.round() as u32).max(1) })
}

/// Spans over which jobs waited for their first accelerator.
fn waiting(schedule: &RunSchedule) -> Vec<JobSpan<'_>> {
    schedule.jobs.iter().filter_map(waited).collect()
}

/// Span from the submission of a job to its start.
fn waited(job: &ScheduledJob) -> Option<JobSpan<'_>> {
    let (from, to) = (job.submit_secs, job.start_secs?);
    (to > from).then_some(JobSpan { job, from, to, width: 1 })
}

/// Writes spans as slices of the lowest lanes that are free.
fn lanes(process: u32, mut spans: Vec<JobSpan<'_>>, out: &mut dyn Write) -> io::Result<()> {
    spans.sort_by(|span, other| span.from.total_cmp(&other.from));
    let (mut free, mut known) = (BTreeSet::<u32>::new(), 0);
    // Lanes that are held, by the end in microseconds.
    let mut busy: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for span in spans {
        let from = micros(span.from);
        while let Some(entry) = busy.first_entry().filter(|entry| *entry.key() <= from) {
            free.extend(entry.remove());
        }
        let (to, job) = (micros(span.to), span.job);
        let category = if job.application.is_empty() { "job" } else { job.application.as_str() };
        for _ in 0..span.width {
            let lane = free.pop_first().unwrap_or_else(|| {
                known += 1;
                known - 1
            });
            busy.entry(to).or_default().push(lane);
            let event = json!({
                "ph": "X", "name": job.name, "cat": category,
                "ts": from, "dur": to - from, "pid": process, "tid": lane,
                "args": {
                    "gpus": span.width, "requested_gpus": job.gpus, "application": job.application, "tenant": job.tenant,
                },
            });
            write!(out, ",\n{event}")?;
        }
    }
    Ok(())
}

fn micros(secs: f64) -> u64 {
    (secs * 1e6).round() as u64
}
