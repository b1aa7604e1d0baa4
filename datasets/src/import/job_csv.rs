//! Job table as csv, for traces of one's own: `job_id,submit_secs,duration_secs,gpus`, and any of the other columns of
//! the job table.
//!
//! The columns have the names and units of the Parquet job table ([`crate::store::jobs`]) and may be in any order;
//! other columns are ignored. An empty cell of a column that is not required is a missing value. Without an
//! application, a job holds `gpus` accelerators for `duration_secs` seconds of work.

use std::path::Path;

use goodput_env::time::SimTime;

use super::{Body, Clock, Csv, Imported, ReadRow, RowFormat, WorkloadFormat};
use crate::csv_rows::{CsvRow, header_has};
use crate::error::{DataError, RowProblem};
use crate::jobs::{JobRow, share_of};

/// Columns that must be there, by most of which a file is recognised.
pub const COLUMNS: &[&str] = &["job_id", "submit_secs", "duration_secs", "gpus"];

/// All columns, the required ones first, and then those of shares of cards, of which none goes without the other.
pub const ALL_COLUMNS: &[&str] = &[
    "job_id",
    "submit_secs",
    "duration_secs",
    "gpus",
    "compute_percent",
    "memory_mib",
    "tenant",
    "limit_secs",
    "deadline_secs",
    "priority",
    "weight",
    "application",
    "work_factor",
    "batch_size",
    "gpu_min",
    "gpu_max",
];

/// Reads the bytes of a table; `path` is for messages. A row with a bad value, or with a name that
/// an earlier row has, is refused and stands in the report with its line.
///
/// # Errors
/// Where the header lacks a column, or where there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    rows(text).parse(path, text)
}

/// The format as one job a row.
pub(super) const ROWS: RowFormat = with_required(COLUMNS.len());

/// The format as one job a row, with the columns that the header of `text` has.
pub(super) fn rows(text: &[u8]) -> RowFormat {
    // Compute without memory beside it is an error, not a table without parts.
    with_required(COLUMNS.len() + if header_has(text, &["compute_percent"]) { 2 } else { 0 })
}

const fn with_required(required: usize) -> RowFormat {
    let csv = Csv { columns: ALL_COLUMNS, required, delimiter: b',', job };
    RowFormat { format: WorkloadFormat::JobCsv, clock: Clock::Start, body: Body::Csv(csv) }
}

pub(super) fn job(row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
    let given = |column: usize| !row.bytes(column).is_empty();
    let text = |column: usize| given(column).then(|| row.text(column).map(str::to_owned)).transpose();
    let count = |column: usize| given(column).then(|| row.count(column)).transpose();
    let amount = |column: usize| if row.bytes(column) == b"0" { Ok(Some(0)) } else { count(column) };
    let secs = |column: usize, least: f64, expected: &'static str| {
        let value = given(column).then(|| row.at_least(column, least, expected)).transpose()?;
        Ok::<_, RowProblem>(value.map(SimTime::from_secs_f64))
    };
    let milli = |column: usize, expected: &'static str| {
        let value = given(column).then(|| row.at_least(column, 0.001, expected)).transpose()?;
        match value.filter(|value| *value > 1e6) {
            Some(_) => Err(row.problem(column, expected)),
            None => Ok(value.map(|value| (1000.0 * value).round() as u32)),
        }
    };
    let application = text(11)?;
    // The application of a job may say how long it runs.
    let duration = match (&application, given(2)) {
        (Some(_), false) => None,
        _ => Some(SimTime::from_secs_f64(row.at_least(2, 0.001, "a duration in seconds above 0")?)),
    };
    Ok(JobRow {
        line: row.line,
        job_id: row.text(0)?.to_owned(),
        submit: SimTime::from_secs_f64(row.at_least(1, 0.0, "a time in seconds of at least 0")?),
        duration,
        gpus: row.count(3)?,
        share: share_of(amount(4)?, amount(5)?),
        tenant: text(6)?,
        limit: secs(7, 0.001, "seconds above 0")?,
        deadline: secs(8, 0.0, "seconds of at least 0")?,
        priority: given(9).then(|| priority(row)).transpose()?,
        weight_milli: milli(10, "a weight from 0.001 to 1e6")?,
        application,
        work_milli: milli(12, "a factor from 0.001 to 1e6")?,
        batch_size: count(13)?,
        gpu_min: count(14)?,
        gpu_max: count(15)?,
    }
    .into())
}

fn priority(row: &CsvRow<'_, '_>) -> Result<i32, RowProblem> {
    let value = row.float(9, "a whole number")?;
    let whole = value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value);
    if whole { Ok(value as i32) } else { Err(row.problem(9, "a whole number")) }
}
