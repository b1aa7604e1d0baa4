//! Exports of workloads and of schedules to formats of other programs, for `goodput data export`.

pub mod perfetto;
mod schedule;
pub mod swf;

pub use schedule::{HoldingChange, RunChoice, RunSchedule, ScheduledJob};

use crate::catalog::Catalog;
use crate::fit::ideal_secs;
use crate::jobs::JobRow;

/// Jobs of a trace as a schedule without starts. A job of an application of `catalog` lasts as long as its work takes
/// undisturbed on the accelerators that it asks for.
pub fn unscheduled(jobs: &[JobRow], catalog: &Catalog) -> Vec<ScheduledJob> {
    let run_secs = |job: &JobRow| match job.application.as_deref().and_then(|name| catalog.get(name)) {
        Some(application) => {
            let batch = job.batch_size.unwrap_or(application.limits.init);
            let whole = ideal_secs(application, job.gpus, batch)?;
            Some(whole * f64::from(job.work_milli.unwrap_or(goodput_env::job::WHOLE)) / 1000.0)
        }
        None => job.duration.map(goodput_env::time::SimTime::as_secs_f64),
    };
    let scheduled = |job: &JobRow| ScheduledJob {
        name: job.job_id.clone(),
        application: job.application.clone().unwrap_or_default(),
        tenant: job.tenant.clone().unwrap_or_default(),
        submit_secs: job.submit.as_secs_f64(),
        start_secs: None,
        run_secs: run_secs(job),
        gpus: job.gpus,
        gpus_mean: None,
        limit_secs: job.limit.map(goodput_env::time::SimTime::as_secs_f64),
    };
    jobs.iter().map(scheduled).collect()
}
