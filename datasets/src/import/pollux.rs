//! Workloads of the Pollux artifact (petuum/adaptdl, branch osdi21-artifact,
//! `simulator/workloads*`).
//!
//! Columns `name,time,application,num_replicas,batch_size`; others are ignored. A row with a bad
//! value or a name used before is refused; a missing column is an error.

use std::path::Path;

use goodput_env::time::SimTime;

use super::{Body, Clock, Csv, Imported, RowFormat, WorkloadFormat};
use crate::csv_rows::CsvRow;
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Columns that make a file a workload of this kind.
pub const COLUMNS: &[&str] = &["name", "time", "application", "num_replicas", "batch_size"];

/// The format as one job a row.
pub(super) const ROWS: RowFormat = RowFormat {
    format: WorkloadFormat::Pollux,
    clock: Clock::Start,
    body: Body::Csv(Csv {
        columns: COLUMNS,
        required: COLUMNS.len(),
        delimiter: b',',
        job: |row| job(row).map(Into::into),
    }),
};

/// Reads the bytes of a workload; `path` is for messages.
///
/// # Errors
/// Where the header lacks a column, or there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    ROWS.parse(path, text)
}

pub(super) fn job(row: &CsvRow<'_, '_>) -> Result<JobRow, RowProblem> {
    Ok(JobRow {
        line: row.line,
        job_id: row.text(0)?.to_owned(),
        submit: SimTime::from_secs_f64(row.at_least(1, 0.0, "a time in seconds of at least 0")?),
        gpus: row.count(3)?,
        batch_size: Some(row.count(4)?),
        application: Some(row.text(2)?.to_owned()),
        ..JobRow::default()
    })
}
