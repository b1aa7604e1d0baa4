//! Pods of Alibaba's GPU-sharing cluster ([`super::openb`]) as jobs: a full list of pods has their times.
//!
//! A job holds what its pod asked for, from the pod's creation on, for as long as the pod ran. A part of an accelerator
//! becomes compute in whole percent, rounded up; the trace does not tell device memory. Types, processors and memory of
//! the host are not simulated. A pod on processors only, or one that never ran, is no job and is refused.

use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;

use super::{Body, Clock, Csv, ReadRow, RowFormat, WorkloadFormat};
use crate::csv_rows::CsvRow;
use crate::error::RowProblem;
use crate::jobs::JobRow;

/// Columns that are read of a full list of pods.
pub const COLUMNS: &[&str] = &["name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"];

/// The format as one job a row.
pub(super) const ROWS: RowFormat = RowFormat {
    format: WorkloadFormat::Openb,
    clock: Clock::Start,
    body: Body::Csv(Csv { columns: COLUMNS, required: COLUMNS.len(), delimiter: b',', job }),
};

fn job(row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
    if row.bytes(1) == b"0" {
        return Err(row.problem(1, "at least 1: a pod on processors only is not simulated"));
    }
    if row.bytes(5).is_empty() {
        return Err(row.problem(5, "a time: a pod that never ran has no duration"));
    }
    let gpus = row.count(1)?;
    let milli = row.count(2)?;
    let time = |column| row.at_least(column, 0.0, "a time in seconds of at least 0");
    let (creation, deletion, scheduled) = (time(3)?, time(4)?, time(5)?);
    if deletion <= scheduled {
        return Err(row.problem(4, "a time after scheduled_time"));
    }
    let share = match (gpus, milli) {
        (1, 1..1000) => Some(ShareRequest { compute_percent: milli.div_ceil(10), memory_mib: 0 }),
        (_, 1000) => None,
        _ => return Err(row.problem(2, "1 to 1000, and 1000 of each of several accelerators")),
    };
    Ok(JobRow {
        line: row.line,
        job_id: row.text(0)?.to_owned(),
        submit: SimTime::from_secs_f64(creation),
        duration: Some(SimTime::from_secs_f64(deletion - scheduled)),
        gpus,
        share,
        ..JobRow::default()
    }
    .into())
}
