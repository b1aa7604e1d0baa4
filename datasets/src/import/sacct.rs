//! Accounting of Slurm: the output of `sacct --parsable2` with a header.
//!
//! Columns may be in any order: `JobID`, `Submit`, `ElapsedRaw` and `AllocTRES`; and, where they are there,
//! `TimelimitRaw`, `Account`, `User` and `State`. Give sacct `--allocations`: a step of a job is not a job, and is
//! refused. A job is rigid and lasts as long as it ran, however it ended. The time limit comes along, and the account
//! becomes the tenant, or the user where there is none. Jobs that never ran, that still run by their `State`, and jobs
//! without accelerators are refused.
//!
//! With `--duplicates`, a job that Slurm put back into the queue has a record for each of its runs
//! (`requeues`).

use std::path::Path;

use goodput_env::time::SimTime;

use super::dates::seconds;
use super::{Body, Clock, Csv, Imported, ReadRow, RowFormat, WorkloadFormat, requeues};
use crate::csv_rows::CsvRow;
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Columns that are read, the required ones first.
pub const COLUMNS: &[&str] =
    &["JobID", "Submit", "ElapsedRaw", "AllocTRES", "TimelimitRaw", "Account", "User", "State"];

/// Number of columns that must be there.
const REQUIRED: usize = 4;

/// Position of the name of a job in [`COLUMNS`].
pub(super) const JOB_ID: usize = 0;

/// Position of the state of a job in [`COLUMNS`].
pub(super) const STATE: usize = 7;

/// The expected form of `AllocTRES`.
pub(super) const GPUS: &str = "accelerators as gres/gpu=4";

/// The expected form of `ElapsedRaw`.
pub(super) const RUN_TIME: &str = "a run time in seconds above 0";

/// Shortest run time, s.
pub(super) const LEAST_SECS: f64 = 0.001;

/// States of a job that has not ended.
const UNENDED: [&[u8]; 6] = [b"RUNNING", b"PENDING", b"SUSPENDED", b"COMPLETING", b"CONFIGURING", b"STOPPED"];

/// A listing as a table, of which a row is a record.
pub(super) const RECORDS: Csv = Csv { columns: COLUMNS, required: REQUIRED, delimiter: b'|', job };

/// The format as records of jobs.
pub(super) const ROWS: RowFormat =
    RowFormat { format: WorkloadFormat::Sacct, clock: Clock::Unix, body: Body::Joined(RECORDS, requeues::read) };

/// Reads the bytes of a listing; `path` is for messages.
///
/// # Errors
/// Where the header lacks a column, or there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    ROWS.parse(path, text)
}

/// One run of a job.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) line: u64,
    /// Submission, or the moment at which the job was put back into the queue.
    pub(super) submit: SimTime,
    /// Run time, s; 0 where the job did not run.
    pub(super) secs: f64,
    /// Accelerators; 0 where it held none.
    pub(super) gpus: u32,
    pub(super) limit: Option<SimTime>,
    pub(super) tenant: Option<String>,
    /// First word of the state; empty where it is unknown.
    pub(super) state: String,
}

impl Record {
    /// The job called `name` that ran once.
    pub(super) fn job(self, name: &str) -> JobRow {
        let Self { line, submit, secs, gpus, limit, tenant, .. } = self;
        let duration = Some(SimTime::from_secs_f64(secs));
        JobRow { line, job_id: name.to_owned(), submit, duration, gpus, limit, tenant, ..JobRow::default() }
    }
}

/// Whether a row is a step of a job.
pub(super) fn is_step(row: &CsvRow<'_, '_>) -> bool {
    row.bytes(JOB_ID).contains(&b'.')
}

/// First word of the state of a row, as in `CANCELLED by 1000`.
pub(super) fn state<'r>(row: &'r CsvRow<'_, '_>) -> &'r [u8] {
    let text = row.bytes(STATE);
    text.split(u8::is_ascii_whitespace).next().unwrap_or(text)
}

