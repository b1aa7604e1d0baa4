//! The Philly trace as the Pollux artifact extracted it
//! (`timestamp,duration,num_gpus,gpu_time,cluster`), from msr-fiddle/philly-traces. Jobs have no
//! application: each is rigid and lasts as long as it did.
//!
//! The file is not sorted; submission counts from its earliest timestamp. Jobs have no names and
//! some rows are equal, so a job is named after its line. `gpu_time` is redundant: where it is not
//! duration x GPUs it is ignored, and that is reported as a repair.

use std::path::Path;

use goodput_env::time::SimTime;
use jiff::civil::DateTime;

use super::{Imported, WorkloadFormat};
use crate::csv_rows::{CsvRow, CsvRows};
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Columns that make a file a trace of this kind.
pub const COLUMNS: &[&str] = &["timestamp", "duration", "num_gpus", "gpu_time", "cluster"];

/// A row before the earliest timestamp is known.
struct DatedJob {
    job: JobRow,
    /// Seconds since 1970 on the trace's own clock.
    timestamp: i64,
}

/// Reads the bytes of a trace; `path` is for messages.
///
/// # Errors
/// Where the header lacks a column, or there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    let mut rows = CsvRows::new(path, text, COLUMNS)?;
    let mut imported = Imported { format: WorkloadFormat::Philly, ..Imported::default() };
    let mut entries = Vec::new();
    while let Some(row) = rows.next(COLUMNS) {
        let entry = row.and_then(|row| {
            let read = entry(&row, &mut imported);
            read.map_err(|problem| (row.line, problem))
        });
        match entry {
            Ok(entry) => entries.push(entry),
            Err((line, problem)) => imported.report.refuse(line, problem),
        }
    }
    let earliest = entries.iter().map(|entry| entry.timestamp).min().unwrap_or(0);
    let submitted = |DatedJob { job, timestamp }| JobRow { submit: SimTime::from_secs(timestamp - earliest), ..job };
    imported.jobs = entries.into_iter().map(submitted).collect();
    imported.origin_unix_secs = Some(earliest);
    imported.finish(path)
}

fn entry(row: &CsvRow<'_, '_>, imported: &mut Imported) -> Result<DatedJob, RowProblem> {
    let timestamp = seconds(row.bytes(0)).ok_or_else(|| row.problem(0, "a time as 2017-10-09 07:01:55"))?;
    let duration_secs = row.at_least(1, 0.001, "a duration in seconds above 0")?;
    let gpus = row.count(2)?;
    let gpu_secs = row.float(3, "GPU-seconds");
    let tenant = row.text(4)?.to_owned();
    let expected = duration_secs * f64::from(gpus);
    if !gpu_secs.is_ok_and(|gpu_secs| (gpu_secs - expected).abs() <= 1e-6 * expected) {
        let what = format!(
            "gpu_time {} is not duration x num_gpus = {expected}: ignored",
            crate::csv_rows::excerpt(row.bytes(3))
        );
        imported.report.repair("gpu_time", row.line, what);
    }
    let job = JobRow {
        line: row.line,
        job_id: format!("philly-{}", row.line),
        submit: SimTime::ZERO,
        duration: Some(SimTime::from_secs_f64(duration_secs)),
        gpus,
        tenant: Some(tenant),
        ..JobRow::default()
    };
    Ok(DatedJob { job, timestamp })
}

/// Seconds since 1970 of `YYYY-MM-DD hh:mm:ss`.
pub(super) fn seconds(text: &[u8]) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
    };
    let separated = text.len() == 19
        && text[4] == b'-'
        && text[7] == b'-'
        && matches!(text[10], b' ' | b'T')
        && text[13] == b':'
        && text[16] == b':';
    if !separated {
        return None;
    }
    // Four digits and two digits fit into these types, whatever they are.
    let date = DateTime::new(number(0, 4)? as i16, number(5, 7)? as i8, number(8, 10)? as i8, 0, 0, 0, 0).ok()?;
    let days = date.date().since((jiff::Unit::Day, jiff::civil::date(1970, 1, 1))).ok()?.get_days();
    let (hours, minutes, secs) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    (hours < 24 && minutes < 60 && secs < 60).then(|| i64::from(days) * 86_400 + hours * 3600 + minutes * 60 + secs)
}
