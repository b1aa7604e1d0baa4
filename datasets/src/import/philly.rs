//! The Philly trace as the Pollux artifact extracted it
//! (`timestamp,duration,num_gpus,gpu_time,cluster`), from msr-fiddle/philly-traces. Jobs have no
//! application: each is rigid and lasts as long as it did.
//!
//! The file is not sorted; submission counts from its earliest timestamp. Jobs have no names and
//! some rows are equal, so a job is named after its line. `gpu_time` is redundant: where it is not
//! duration x GPUs it is ignored, and that is reported as a repair.

use std::path::Path;

use goodput_env::time::SimTime;

use super::dates::seconds;
use super::{Body, Clock, Csv, Imported, ReadRow, Repair, RowFormat, WorkloadFormat};
use crate::csv_rows::{CsvRow, excerpt};
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Columns that make a file a trace of this kind.
pub const COLUMNS: &[&str] = &["timestamp", "duration", "num_gpus", "gpu_time", "cluster"];

/// The format as one job a row.
pub(super) const ROWS: RowFormat = RowFormat {
    format: WorkloadFormat::Philly,
    clock: Clock::Unix,
    body: Body::Csv(Csv { columns: COLUMNS, required: COLUMNS.len(), delimiter: b',', job }),
};

/// Reads the bytes of a trace; `path` is for messages.
///
/// # Errors
/// Where the header lacks a column, or there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    ROWS.parse(path, text)
}

fn job(row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
    let timestamp = seconds(row.bytes(0)).ok_or_else(|| row.problem(0, "a time as 2017-10-09 07:01:55"))?;
    let duration_secs = row.at_least(1, 0.001, "a duration in seconds above 0")?;
    let gpus = row.count(2)?;
    let gpu_secs = row.float(3, "GPU-seconds");
    let tenant = row.text(4)?.to_owned();
    let expected = duration_secs * f64::from(gpus);
    let agrees = gpu_secs.is_ok_and(|gpu_secs| (gpu_secs - expected).abs() <= 1e-6 * expected);
    let ignored = || Repair {
        kind: "gpu_time",
        what: format!("gpu_time {} is not duration x num_gpus = {expected}: ignored", excerpt(row.bytes(3))),
    };
    let job = JobRow {
        line: row.line,
        job_id: format!("philly-{}", row.line),
        submit: SimTime::from_secs(timestamp),
        duration: Some(SimTime::from_secs_f64(duration_secs)),
        gpus,
        tenant: Some(tenant),
        ..JobRow::default()
    };
    Ok(ReadRow { job, repairs: (!agrees).then(ignored).into_iter().collect() })
}
