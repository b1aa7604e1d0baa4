//! Job table as csv, for traces of one's own: `job_id,submit_secs,duration_secs,gpus` and,
//! optionally, `tenant`.
//!
//! The columns have the names and units of the Parquet job table ([`crate::store::jobs`]) and may
//! be in any order; other columns are ignored. A job is rigid: it holds `gpus` accelerators for
//! `duration_secs` seconds of work.

use std::path::Path;

use goodput_env::time::SimTime;

use super::{Imported, WorkloadFormat};
use crate::csv_rows::{CsvRow, header_has};
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Required columns, by most of which a file is recognised.
pub const COLUMNS: &[&str] = &["job_id", "submit_secs", "duration_secs", "gpus"];

/// Columns of a file that names tenants.
pub const TENANT_COLUMNS: &[&str] = &["job_id", "submit_secs", "duration_secs", "gpus", "tenant"];

/// Reads the bytes of a table; `path` is for messages. A row with a bad value, or with a name that
/// an earlier row has, is refused and stands in the report with its line.
///
/// # Errors
/// Where the header lacks a column, or where there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    if header_has(text, TENANT_COLUMNS) {
        Imported::one_job_a_row(path, text, WorkloadFormat::JobCsv, TENANT_COLUMNS, |row| {
            // An empty cell means that the job has no tenant of its own.
            let tenant = if row.bytes(4).is_empty() { None } else { Some(row.text(4)?.to_owned()) };
            Ok(JobRow { tenant, ..job(row)? })
        })
    } else {
        Imported::one_job_a_row(path, text, WorkloadFormat::JobCsv, COLUMNS, job)
    }
}

/// Job of a row, without its tenant.
fn job(row: &CsvRow<'_, '_>) -> Result<JobRow, RowProblem> {
    Ok(JobRow {
        line: row.line,
        job_id: row.text(0)?.to_owned(),
        submit: SimTime::from_secs_f64(row.at_least(1, 0.0, "a time in seconds of at least 0")?),
        duration: Some(SimTime::from_secs_f64(row.at_least(2, 0.001, "a duration in seconds above 0")?)),
        gpus: row.count(3)?,
        ..JobRow::default()
    })
}
