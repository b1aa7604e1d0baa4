//! Trace of Alibaba's PAI (Weng et al., NSDI'22; alibaba/clusterdata, `cluster-trace-gpu-v2020`): `pai_task_table.csv`,
//! and `pai_job_table.csv` beside it, both without a header. A header that was put before the rows is passed over.
//!
//! | table | fields |
//! |---|---|
//! | tasks | `job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type` |
//! | jobs | `job_name,inst_id,user,status,start_time,end_time` |
//!
//! A job is submitted at the `start_time` of its row in the table of jobs, and lasts from the first start of its tasks
//! to their last end. It is rigid, and its user is its tenant. `plan_gpu` is in percent of an accelerator for each of
//! `inst_num` instances. A single instance with less than a whole one becomes a part of an accelerator. Other parts are
//! added up to whole accelerators, rounded up, which is reported as a repair: the instances of a job hold parts of
//! different cards, and a job of ours does not. The type of the accelerator, processors and memory are not simulated.
//!
//! A job without accelerators, or without an end, is refused with its line in the table of jobs. The sums over the
//! tasks are held in parts of the jobs (`job_parts`), about a hundred bytes a job.

use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;

use super::job_parts::{JobParts, MOST_HELD, key};
use super::pieces::Pieces;
use super::rows::Each;
use super::{Body, Clock, ReadRow, Repair, RowFormat, TraceSource, WorkloadFormat};
use crate::csv_rows::excerpt;
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Fields of the table of tasks.
pub const FIELDS: [&str; 10] = [
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
];

/// Name of the table of jobs.
const JOBS: &str = "pai_job_table.csv";

/// Fields of the table of jobs.
const JOB_FIELDS: [&str; 6] = ["job_name", "inst_id", "user", "status", "start_time", "end_time"];

/// Words of the column `status`.
const STATUS: [&[u8]; 5] = [b"Running", b"Terminated", b"Failed", b"Waiting", b"status"];

/// The format as two tables.
pub(super) const ROWS: RowFormat =
    RowFormat { format: WorkloadFormat::Pai, clock: Clock::Earliest, body: Body::Text(read) };

/// Whether a line is one of the table of tasks, or of the table of jobs, which is half of a trace.
pub(super) fn recognises(line: &[u8]) -> bool {
    let fields = fields(line);
    [FIELDS.len(), JOB_FIELDS.len()].contains(&fields.len()) && STATUS.contains(&fields[3])
}

fn fields(line: &[u8]) -> Vec<&[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect()
}

/// Sums over the tasks of a job.
#[derive(Debug)]
struct Tasks {
    start: f64,
    /// Last end; `None` where a task has none.
    end: Option<f64>,
    /// Percent of an accelerator of all instances.
    percent: f64,
    instances: f64,
    /// Whether every instance holds whole accelerators.
    whole: bool,
}

/// Sums over the tasks of the jobs, or what is wrong with the first faulty task of a job.
type JobTasks = JobParts<Result<Tasks, Box<RowProblem>>>;

fn read(source: &TraceSource<'_>, each: Each<'_>) -> Result<(), DataError> {
    read_parts(source, each, MOST_HELD)
}

/// Reads both tables, while the sums of `most` jobs are held at once.
pub(super) fn read_parts(source: &TraceSource<'_>, each: Each<'_>, most: usize) -> Result<(), DataError> {
    let path = source.path();
    let jobs_path = path.with_file_name(JOBS);
    let incomplete = |what: &str| DataError::Incomplete {
        path: path.to_owned(),
        what: what.to_owned(),
        remedy: "put pai_task_table.csv and pai_job_table.csv into one folder, and name the table of tasks",
    };
    if path.file_name() == jobs_path.file_name() {
        return Err(incomplete("the table of jobs does not tell their accelerators"));
    }
    if !jobs_path.is_file() {
        return Err(incomplete("pai_job_table.csv is not beside the table of tasks"));
    }
    let mut tasks: JobTasks = JobParts::first(most);
    loop {
        Pieces::new(path, source.text()?).lines(|_, line| {
            row(line).into_iter().for_each(|fields| add(&mut tasks, &fields));
            Ok(())
        })?;
        let jobs = TraceSource::File(&jobs_path).text()?;
        Pieces::new(&jobs_path, jobs).lines(|number, line| {
            let Some(fields) = row(line) else { return Ok(()) };
            let key = key(fields[0]);
            if !tasks.has(key) {
                return Ok(());
            }
            each(job(number, &fields, tasks.get(key)).map_err(|problem| (number, problem)))
        })?;
        if !tasks.next_part() {
            return Ok(());
        }
    }
}

/// Fields of a row; `None` for a blank line and for a header.
fn row(line: &[u8]) -> Option<Vec<&[u8]>> {
    let fields = fields(line);
    (!line.is_empty() && fields[0] != b"job_name").then_some(fields)
}

