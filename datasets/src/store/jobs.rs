//! Job table as Parquet, with the columns [`COLUMNS`].

use std::path::Path;

use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;
use parquet::file::reader::ChunkReader;

use super::schema;
use super::table::{Column, Table, Values};
use crate::error::{DataError, RowProblem};
use crate::import::{Body, Clock, Imported, Row, RowFormat, TraceSource, WorkloadFormat};
use crate::jobs::{JobRow, share_of};

/// Columns of the table, in order.
pub const COLUMNS: &[&str] = &schema::NAMES;

/// Columns that must be there.
pub(super) const REQUIRED: [&str; 3] = ["job_id", "submit_secs", "gpus"];

/// The format as one job a row.
pub(crate) const ROWS: RowFormat = RowFormat { format: WorkloadFormat::Jobs, clock: Clock::Start, body: Body::Parquet };

/// Columns that a table has where one of its jobs has a value for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RareColumns {
    shares: bool,
    limits: bool,
}

impl RareColumns {
    /// Counts a job in.
    pub(crate) fn see(&mut self, job: &JobRow) {
        self.shares |= job.share.is_some();
        self.limits |= job.limit.is_some();
    }
}

/// The canonical table of some jobs.
pub fn table(jobs: &[JobRow]) -> Table {
    let mut rare = RareColumns::default();
    jobs.iter().for_each(|job| rare.see(job));
    table_with(jobs, rare)
}

/// The canonical table of some jobs, with the rare columns that are given.
pub(crate) fn table_with(jobs: &[JobRow], rare: RareColumns) -> Table {
    let secs = |time: SimTime| time.as_secs_f64();
    let float = |get: &dyn Fn(&JobRow) -> Option<f64>| Values::Float64(jobs.iter().map(get).collect());
    let int =
        |get: &dyn Fn(&JobRow) -> Option<u32>| Values::Int64(jobs.iter().map(|job| get(job).map(i64::from)).collect());
    let text = |get: &dyn Fn(&JobRow) -> Option<String>| Values::Utf8(jobs.iter().map(get).collect());
    let mut columns = vec![
        Column::new("job_id", text(&|job| Some(job.job_id.clone()))),
        Column::new("submit_secs", float(&|job| Some(secs(job.submit)))),
        Column::new("duration_secs", float(&|job| job.duration.map(secs))),
        Column::new("gpus", int(&|job| Some(job.gpus))),
        Column::new("gpu_min", int(&|job| job.gpu_min)),
        Column::new("gpu_max", int(&|job| job.gpu_max)),
        Column::new("batch_size", int(&|job| job.batch_size)),
        Column::new("application", text(&|job| job.application.clone())),
        Column::new("work_factor", float(&|job| job.work_milli.map(|work| f64::from(work) / 1000.0))),
        Column::new("tenant", text(&|job| job.tenant.clone())),
        Column::new("priority", Values::Int64(jobs.iter().map(|job| job.priority.map(i64::from)).collect())),
        Column::new("weight", float(&|job| job.weight_milli.map(|weight| f64::from(weight) / 1000.0))),
        Column::new("deadline_secs", float(&|job| job.deadline.map(secs))),
    ];
    if rare.shares {
        columns.push(Column::new("compute_percent", int(&|job| job.share.map(|share| share.compute_percent))));
        columns.push(Column::new("memory_mib", int(&|job| job.share.map(|share| share.memory_mib))));
    }
    if rare.limits {
        columns.push(Column::new("limit_secs", float(&|job| job.limit.map(secs))));
    }
    Table::new(columns)
}

/// Reads the job table from the bytes of a Parquet file; `path` is for messages. Optional columns
/// may be absent. A row with a bad value or a name used before is refused; its "line" is its number
/// from 1.
///
/// # Errors
/// Where it is not Parquet, lacks a required column, has one of another type, or has no rows.
pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Imported, DataError> {
    ROWS.read(&TraceSource::Bytes(path, bytes.into()))
}

