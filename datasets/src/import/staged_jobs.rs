//! Shockwave's traces ([`super::shockwave`]) as jobs that change their batch size by epoch, over measured speeds.
//!
//! The mode of a row says how the batch size changes ([`super::batch_schedules`]). The duration is that at the first
//! batch size, and is not used: speeds stand in a file of their own.

use std::sync::Arc;

use goodput_env::job::{BatchStage, Elasticity, JobClass, JobRequest, JobSpec, Work, Workload};
use goodput_env::time::SimTime;

use super::batch_schedules::{BatchMode, BatchSchedule, MODELS, Regimes};
use super::gavel::{GavelTrace, fastest, number};
use super::shockwave::FIELDS;
use crate::csv_rows::excerpt;
use crate::error::RowProblem;

/// Most epochs of a job. The published traces have some hundreds, and the batch size of each epoch is looked up.
const MOST_EPOCHS: f64 = 1e6;

/// Jobs and classes of a trace while it is read.
pub(super) struct ShockwaveReader<'a> {
    measured: &'a [JobClass],
    classes: Vec<Arc<JobClass>>,
    jobs: Vec<JobSpec>,
}

impl<'a> ShockwaveReader<'a> {
    /// A reader over `measured` classes.
    pub(super) fn new(measured: &'a [JobClass]) -> Self {
        Self { measured, classes: Vec::new(), jobs: Vec::new() }
    }

    /// Reads the fields of line `line`.
    pub(super) fn read(&mut self, fields: &[&[u8]], line: u64) -> Result<(), RowProblem> {
        let (request, class, steps) = job(fields, line, self.measured)?;
        let known = self.classes.iter().position(|other| **other == class);
        let Ok(index) = u16::try_from(known.unwrap_or(self.classes.len())) else {
            return Err(RowProblem::Classes { most: usize::from(u16::MAX) + 1 });
        };
        if known.is_none() {
            self.classes.push(Arc::new(class));
        }
        self.jobs.push(JobSpec { request, work: Work::Steps { class: index, steps } });
        Ok(())
    }

    /// The trace that was read.
    pub(super) fn finish(self, mut trace: GavelTrace) -> GavelTrace {
        trace.report.kept = self.jobs.len() as u64;
        trace.workload = Workload::of_classes(self.classes, self.jobs);
        trace
    }
}

/// The fields of line `line` as a job, its class over `measured` ones, and its steps of the first batch size.
pub(super) fn job(
    fields: &[&[u8]],
    line: u64,
    measured: &[JobClass],
) -> Result<(JobRequest, JobClass, f64), RowProblem> {
    if fields.len() != FIELDS.len() {
        return Err(RowProblem::Fields { found: fields.len(), expected: FIELDS.len() });
    }
    let value = |at, column, expected, fits| number(fields, at, column, expected, fits);
    let steps = value(5, "total_steps", "a whole number of at least 1", |n| n >= 1.0 && n.fract() == 0.0)?;
    let size = |n: f64| (1.0..=1e6).contains(&n) && n.fract() == 0.0;
    let gpus = value(6, "scale_factor", "accelerators, at least 1", size)? as u32;
    let weight = value(8, "priority_weight", "a weight from 0.001 to 1e6", |n| (0.001..=1e6).contains(&n))?;
    let slo = value(9, "SLO", "a multiple of the duration, or -1", |n| n < 1e6)?;
    let arrival = value(11, "arrival_time", "seconds of at least 0", |n| (0.0..1e12).contains(&n))?;
    let mode = BatchMode::parse(fields[7])?;
    let kind = String::from_utf8_lossy(fields[0]);
    let schedule = schedule_of(&kind, gpus, mode).ok_or_else(|| RowProblem::Value {
        column: "job_type",
        value: excerpt(fields[0]),
        expected: "a model of Shockwave's traces and its batch size, as in LM (batch size 20)",
    })?;
    if steps > MOST_EPOCHS * f64::from(schedule.steps_per_epoch(schedule.first)) {
        let expected = "steps of at most a million epochs";
        return Err(RowProblem::Value { column: "total_steps", value: excerpt(fields[5]), expected });
    }
    let Some(class) = staged(&schedule, measured, steps) else {
        let of_size = measured.iter().filter(|class| class.gpus == gpus).map(|class| class.name.as_str());
        let known = of_size.collect::<Vec<_>>().join(", ");
        return Err(RowProblem::UnknownClass { name: excerpt(fields[0]), gpus, known });
    };
    let fastest = fastest(&class);
    let deadline = (slo >= 0.0 && fastest > 0.0).then(|| SimTime::from_secs_f64(arrival + slo * steps / fastest));
    let request = JobRequest {
        name: format!("shockwave-{line}"),
        submit: SimTime::from_secs_f64(arrival),
        gpus,
        elasticity: Elasticity::Rigid,
        weight_milli: (weight * 1000.0).round().max(1.0) as u32,
        deadline,
        ..JobRequest::default()
    };
    Ok((request, class, steps))
}

/// Schedule of batch sizes of a job type such as `LM (batch size 20)`; `None` where the model is not of the traces.
pub fn schedule_of(job_type: &str, gpus: u32, mode: BatchMode) -> Option<BatchSchedule> {
    let (name, rest) = job_type.split_once(" (batch size ")?;
    let first = rest.split([')', ',']).next()?.parse().ok().filter(|&first| first > 0)?;
    let model = MODELS.into_iter().find(|model| model.name == name)?;
    Some(BatchSchedule { model, first, gpus, mode })
}

/// Class of jobs with this schedule that do `steps` steps of the first batch size; `None` where the first batch size
/// was not measured. A batch size that was not measured is not changed to, as in the artifact.
fn staged(schedule: &BatchSchedule, measured: &[JobClass], steps: f64) -> Option<JobClass> {
    let of_batch = |batch: u32| {
        let name = format!("{} (batch size {batch})", schedule.model.name);
        measured.iter().find(|class| class.gpus == schedule.gpus && class.name == name)
    };
    let first = of_batch(schedule.first)?;
    let per_epoch = f64::from(schedule.steps_per_epoch(schedule.first));
    let epochs = (steps / per_epoch).ceil() as u32;
    let mut later: Vec<BatchStage> = Vec::new();
    let mut before = schedule.first;
    for epoch in 1..epochs {
        let batch = schedule.batch(epoch, epochs, Regimes::Simulated);
        if batch == before {
            continue;
        }
        let Some(class) = of_batch(batch) else { continue };
        before = batch;
        later.push(BatchStage {
            begins: f64::from(epoch) * per_epoch,
            step_work: per_epoch / f64::from(schedule.steps_per_epoch(batch)),
            steps_per_sec: class.steps_per_sec.clone(),
        });
    }
    let mode = match schedule.mode {
        BatchMode::Static => String::new(),
        changing => format!(", {}", changing.name()),
    };
    Some(JobClass {
        name: format!("{} (batch size {}{mode})", schedule.model.name, schedule.first),
        gpus: schedule.gpus,
        steps_per_sec: first.steps_per_sec.clone(),
        later,
        steps_per_epoch: Some(per_epoch),
        ..JobClass::default()
    })
}
