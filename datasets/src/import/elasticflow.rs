//! Traces of ten Microsoft clusters that ElasticFlow was evaluated on (Gu et al., ASPLOS'23;
//! microsoft/elasticflow-traces, MIT):
//! `job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration`, whole seconds.
//!
//! A job lasts `duration` on `num_gpu` accelerators, and is rigid: the trace does not tell the speed at other sizes.
//! The deadline is a time on the clock of `submission_time`, which starts anywhere; submission counts from the first
//! job. The model and the deadline were given to the jobs by the authors, so a model is called `elasticflow-MODEL`: it
//! is not the application of the catalog that has its name, nor as long. `num_iteration` is the duration in another
//! unit.

use goodput_env::time::SimTime;

use super::{Body, Clock, Csv, ReadRow, RowFormat, WorkloadFormat};
use crate::csv_rows::CsvRow;
use crate::error::RowProblem;
use crate::jobs::JobRow;

/// Columns that are read, the required ones first.
pub const COLUMNS: &[&str] =
    &["job_id", "submission_time", "num_gpu", "duration", "model_name", "deadline", "batch_size", "num_iteration"];

/// The format as one job a row.
pub(super) const ROWS: RowFormat = RowFormat {
    format: WorkloadFormat::ElasticFlow,
    clock: Clock::Earliest,
    body: Body::Csv(Csv { columns: COLUMNS, required: 7, delimiter: b',', job }),
};

fn job(row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
    let submit = row.at_least(1, 0.0, "a time in seconds of at least 0")?;
    let deadline = match row.bytes(5) {
        b"" => None,
        _ => Some(row.at_least(5, submit, "a time in seconds after submission_time, or nothing")?),
    };
    Ok(JobRow {
        line: row.line,
        job_id: row.text(0)?.to_owned(),
        submit: SimTime::from_secs_f64(submit),
        duration: Some(SimTime::from_secs_f64(row.at_least(3, 0.001, "a duration in seconds above 0")?)),
        gpus: row.count(2)?,
        application: Some(format!("elasticflow-{}", row.text(4)?)),
        batch_size: Some(row.count(6)?),
        deadline: deadline.map(SimTime::from_secs_f64),
        ..JobRow::default()
    }
    .into())
}