/// Shows the rows of the job table to `each`, while some of them are in memory at a time.
pub(crate) fn each(
    path: &Path,
    source: impl ChunkReader + 'static,
    mut each: impl FnMut(Row) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut line = 0;
    Table::batches(path, source, |table| {
        let rows = table.rows();
        let mut columns = JobColumns::of(path, table)?;
        for row in 0..rows {
            line += 1;
            each(columns.job(row, line).map(Into::into).map_err(|problem| (line, problem)))?;
        }
        Ok(())
    })
}

/// Columns as read; an absent one is empty.
struct JobColumns {
    job_id: Vec<Option<String>>,
    submit: Vec<Option<f64>>,
    duration: Vec<Option<f64>>,
    gpus: Vec<Option<f64>>,
    gpu_min: Vec<Option<f64>>,
    gpu_max: Vec<Option<f64>>,
    batch_size: Vec<Option<f64>>,
    application: Vec<Option<String>>,
    work_factor: Vec<Option<f64>>,
    tenant: Vec<Option<String>>,
    priority: Vec<Option<f64>>,
    weight: Vec<Option<f64>>,
    deadline: Vec<Option<f64>>,
    compute_percent: Vec<Option<f64>>,
    memory_mib: Vec<Option<f64>>,
    limit: Vec<Option<f64>>,
}

impl JobColumns {
    fn of(path: &Path, mut table: Table) -> Result<Self, DataError> {
        if let Some(missing) = REQUIRED.iter().find(|name| table.column(name).is_none()) {
            let found = table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(DataError::MissingColumn { path: path.to_owned(), column: (*missing).to_owned(), found });
        }
        Ok(Self {
            job_id: texts(path, &mut table, "job_id")?,
            submit: numbers(path, &mut table, "submit_secs")?,
            duration: numbers(path, &mut table, "duration_secs")?,
            gpus: numbers(path, &mut table, "gpus")?,
            gpu_min: numbers(path, &mut table, "gpu_min")?,
            gpu_max: numbers(path, &mut table, "gpu_max")?,
            batch_size: numbers(path, &mut table, "batch_size")?,
            application: texts(path, &mut table, "application")?,
            work_factor: numbers(path, &mut table, "work_factor")?,
            tenant: texts(path, &mut table, "tenant")?,
            priority: numbers(path, &mut table, "priority")?,
            weight: numbers(path, &mut table, "weight")?,
            deadline: numbers(path, &mut table, "deadline_secs")?,
            compute_percent: numbers(path, &mut table, "compute_percent")?,
            memory_mib: numbers(path, &mut table, "memory_mib")?,
            limit: numbers(path, &mut table, "limit_secs")?,
        })
    }

    /// Job of a row, of which the texts are taken.
    fn job(&mut self, row: usize, line: u64) -> Result<JobRow, RowProblem> {
        Ok(JobRow {
            line,
            job_id: text(&mut self.job_id, row).ok_or_else(|| missing("job_id"))?,
            submit: secs(&self.submit, row, "submit_secs", 0.0)?.ok_or_else(|| missing("submit_secs"))?,
            duration: secs(&self.duration, row, "duration_secs", 0.001)?,
            gpus: count(&self.gpus, row, "gpus")?.ok_or_else(|| missing("gpus"))?,
            gpu_min: count(&self.gpu_min, row, "gpu_min")?,
            gpu_max: count(&self.gpu_max, row, "gpu_max")?,
            batch_size: count(&self.batch_size, row, "batch_size")?,
            application: text(&mut self.application, row),
            work_milli: milli(&self.work_factor, row, "work_factor", "a factor from 0.001 to 1e6")?,
            tenant: text(&mut self.tenant, row),
            priority: priority(&self.priority, row)?,
            weight_milli: milli(&self.weight, row, "weight", "a weight from 0.001 to 1e6")?,
            deadline: secs(&self.deadline, row, "deadline_secs", 0.0)?,
            limit: secs(&self.limit, row, "limit_secs", 0.001)?,
            share: self.share(row)?,
        })
    }

