//! The job log of Microsoft's Philly clusters as it was published (Jeon et al., ATC'19; msr-fiddle/philly-traces,
//! `cluster_job_log`): a JSON list of jobs with `status`, `vc`, `jobid`, `attempts`, `submitted_time` and `user`.
//!
//! An attempt has `start_time`, `end_time` and `detail`, a list of machines with the accelerators on each; a missing
//! time is `None` or null. Times are local ones of the Pacific coast, as the zones PDT and PST of the other files of
//! the trace say. An hour is counted twice at the end of summer time, and the later one is taken.
//!
//! A job is rigid and asks for the accelerators of its first attempt, as in the analysis of the publication. It lasts
//! as long as its attempts together. Further attempts are reported as a repair: the job ran again after a failure. The
//! virtual cluster is the tenant. A job without an attempt that has both times, or that still ran at the end of the
//! log, is refused. The number of a row is that of its element.

use goodput_env::time::SimTime;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::rows::Each;
use super::{Body, Clock, ReadRow, Repair, RowFormat, TraceSource, WorkloadFormat, elements};
use crate::csv_rows::excerpt;
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// The format as a list.
pub(super) const ROWS: RowFormat =
    RowFormat { format: WorkloadFormat::PhillyLog, clock: Clock::Unix, body: Body::Text(read) };

/// Summer time from the second Sunday of March to the first Sunday of November, as in the year of the trace.
const PACIFIC: &str = "PST8PDT,M3.2.0,M11.1.0";

#[derive(Debug, Deserialize)]
struct Job {
    jobid: String,
    #[serde(default)]
    vc: Option<String>,
    #[serde(default)]
    submitted_time: Option<String>,
    #[serde(default)]
    attempts: Vec<PhillyAttempt>,
}

#[derive(Debug, Deserialize)]
struct PhillyAttempt {
    #[serde(default)]
    start_time: Option<String>,
    #[serde(default)]
    end_time: Option<String>,
    #[serde(default)]
    detail: Vec<Machine>,
}

#[derive(Debug, Deserialize)]
struct Machine {
    #[serde(default)]
    gpus: Vec<String>,
}

impl PhillyAttempt {
    fn gpus(&self) -> u32 {
        self.detail.iter().map(|machine| machine.gpus.len() as u32).sum()
    }
}

/// Whether the head of a JSON list is one of this kind: its first element has the key `jobid`.
pub(super) fn recognises(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    ["\"jobid\"", "\"attempts\"", "\"submitted_time\""].iter().filter(|key| head.contains(*key)).count() >= 2
}

fn read(source: &TraceSource<'_>, each: Each<'_>) -> Result<(), DataError> {
    let pacific = TimeZone::posix(PACIFIC).unwrap_or(TimeZone::UTC);
    elements::each(source, &mut |line, job: Result<Job, RowProblem>| {
        each(job.and_then(|job| row(line, job, &pacific)).map_err(|problem| (line, problem)))
    })
}

fn row(line: u64, job: Job, zone: &TimeZone) -> Result<ReadRow, RowProblem> {
    let missing = |column, expected| RowProblem::Value { column, value: String::new(), expected };
    let submit = time("submitted_time", job.submitted_time.as_deref(), zone)?
        .ok_or_else(|| missing("submitted_time", "a time"))?;
    let last = job.attempts.last().ok_or_else(|| missing("attempts", "an attempt: the job never ran"))?;
    if time("end_time", last.end_time.as_deref(), zone)?.is_none() {
        return Err(missing("end_time", "a time: the job still ran at the end of the log"));
    }
    let (mut ran, mut duration) = (0_u64, 0);
    for attempt in &job.attempts {
        let start = time("start_time", attempt.start_time.as_deref(), zone)?;
        let end = time("end_time", attempt.end_time.as_deref(), zone)?;
        if let (Some(start), Some(end)) = (start, end) {
            ran += 1;
            duration += (end - start).max(0);
        }
    }
    if duration == 0 {
        return Err(missing("attempts", "an attempt with a start and a later end"));
    }
    let gpus = job.attempts.first().map_or(0, PhillyAttempt::gpus);
    if gpus == 0 {
        return Err(missing("detail", "the accelerators of the first attempt"));
    }
    let attempts = job.attempts.len();
    let again = (attempts > 1).then(|| Repair {
        kind: "attempts",
        what: format!("{attempts} attempts: the run times of {ran} with both times are added up"),
    });
    let job = JobRow {
        line,
        job_id: job.jobid,
        submit: SimTime::from_secs(submit),
        duration: Some(SimTime::from_secs(duration)),
        gpus,
        tenant: job.vc.filter(|vc| !vc.is_empty()),
        ..JobRow::default()
    };
    Ok(ReadRow { job, repairs: again.into_iter().collect() })
}

/// Seconds since 1970 of a local time; `None` where it is missing.
fn time(column: &'static str, text: Option<&str>, zone: &TimeZone) -> Result<Option<i64>, RowProblem> {
    let Some(text) = text.map(str::trim).filter(|text| !matches!(*text, "" | "None")) else { return Ok(None) };
    let problem = || RowProblem::Value {
        column,
        value: excerpt(text.as_bytes()),
        expected: "a time as 2017-10-07 01:11:39, or None",
    };
    let local = DateTime::strptime("%Y-%m-%d %H:%M:%S", text).map_err(|_| problem())?;
    let moment = zone.to_ambiguous_timestamp(local).later().map_err(|_| problem())?;
    Ok(Some(moment.as_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_pacific_coast() {
        let zone = TimeZone::posix(PACIFIC).unwrap();
        let secs = |text| time("t", Some(text), &zone).unwrap();
        // date --date='TZ="America/Los_Angeles" 2017-10-07 01:11:39' +%s
        assert_eq!(secs("2017-10-07 01:11:39"), Some(1_507_363_899));
        assert_eq!(secs("2017-12-01 00:00:00"), Some(1_512_115_200));
        assert_eq!(secs("2017-11-05 02:00:00").unwrap() - secs("2017-11-05 00:00:00").unwrap(), 3 * 3600);
        assert_eq!([secs("None"), secs("")], [None; 2]);
        assert!(time("t", Some("yesterday"), &zone).is_err());
    }
}
