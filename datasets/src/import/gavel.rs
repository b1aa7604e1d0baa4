//! Gavel's traces: tab-separated, ten fields, no header, jobs counted in steps.
//!
//! Job type, command, working directory, argument for steps, whether data are needed, steps,
//! accelerators, weight, deadline as a multiple of the duration (-1: none), arrival in seconds. The
//! speed of a job stands in another file ([`super::gavel_throughputs`]), so the two are read
//! together. A trace with twelve fields a row is one of Shockwave's ([`super::shockwave`]).

use std::path::Path;
use std::sync::Arc;

use goodput_env::job::{Elasticity, JobClass, JobRequest, JobSpec, Work, Workload};
use goodput_env::time::SimTime;

use super::ImportReport;
use super::shockwave;
use super::source::TraceSource;
use super::staged_jobs::ShockwaveReader;
use crate::csv_rows::excerpt;
use crate::error::{DataError, RowProblem};

/// Fields of a row.
const FIELDS: usize = 10;

/// A trace ready to simulate.
#[derive(Clone, Debug, Default)]
pub struct GavelTrace {
    /// Jobs in order of arrival over the classes that occur.
    pub workload: Workload,
    /// Report of the rows.
    pub report: ImportReport,
}

/// Reads a trace over the classes of a file of throughputs. Strict: a row that cannot be used is an error.
///
/// # Errors
/// Where a file cannot be read, and at the first bad row.
pub fn read(trace: &Path, throughputs: &Path) -> Result<Workload, DataError> {
    let classes = read_speeds(throughputs)?;
    let parsed = parse(trace, &TraceSource::at(trace)?.plain()?, &classes)?;
    match parsed.report.refused.examples.into_iter().min_by_key(|(line, _)| *line) {
        Some((line, problem)) => Err(DataError::Row { path: trace.to_owned(), line, problem }),
        None => Ok(parsed.workload),
    }
}

/// Whether a line is one of such a trace.
pub fn recognises(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    fields.len() == FIELDS && fields[0].ends_with(b")")
}

/// Reads the classes of a file of throughputs.
///
/// # Errors
/// Where the file cannot be read or is not of this format.
pub fn read_speeds(throughputs: &Path) -> Result<Vec<JobClass>, DataError> {
    super::gavel_throughputs::parse(throughputs, &TraceSource::at(throughputs)?.plain()?)
}

/// Reads the bytes of a trace over `classes`; `path` is for messages. A job is named after its
/// line. A deadline is a multiple of the time that the job takes alone on the class's fastest type,
/// after its arrival.
///
/// # Errors
/// Where there is no row at all.
pub fn parse(path: &Path, text: &[u8], classes: &[JobClass]) -> Result<GavelTrace, DataError> {
    let mut trace = GavelTrace::default();
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    let rows: Vec<(u64, Vec<&[u8]>)> = lines
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(at, line)| (at as u64 + 1, fields(line.strip_suffix(b"\r").unwrap_or(line))))
        .collect();
    let Some((_, first)) = rows.first() else { return Err(DataError::Empty { path: path.to_owned() }) };
    if first.len() == shockwave::FIELDS.len() {
        let mut reader = ShockwaveReader::new(classes);
        for (line, fields) in &rows {
            reader.read(fields, *line).unwrap_or_else(|problem| trace.report.refuse(*line, problem));
        }
        return Ok(reader.finish(trace));
    }
    let mut used: Vec<usize> = Vec::new();
    let mut jobs = Vec::new();
    for (line, fields) in &rows {
        match job(fields, *line, classes) {
            Ok((request, class, steps)) => {
                let index = used.iter().position(|&other| other == class).unwrap_or_else(|| {
                    used.push(class);
                    used.len() - 1
                });
                jobs.push(JobSpec { request, work: Work::Steps { class: index as u16, steps } });
            }
            Err(problem) => trace.report.refuse(*line, problem),
        }
    }
    trace.report.kept = jobs.len() as u64;
    let classes = used.into_iter().map(|class| Arc::new(classes[class].clone())).collect();
    trace.workload = Workload::of_classes(classes, jobs);
    Ok(trace)
}

/// Fields of a line.
pub(super) fn fields(line: &[u8]) -> Vec<&[u8]> {
    line.split(|&byte| byte == b'\t').map(<[u8]>::trim_ascii).collect()
}

/// Number in field `at`.
pub(super) fn number(
    fields: &[&[u8]],
    at: usize,
    column: &'static str,
    expected: &'static str,
    fits: fn(f64) -> bool,
) -> Result<f64, RowProblem> {
    let number = std::str::from_utf8(fields[at]).ok().and_then(|text| text.parse().ok());
    let wrong = || RowProblem::Value { column, value: excerpt(fields[at]), expected };
    number.filter(|&number: &f64| number.is_finite() && fits(number)).ok_or_else(wrong)
}

/// Steps a second on the fastest type; 0 where none was measured.
pub(super) fn fastest(class: &JobClass) -> f64 {
    class.steps_per_sec.values().copied().fold(0.0, f64::max)
}

/// A line as a job, its class by position in `classes`, and its steps.
pub(super) fn job(fields: &[&[u8]], line: u64, classes: &[JobClass]) -> Result<(JobRequest, usize, f64), RowProblem> {
    if fields.len() != FIELDS {
        return Err(RowProblem::Fields { found: fields.len(), expected: FIELDS });
    }
    let value = |at, column, expected, fits| number(fields, at, column, expected, fits);
    let steps = value(5, "total_steps", "a whole number of at least 1", |n| n >= 1.0 && n.fract() == 0.0)?;
    let gpus = value(6, "scale_factor", "accelerators, at least 1", |n| (1.0..=1e6).contains(&n) && n.fract() == 0.0)?;
    let weight = value(7, "priority_weight", "a weight from 0.001 to 1e6", |n| (0.001..=1e6).contains(&n))?;
    let slo = value(8, "SLO", "a multiple of the duration, or -1", |n| n < 1e6)?;
    let arrival = value(9, "arrival_time", "seconds of at least 0", |n| (0.0..1e12).contains(&n))?;
    let gpus = gpus as u32;
    let known = |class: &JobClass| class.gpus == gpus && class.name.as_bytes() == fields[0];
    let Some(class) = classes.iter().position(known) else {
        let of_size = classes.iter().filter(|class| class.gpus == gpus).map(|class| class.name.as_str());
        let known = of_size.collect::<Vec<_>>().join(", ");
        return Err(RowProblem::UnknownClass { name: excerpt(fields[0]), gpus, known });
    };
    let fastest = fastest(&classes[class]);
    let deadline = (slo >= 0.0 && fastest > 0.0).then(|| SimTime::from_secs_f64(arrival + slo * steps / fastest));
    let request = JobRequest {
        name: format!("gavel-{line}"),
        tenant: 0,
        submit: SimTime::from_secs_f64(arrival),
        gpus,
        batch_size: None,
        elasticity: Elasticity::Rigid,
        weight_milli: (weight * 1000.0).round().max(1.0) as u32,
        deadline,
        ..JobRequest::default()
    };
    Ok((request, class, steps))
}
