//! Traces of Gavel and of Shockwave as rows of the job table, line by line, over the speeds of a file of throughputs.
//!
//! A job lasts as long as its steps take alone on the fastest type that was measured. A Shockwave job that changes its
//! batch size runs at the speed of each batch size in turn ([`super::staged_jobs`]). A line that cannot be used is
//! refused.

use std::path::Path;

use goodput_env::job::JobClass;
use goodput_env::time::SimTime;

use super::{Body, Clock, Row, RowFormat, TraceSource, WorkloadFormat, gavel, shockwave, staged_jobs};
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Lines of a trace over measured speeds.
#[derive(Clone, Debug)]
pub(crate) struct StepRows {
    measured: Vec<JobClass>,
    /// Whether the trace is one of Shockwave's.
    staged: bool,
}

impl RowFormat {
    /// The format of a trace that counts its jobs in steps, over the speeds of a file of throughputs. Its first line
    /// tells by the number of fields whether it is one of Shockwave's.
    ///
    /// # Errors
    /// Where a file cannot be read, or that of throughputs is not of its format.
    pub(crate) fn of_steps(trace: &TraceSource<'_>, throughputs: &Path) -> Result<Self, DataError> {
        let head = trace.head()?;
        let first = head.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty());
        let staged = first.is_some_and(|line| gavel::fields(line).len() == shockwave::FIELDS.len());
        let format = if staged { WorkloadFormat::Shockwave } else { WorkloadFormat::Gavel };
        let rows = StepRows { measured: gavel::read_speeds(throughputs)?, staged };
        Ok(Self { format, clock: Clock::Start, body: Body::Steps(rows.into()) })
    }
}

impl StepRows {
    /// The job of a line; `None` for a blank one.
    pub(super) fn row(&self, line: u64, text: &[u8]) -> Option<Row> {
        (!text.is_empty()).then(|| self.job(line, text).map(Into::into).map_err(|problem| (line, problem)))
    }

    fn job(&self, line: u64, text: &[u8]) -> Result<JobRow, RowProblem> {
        let fields = gavel::fields(text);
        let (request, secs, steps) = if self.staged {
            let (request, class, steps) = staged_jobs::job(&fields, line, &self.measured)?;
            (request, secs_alone(&class, steps), steps)
        } else {
            let (request, class, steps) = gavel::job(&fields, line, &self.measured)?;
            (request, secs_alone(&self.measured[class], steps), steps)
        };
        if !(0.001..1e12).contains(&secs) {
            let expected = "steps of a type with a measured speed";
            return Err(RowProblem::Value { column: "total_steps", value: steps.to_string(), expected });
        }
        let application = String::from_utf8_lossy(fields[0]).into_owned();
        Ok(JobRow {
            line,
            job_id: request.name,
            submit: request.submit,
            duration: Some(SimTime::from_secs_f64(secs)),
            gpus: request.gpus,
            batch_size: shockwave::batch_size(&application),
            application: Some(application),
            weight_milli: Some(request.weight_milli),
            deadline: request.deadline,
            ..JobRow::default()
        })
    }
}

/// Seconds that `steps` steps of the first batch size take alone on the fastest type; infinite where none was measured.
fn secs_alone(class: &JobClass, steps: f64) -> f64 {
    let on = |kind: &str| {
        let stage = |stage: usize| {
            let begins = if stage == 0 { 0.0 } else { class.stage_end(stage - 1) };
            let work = class.stage_end(stage).min(steps) - begins;
            class.work_per_sec(stage, kind).map_or(f64::INFINITY, |speed| work / speed)
        };
        (0..class.stages()).map(stage).sum::<f64>()
    };
    class.steps_per_sec.keys().map(|kind| on(kind)).fold(f64::INFINITY, f64::min)
}
