//! Standard Workload Format of the Parallel Workloads Archive (Chapin et al., JSSPP 1999): a job a line in 18 numbers
//! between blanks, and comments after `;`. A number of -1 is missing.
//!
//! Processors become accelerators: the larger of the allocated and the requested number. The requested time becomes the
//! time limit. A job is rigid, and its user becomes its tenant. A line without a run time or without processors is
//! refused, as the archive has them for jobs that were cancelled before they ran.

use std::path::Path;

use goodput_env::time::SimTime;

use super::{Body, Clock, Imported, Row, RowFormat, WorkloadFormat};
use crate::csv_rows::excerpt;
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Names of the 18 fields.
pub const FIELDS: [&str; 18] = [
    "job",
    "submit",
    "wait",
    "run",
    "allocated_processors",
    "cpu",
    "memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
];

/// Whether the first line that is no comment has 18 numbers, or there are comments alone before it.
pub fn recognises(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let job = lines.find(|line| !line.starts_with(b";"));
    job.is_some_and(|line| fields(line).is_ok())
}

/// The format as one job a line.
pub(super) const ROWS: RowFormat =
    RowFormat { format: WorkloadFormat::Swf, clock: Clock::Start, body: Body::Lines(row) };

/// Reads the text of a file; `path` is for messages.
///
/// # Errors
/// Where there is no job at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    ROWS.parse(path, text)
}

fn row(line: u64, text: &[u8]) -> Option<Row> {
    let comment = text.is_empty() || text.starts_with(b";");
    let job = || fields(text).and_then(|fields| job(line, &fields)).map(Into::into).map_err(|problem| (line, problem));
    (!comment).then(job)
}

fn fields(line: &[u8]) -> Result<[f64; 18], RowProblem> {
    let texts: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|text| !text.is_empty()).collect();
    if texts.len() != FIELDS.len() {
        return Err(RowProblem::Fields { found: texts.len(), expected: FIELDS.len() });
    }
    let mut values = [0.0; 18];
    for ((value, text), column) in values.iter_mut().zip(texts).zip(FIELDS) {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        *value = number.filter(|number: &f64| number.is_finite()).ok_or_else(|| RowProblem::Value {
            column,
            value: excerpt(text),
            expected: "a number",
        })?;
    }
    Ok(values)
}

fn job(line: u64, fields: &[f64; 18]) -> Result<JobRow, RowProblem> {
    let [number, submit, _, run, allocated, _, _, requested, limit, .., user, _, _, _, _, _, _] = *fields;
    let refused = |column, value: f64, expected| RowProblem::Value { column, value: value.to_string(), expected };
    if !(0.0..1e12).contains(&submit) {
        return Err(refused("submit", submit, "a time in seconds of at least 0"));
    }
    if !(0.001..1e12).contains(&run) {
        return Err(refused("run", run, "a run time in seconds above 0"));
    }
    let processors = allocated.max(requested);
    if processors.fract() != 0.0 || !(1.0..=f64::from(u32::MAX)).contains(&processors) {
        return Err(refused("allocated_processors", processors, "a whole number of at least 1"));
    }
    Ok(JobRow {
        line,
        job_id: number.to_string(),
        submit: SimTime::from_secs_f64(submit),
        duration: Some(SimTime::from_secs_f64(run)),
        gpus: processors as u32,
        limit: (limit > 0.0).then(|| SimTime::from_secs_f64(limit)),
        tenant: (user > 0.0).then(|| format!("user-{user}")),
        ..JobRow::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "; Version: 2.2\n; UnixStartTime: 820454400\n\n\
        1 0 5 100 4 -1 -1 8 3600 -1 1 7 1 1 1 -1 -1 -1\n\
        2 10 -1 -1 -1 -1 -1 2 60 -1 5 7 1 1 1 -1 -1 -1\n\
        3 20 0 30.5 2 -1 -1 -1 -1 -1 1 -1 1 1 1 -1 -1 -1\n\
        3 30 0 1 2 -1 -1 -1 -1 -1 1 -1 1 1 1 -1 -1 -1\n\
        4 30 0 1 2\n";

    #[test]
    fn lines_become_jobs_and_those_that_never_ran_are_refused() {
        assert!(recognises(TEXT.as_bytes()) && !recognises(b"; only a comment\n") && !recognises(b"a,b\n1,2\n"));
        let imported = parse(Path::new("t.swf"), TEXT.as_bytes()).unwrap();
        let seen: Vec<_> = imported
            .jobs
            .iter()
            .map(|job| (job.job_id.as_str(), job.gpus, job.duration.unwrap(), job.limit, job.tenant.as_deref()))
            .collect();
        let secs = SimTime::from_secs_f64;
        assert_eq!(seen, [("1", 8, secs(100.0), Some(secs(3600.0)), Some("user-7")), ("3", 2, secs(30.5), None, None)]);
        let lines: Vec<_> = imported.report.refused.examples.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [5, 7, 8]);
    }
}
