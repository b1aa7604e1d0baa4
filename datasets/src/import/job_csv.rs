//! Job table as csv, for traces of one's own: `job_id,submit_secs,duration_secs,gpus` and, optionally, `tenant`, and
//! `compute_percent` with `memory_mib` for jobs on a share of a card.
//!
//! The columns have the names and units of the Parquet job table ([`crate::store::jobs`]) and may
//! be in any order; other columns are ignored. A job is rigid: it holds `gpus` accelerators for
//! `duration_secs` seconds of work.

use std::path::Path;

use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;

use super::{CsvFormat, Imported, WorkloadFormat};
use crate::csv_rows::{CsvRow, header_has};
use crate::error::{DataError, RowProblem};
use crate::jobs::{JobRow, share_of};

/// Required columns, by most of which a file is recognised.
pub const COLUMNS: &[&str] = &["job_id", "submit_secs", "duration_secs", "gpus"];

/// Columns of a file that names tenants.
pub const TENANT_COLUMNS: &[&str] = &["job_id", "submit_secs", "duration_secs", "gpus", "tenant"];

/// Columns of a file with shares of cards.
const SHARE_COLUMNS: &[&str] = &["job_id", "submit_secs", "duration_secs", "gpus", "compute_percent", "memory_mib"];

/// Columns of a file with tenants and with shares of cards.
pub const ALL_COLUMNS: &[&str] =
    &["job_id", "submit_secs", "duration_secs", "gpus", "compute_percent", "memory_mib", "tenant"];

/// Reads the bytes of a table; `path` is for messages. A row with a bad value, or with a name that
/// an earlier row has, is refused and stands in the report with its line.
///
/// # Errors
/// Where the header lacks a column, or where there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    rows(text).read(path, text)
}

/// The format as one job a row, with the columns that the header of `text` has.
pub(super) fn rows(text: &[u8]) -> CsvFormat {
    let (columns, job): (_, fn(&CsvRow<'_, '_>) -> Result<JobRow, RowProblem>) =
        // Compute without memory beside it is an error, not a table without parts.
        match (header_has(text, &["compute_percent"]), header_has(text, TENANT_COLUMNS)) {
            (true, true) => {
                (ALL_COLUMNS, |row| Ok(JobRow { tenant: tenant(row, 6)?, share: share(row)?, ..job(row)? }))
            }
            (true, false) => (SHARE_COLUMNS, |row| Ok(JobRow { share: share(row)?, ..job(row)? })),
            (false, true) => (TENANT_COLUMNS, |row| Ok(JobRow { tenant: tenant(row, 4)?, ..job(row)? })),
            (false, false) => (COLUMNS, job),
        };
    CsvFormat { format: WorkloadFormat::JobCsv, columns, job }
}

/// An empty cell means that the job has no tenant of its own.
fn tenant(row: &CsvRow<'_, '_>, column: usize) -> Result<Option<String>, RowProblem> {
    if row.bytes(column).is_empty() { Ok(None) } else { Ok(Some(row.text(column)?.to_owned())) }
}

/// Empty cells mean whole accelerators.
fn share(row: &CsvRow<'_, '_>) -> Result<Option<ShareRequest>, RowProblem> {
    let amount = |column: usize| match row.bytes(column) {
        b"" => Ok(None),
        b"0" => Ok(Some(0)),
        _ => row.count(column).map(Some),
    };
    Ok(share_of(amount(4)?, amount(5)?))
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
