//! Traces of the public Tiresias simulator (SymbioticLab/Tiresias, `simulator/60_job.csv`):
//! `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`, whole seconds.
//!
//! A job lasts `duration` on all of its `num_gpu` accelerators wherever they are. The model decides
//! only where a job wants to be (placement by tensor sizes), so its name is kept beside the
//! duration. `iterations` and `interval` are redundant and ignored, as the simulator does.

use goodput_env::time::SimTime;

use super::{Body, Clock, Csv, ReadRow, RowFormat, WorkloadFormat};
use crate::csv_rows::CsvRow;
use crate::error::RowProblem;
use crate::jobs::JobRow;

/// Columns that make a file a trace of this kind.
pub const COLUMNS: &[&str] = &["job_id", "num_gpu", "submit_time", "model_name", "duration"];

/// The format as one job a row.
pub(super) const ROWS: RowFormat = RowFormat {
    format: WorkloadFormat::Tiresias,
    clock: Clock::Start,
    body: Body::Csv(Csv { columns: COLUMNS, required: COLUMNS.len(), delimiter: b',', job }),
};

fn job(row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
    let model = row.bytes(3);
    Ok(JobRow {
        line: row.line,
        job_id: row.text(0)?.to_owned(),
        submit: SimTime::from_secs_f64(row.at_least(2, 0.0, "a time in seconds of at least 0")?),
        duration: Some(SimTime::from_secs_f64(row.at_least(4, 0.001, "a duration in seconds above 0")?)),
        gpus: row.count(1)?,
        application: if model.is_empty() { None } else { Some(row.text(3)?.to_owned()) },
        ..JobRow::default()
    }
    .into())
}