    fn share(&self, row: usize) -> Result<Option<ShareRequest>, RowProblem> {
        let compute_percent = amount(&self.compute_percent, row, "compute_percent")?;
        let memory_mib = amount(&self.memory_mib, row, "memory_mib")?;
        Ok(share_of(compute_percent, memory_mib))
    }
}

fn missing(column: &'static str) -> RowProblem {
    RowProblem::Value { column, value: String::new(), expected: "a value" }
}

fn text(column: &mut [Option<String>], row: usize) -> Option<String> {
    column.get_mut(row).and_then(Option::take).filter(|text| !text.is_empty())
}

fn secs(column: &[Option<f64>], row: usize, name: &'static str, least: f64) -> Result<Option<SimTime>, RowProblem> {
    match column.get(row).copied().flatten() {
        None => Ok(None),
        Some(value) if (least..1e12).contains(&value) => Ok(Some(SimTime::from_secs_f64(value))),
        Some(value) => {
            let expected = if least > 0.0 { "seconds above 0" } else { "seconds of at least 0" };
            Err(RowProblem::Value { column: name, value: value.to_string(), expected })
        }
    }
}

fn count(column: &[Option<f64>], row: usize, name: &'static str) -> Result<Option<u32>, RowProblem> {
    match column.get(row).copied().flatten() {
        None => Ok(None),
        Some(value) if value.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&value) => Ok(Some(value as u32)),
        Some(value) => {
            Err(RowProblem::Value { column: name, value: value.to_string(), expected: "a whole number of at least 1" })
        }
    }
}

fn amount(column: &[Option<f64>], row: usize, name: &'static str) -> Result<Option<u32>, RowProblem> {
    match column.get(row).copied().flatten() {
        Some(0.0) => Ok(Some(0)),
        _ => count(column, row, name),
    }
}

fn priority(column: &[Option<f64>], row: usize) -> Result<Option<i32>, RowProblem> {
    let whole = |value: f64| value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value);
    match column.get(row).copied().flatten() {
        Some(value) if !whole(value) => {
            Err(RowProblem::Value { column: "priority", value: value.to_string(), expected: "a whole number" })
        }
        value => Ok(value.map(|value| value as i32)),
    }
}

fn milli(
    column: &[Option<f64>],
    row: usize,
    name: &'static str,
    expected: &'static str,
) -> Result<Option<u32>, RowProblem> {
    match column.get(row).copied().flatten() {
        Some(value) if !(0.001..=1e6).contains(&value) => {
            Err(RowProblem::Value { column: name, value: value.to_string(), expected })
        }
        value => Ok(value.map(|value| (value * 1000.0).round() as u32)),
    }
}

/// Takes a column out of a table; an absent one is empty.
fn take(table: &mut Table, name: &str) -> Option<Values> {
    let at = table.columns.iter().position(|column| column.name == name)?;
    Some(std::mem::replace(&mut table.columns[at].values, Values::Boolean(Vec::new())))
}

fn texts(path: &Path, table: &mut Table, name: &str) -> Result<Vec<Option<String>>, DataError> {
    match take(table, name) {
        None => Ok(Vec::new()),
        Some(Values::TextChoice(choice)) => Ok(choice.iter().map(|text| text.map(str::to_owned)).collect()),
        Some(Values::Utf8(values)) => Ok(values),
        Some(other) => Err(wrong_type(path, name, "text", &other)),
    }
}

/// Whole numbers count as numbers, so that seconds may be stored as either.
fn numbers(path: &Path, table: &mut Table, name: &str) -> Result<Vec<Option<f64>>, DataError> {
    match take(table, name) {
        None => Ok(Vec::new()),
        Some(Values::Float64(values)) => Ok(values),
        Some(Values::Int64(values)) => Ok(values.iter().map(|value| value.map(|value| value as f64)).collect()),
        Some(other) => Err(wrong_type(path, name, "numbers", &other)),
    }
}

fn wrong_type(path: &Path, name: &str, expected: &str, found: &Values) -> DataError {
    DataError::ColumnType {
        path: path.to_owned(),
        column: name.to_owned(),
        expected: expected.to_owned(),
        found: found.kind().to_owned(),
    }
}
