//! Traces of Shockwave (Zheng et al., NSDI'23; uw-mad-dash/shockwave, `scheduler/traces`, MIT): tab-separated, twelve
//! fields, no header.
//!
//! They are Gavel's ([`super::gavel`]) with two fields more: after the accelerators, the way in which the batch size
//! changes (`static`, `accordion` or `gns`), and after the deadline, the duration in seconds on the accelerators that
//! the job asks for. A job is rigid and lasts that long, and is named after its line.
//!
//! The duration is that of all steps at the first batch size: in the published traces it is the number of steps over
//! the speed at that size. The row of a job that changes its batch size is therefore reported as a repair: the job
//! table has no such mode. Over a file of throughputs the changes count (`step_rows`).

use goodput_env::time::SimTime;

use super::batch_schedules::BatchMode;
use super::gavel::{fields, number};
use super::{Body, Clock, ReadRow, Repair, Row, RowFormat, WorkloadFormat};
use crate::error::RowProblem;
use crate::jobs::JobRow;

/// Fields of a row.
pub const FIELDS: [&str; 12] = [
    "job_type",
    "command",
    "working_directory",
    "num_steps_arg",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
    "mode",
    "priority_weight",
    "SLO",
    "duration",
    "arrival_time",
];

/// The format as one job a line.
pub(super) const ROWS: RowFormat =
    RowFormat { format: WorkloadFormat::Shockwave, clock: Clock::Start, body: Body::Lines(row) };

/// Whether a line has these fields.
pub(super) fn recognises(line: &[u8]) -> bool {
    let fields = fields(line);
    fields.len() == FIELDS.len() && BatchMode::parse(fields[7]).is_ok()
}

fn row(line: u64, text: &[u8]) -> Option<Row> {
    (!text.is_empty()).then(|| job(line, &fields(text)).map_err(|problem| (line, problem)))
}

fn job(line: u64, fields: &[&[u8]]) -> Result<ReadRow, RowProblem> {
    if fields.len() != FIELDS.len() {
        return Err(RowProblem::Fields { found: fields.len(), expected: FIELDS.len() });
    }
    let value = |at: usize, expected, fits| number(fields, at, FIELDS[at], expected, fits);
    let gpus = value(6, "accelerators, at least 1", |n| (1.0..=1e6).contains(&n) && n.fract() == 0.0)?;
    let weight = value(8, "a weight from 0.001 to 1e6", |n| (0.001..=1e6).contains(&n))?;
    let slo = value(9, "a multiple of the duration, or -1", |n| n < 1e6)?;
    let duration = value(10, "a duration in seconds above 0", |n| (0.001..1e12).contains(&n))?;
    let arrival = value(11, "seconds of at least 0", |n| (0.0..1e12).contains(&n))?;
    let name = String::from_utf8_lossy(fields[0]);
    let mode = BatchMode::parse(fields[7])?;
    let first_batch = || Repair {
        kind: "mode",
        what: format!("mode {} is not kept: the duration is that of all steps at the first batch size", mode.name()),
    };
    let job = JobRow {
        line,
        job_id: format!("shockwave-{line}"),
        submit: SimTime::from_secs_f64(arrival),
        duration: Some(SimTime::from_secs_f64(duration)),
        gpus: gpus as u32,
        batch_size: batch_size(&name),
        application: Some(name.into_owned()).filter(|name| !name.is_empty()),
        weight_milli: Some((weight * 1000.0).round() as u32),
        deadline: (slo >= 0.0).then(|| SimTime::from_secs_f64(arrival + slo * duration)),
        ..JobRow::default()
    };
    Ok(ReadRow { job, repairs: (mode != BatchMode::Static).then(first_batch).into_iter().collect() })
}

/// Batch size of a type of job as `ResNet-18 (batch size 32)`.
pub(super) fn batch_size(name: &str) -> Option<u32> {
    name.split_once("(batch size ")?.1.strip_suffix(')')?.parse().ok().filter(|size| *size > 0)
}
