//! Gavel's traces: tab-separated, ten fields, no header, jobs counted in steps.
//!
//! Job type, command, working directory, argument for steps, whether data are needed, steps,
//! accelerators, weight, deadline as a multiple of the duration (-1: none), arrival in seconds. The
//! speed of a job stands in another file ([`super::gavel_throughputs`]), so the two are read
//! together.

use std::path::Path;
use std::sync::Arc;

use goodput_env::job::{Elasticity, JobClass, JobRequest, JobSpec, Work, Workload};
use goodput_env::time::SimTime;

use super::{ImportReport, Imported, WorkloadFormat};
use crate::csv_rows::excerpt;
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

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
    let bytes = |path: &Path| std::fs::read(path).map_err(DataError::read(path));
    let classes = super::gavel_throughputs::parse(throughputs, &bytes(throughputs)?)?;
    let parsed = parse(trace, &bytes(trace)?, &classes)?;
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

/// Reads a trace as rows of the job table over the speeds of a file of throughputs. A job lasts as long as its steps
/// take alone on the fastest type that was measured; a row that cannot be used is in the report.
///
/// # Errors
/// Where a file cannot be read, or there is no row at all.
pub fn jobs(trace: &Path, throughputs: &Path) -> Result<Imported, DataError> {
    let classes = std::fs::read(throughputs).map_err(DataError::read(throughputs))?;
    let classes = super::gavel_throughputs::parse(throughputs, &classes)?;
    let text = std::fs::read(trace).map_err(DataError::read(trace))?;
    let GavelTrace { workload, report } = parse(trace, &text, &classes)?;
    let mut imported = Imported { report, format: WorkloadFormat::Gavel, ..Imported::default() };
    for JobSpec { request, work } in workload.jobs {
        let Work::Steps { class, steps } = work else { continue };
        let class = &workload.classes[usize::from(class)];
        let line = request.name.rsplit('-').next().and_then(|line| line.parse().ok()).unwrap_or_default();
        let secs = steps / fastest(class);
        if !(0.001..1e12).contains(&secs) {
            let expected = "steps of a type with a measured speed";
            imported
                .report
                .refuse(line, RowProblem::Value { column: "total_steps", value: steps.to_string(), expected });
            continue;
        }
        imported.jobs.push(JobRow {
            line,
            job_id: request.name,
            submit: request.submit,
            duration: Some(SimTime::from_secs_f64(secs)),
            gpus: request.gpus,
            batch_size: super::shockwave::batch_size(&class.name),
            application: Some(class.name.clone()),
            weight_milli: Some(request.weight_milli),
            deadline: request.deadline,
            ..JobRow::default()
        });
    }
    imported.finish(trace)
}

/// Steps per second on the fastest type.
fn fastest(class: &JobClass) -> f64 {
    class.steps_per_sec.values().copied().fold(0.0, f64::max)
}

/// Reads the bytes of a trace over `classes`; `path` is for messages. A job is named after its
/// line. A deadline is a multiple of the time that the job takes alone on the class's fastest type,
/// after its arrival.
///
/// # Errors
/// Where there is no row at all.
pub fn parse(path: &Path, text: &[u8], classes: &[JobClass]) -> Result<GavelTrace, DataError> {
    let mut trace = GavelTrace::default();
    let mut used: Vec<usize> = Vec::new();
    let mut jobs = Vec::new();
    for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            continue;
        }
        match job(line, at as u64 + 1, classes, &mut used) {
            Ok(job) => jobs.push(job),
            Err(problem) => trace.report.refuse(at as u64 + 1, problem),
        }
    }
    if jobs.is_empty() && trace.report.refused.count == 0 {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    trace.report.kept = jobs.len() as u64;
    let classes = used.into_iter().map(|class| Arc::new(classes[class].clone())).collect();
    trace.workload = Workload::of_classes(classes, jobs);
    Ok(trace)
}

fn job(line: &[u8], number: u64, classes: &[JobClass], used: &mut Vec<usize>) -> Result<JobSpec, RowProblem> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').map(<[u8]>::trim_ascii).collect();
    if fields.len() != FIELDS {
        return Err(RowProblem::Fields { found: fields.len(), expected: FIELDS });
    }
    let value = |at: usize, column: &'static str, expected: &'static str, fits: fn(f64) -> bool| {
        let number = std::str::from_utf8(fields[at]).ok().and_then(|text| text.parse().ok());
        let wrong = || RowProblem::Value { column, value: excerpt(fields[at]), expected };
        number.filter(|&number: &f64| number.is_finite() && fits(number)).ok_or_else(wrong)
    };
    let steps = value(5, "total_steps", "a whole number of at least 1", |n| n >= 1.0 && n.fract() == 0.0)?;
    let gpus = value(6, "scale_factor", "accelerators, at least 1", |n| (1.0..=1e6).contains(&n) && n.fract() == 0.0)?;
    let weight = value(7, "priority_weight", "a weight from 0.001 to 1e6", |n| (0.001..=1e6).contains(&n))?;
    let slo = value(8, "SLO", "a multiple of the duration, or -1", |n| n < 1e6)?;
    let arrival = value(9, "arrival_time", "seconds of at least 0", |n| (0.0..1e12).contains(&n))?;
    let gpus = gpus as u32;
    let known = |class: &JobClass| class.name.as_bytes() == fields[0] && class.gpus == gpus;
    let Some(class) = classes.iter().position(known) else {
        let of_size = classes.iter().filter(|class| class.gpus == gpus).map(|class| class.name.as_str());
        let known = of_size.collect::<Vec<_>>().join(", ");
        return Err(RowProblem::UnknownClass { name: excerpt(fields[0]), gpus, known });
    };
    let index = used.iter().position(|&other| other == class).unwrap_or_else(|| {
        used.push(class);
        used.len() - 1
    });
    let fastest = fastest(&classes[class]);
    let deadline = (slo >= 0.0 && fastest > 0.0).then(|| SimTime::from_secs_f64(arrival + slo * steps / fastest));
    let request = JobRequest {
        name: format!("gavel-{number}"),
        tenant: 0,
        submit: SimTime::from_secs_f64(arrival),
        gpus,
        batch_size: None,
        elasticity: Elasticity::Rigid,
        weight_milli: (weight * 1000.0).round().max(1.0) as u32,
        deadline,
        ..JobRequest::default()
    };
    Ok(JobSpec { request, work: Work::Steps { class: index as u16, steps } })
}