/// Reads a row as a record.
pub(super) fn record(row: &CsvRow<'_, '_>) -> Result<Record, RowProblem> {
    let submit = seconds(row.bytes(1)).ok_or_else(|| row.problem(1, "a time as 2026-10-01T08:30:00"))?;
    // sacct gives minutes, or words such as UNLIMITED and Partition_Limit.
    let limit = std::str::from_utf8(row.bytes(4)).ok().and_then(|text| text.parse::<u32>().ok());
    let tenant = [5, 6].into_iter().find(|column| !row.bytes(*column).is_empty());
    Ok(Record {
        line: row.line,
        submit: SimTime::from_secs(submit),
        secs: row.at_least(2, 0.0, RUN_TIME)?,
        gpus: gpus(row.bytes(3)).unwrap_or(0),
        limit: limit.filter(|minutes| *minutes > 0).map(|minutes| SimTime::from_secs(60 * i64::from(minutes))),
        tenant: tenant.map(|column| row.text(column).map(str::to_owned)).transpose()?,
        state: String::from_utf8_lossy(state(row)).into_owned(),
    })
}

/// Reads a row as a job of one run.
fn job(row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
    if is_step(row) {
        return Err(row.problem(JOB_ID, "a job, not a step of one; give sacct --allocations"));
    }
    if UNENDED.contains(&state(row)) {
        return Err(row.problem(STATE, "a job that has ended"));
    }
    let record = record(row)?;
    if record.gpus == 0 {
        return Err(row.problem(3, GPUS));
    }
    if record.secs < LEAST_SECS {
        return Err(row.problem(2, RUN_TIME));
    }
    Ok(record.job(row.text(JOB_ID)?).into())
}

/// Whether a state is one of a job that has not ended.
pub(super) fn is_unended(state: &str) -> bool {
    UNENDED.contains(&state.as_bytes())
}

/// Accelerators of a list of trackable resources: `gres/gpu=N`, or the sum of `gres/gpu:TYPE=N`.
fn gpus(resources: &[u8]) -> Option<u32> {
    let (mut all, mut by_type) = (None, 0_u32);
    for resource in std::str::from_utf8(resources).ok()?.split(',') {
        let Some((name, count)) = resource.split_once('=') else { continue };
        if name == "gres/gpu" {
            all = Some(count.parse().ok()?);
        } else if name.starts_with("gres/gpu:") {
            by_type = by_type.checked_add(count.parse().ok()?)?;
        }
    }
    Some(all.unwrap_or(by_type)).filter(|gpus| *gpus > 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const TEXT: &str = "JobID|User|Account|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|State\n\
        11|ann|vision|2026-10-01T08:30:10|x|x|3600|120|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=1G,node=1|COMPLETED\n\
        11.batch||vision|2026-10-01T08:30:10|x|x|3600||cpu=8,gres/gpu=4|COMPLETED\n\
        12_3|bob||2026-10-01T08:30:00|x|x|60|UNLIMITED|cpu=2,gres/gpu:t4=1,gres/gpu:v100=2|FAILED\n\
        13|bob|nlp|2026-10-01T09:00:00|x|x|0|60||CANCELLED by 1000\n\
        14|bob|nlp|2026-10-01T09:00:00|x|x|30|60|cpu=4,mem=1G|COMPLETED\n";

    #[test]
    fn a_listing_becomes_jobs_and_the_rest_is_refused_by_line() {
        let imported = parse(Path::new("t"), TEXT.as_bytes()).unwrap();
        let [first, second] = &imported.jobs[..] else { panic!("{:?}", imported.jobs) };
        assert_eq!((first.job_id.as_str(), first.gpus, first.tenant.as_deref()), ("11", 4, Some("vision")));
        assert_eq!((first.submit, first.limit), (SimTime::from_secs(10), Some(SimTime::from_secs(7200))));
        assert_eq!((second.job_id.as_str(), second.gpus, second.tenant.as_deref()), ("12_3", 3, Some("bob")));
        assert_eq!((second.submit, second.limit), (SimTime::ZERO, None));
        let lines: Vec<u64> = imported.report.refused.examples.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 5, 6]);
    }
}