/// Adds a task to the sums of its job. The first faulty task of a job is the problem of the job.
fn add(tasks: &mut JobTasks, fields: &[&[u8]]) {
    tasks.change(key(fields[0]), |known| {
        let task = task(fields).map_err(Box::new);
        let Some(known) = known else { return Some(task) };
        match (&mut *known, task) {
            (Ok(sums), Ok(task)) => {
                sums.start = sums.start.min(task.start);
                sums.end = sums.end.zip(task.end).map(|(end, other)| end.max(other));
                sums.percent += task.percent;
                // Instances without accelerators, such as parameter servers, hold no part of one.
                sums.instances += if task.percent > 0.0 { task.instances } else { 0.0 };
                sums.whole &= task.whole;
            }
            (Ok(_), Err(problem)) => *known = Err(problem),
            (Err(_), _) => {}
        }
        None
    });
}

fn task(fields: &[&[u8]]) -> Result<Tasks, RowProblem> {
    if fields.len() != FIELDS.len() {
        return Err(RowProblem::Fields { found: fields.len(), expected: FIELDS.len() });
    }
    let value = |at: usize, expected| number(fields, at, FIELDS[at], expected);
    let instances = value(2, "instances, at least 1")?.filter(|count| (1.0..=1e6).contains(count));
    let instances = instances.ok_or_else(|| problem(fields, 2, FIELDS[2], "instances, at least 1"))?;
    let start = value(4, "seconds, or nothing")?.filter(|secs| *secs > 0.0);
    let each = value(8, "percent of an accelerator, or nothing")?.unwrap_or(0.0);
    if !(0.0..=1e6).contains(&each) {
        return Err(problem(fields, 8, FIELDS[8], "percent of an accelerator, or nothing"));
    }
    Ok(Tasks {
        start: start.unwrap_or(f64::INFINITY),
        end: value(5, "seconds, or nothing")?.filter(|secs| *secs > 0.0),
        percent: each * instances,
        instances: if each > 0.0 { instances } else { 0.0 },
        whole: each % 100.0 == 0.0,
    })
}

fn job(line: u64, fields: &[&[u8]], tasks: Option<&Result<Tasks, Box<RowProblem>>>) -> Result<ReadRow, RowProblem> {
    if fields.len() != JOB_FIELDS.len() {
        return Err(RowProblem::Fields { found: fields.len(), expected: JOB_FIELDS.len() });
    }
    let missing = |column, expected| RowProblem::Value { column, value: String::new(), expected };
    let text = |at: usize| String::from_utf8_lossy(fields[at]).into_owned();
    let submit = number(fields, 4, JOB_FIELDS[4], "seconds of at least 0")?.filter(|secs| *secs >= 0.0);
    let submit = submit.ok_or_else(|| problem(fields, 4, JOB_FIELDS[4], "seconds of at least 0"))?;
    let known = tasks.ok_or_else(|| missing("job_name", "a task in the table of tasks"))?;
    let sums = known.as_ref().map_err(|problem| RowProblem::clone(problem))?;
    if sums.percent <= 0.0 {
        return Err(missing("plan_gpu", "percent of an accelerator: a job on processors only is not simulated"));
    }
    let end = sums.end.filter(|_| sums.start.is_finite());
    let end = end.ok_or_else(|| missing("end_time", "a time for every task: the job did not end, or never ran"))?;
    if end <= sums.start {
        return Err(missing("end_time", "a time after the start of the tasks"));
    }
    let part = (sums.instances == 1.0 && sums.percent < 100.0)
        .then(|| ShareRequest { compute_percent: sums.percent.ceil() as u32, memory_mib: 0 });
    let gpus = (sums.percent / 100.0).ceil() as u32;
    let rounded = (part.is_none() && !sums.whole).then(|| Repair {
        kind: "plan_gpu",
        what: format!("{} instances hold {} % of an accelerator: {gpus} whole ones", sums.instances, sums.percent),
    });
    let job = JobRow {
        line,
        job_id: text(0),
        submit: SimTime::from_secs_f64(submit),
        duration: Some(SimTime::from_secs_f64(end - sums.start)),
        gpus,
        share: part,
        tenant: Some(text(2)).filter(|user| !user.is_empty()),
        ..JobRow::default()
    };
    Ok(ReadRow { job, repairs: rounded.into_iter().collect() })
}

/// Number of a field; `None` where it is empty.
fn number(
    fields: &[&[u8]],
    at: usize,
    column: &'static str,
    expected: &'static str,
) -> Result<Option<f64>, RowProblem> {
    if fields[at].is_empty() {
        return Ok(None);
    }
    let value = std::str::from_utf8(fields[at]).ok().and_then(|text| text.parse().ok());
    let value = value.filter(|value: &f64| value.is_finite() && *value < 1e12);
    value.map(Some).ok_or_else(|| problem(fields, at, column, expected))
}

fn problem(fields: &[&[u8]], at: usize, column: &'static str, expected: &'static str) -> RowProblem {
    RowProblem::Value { column, value: excerpt(fields[at]), expected }
}
