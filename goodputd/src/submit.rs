//! `live submit`: a job from its options.

use std::path::PathBuf;

use goodput_console::CommandError;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;
use goodput_executor::daemon::interface::api;
use goodput_executor::engine::{JobResources, Submission};
use goodput_executor::job::RetryBudget;

use crate::args::Submit;

/// Longest estimate of a run time that makes sense: ten years, minutes.
const MOST_MINUTES: f64 = 10.0 * 365.0 * 24.0 * 60.0;

/// Absolute form of a path: the daemon runs in another folder.
fn absolute(path: Option<&PathBuf>) -> Result<Option<PathBuf>, CommandError> {
    path.map(std::path::absolute).transpose().map_err(CommandError::input)
}

/// Job that the options describe, checked as the daemon checks it.
pub fn submission(options: &Submit) -> Result<Submission, CommandError> {
    let gpus = options.gpus;
    let (min, max) = (options.min.unwrap_or(gpus), options.max.unwrap_or(gpus));
    let elasticity = if min == max { Elasticity::Rigid } else { Elasticity::Elastic { min, max } };
    let minutes = options.minutes.unwrap_or(0.0);
    if !(0.0..=MOST_MINUTES).contains(&minutes) {
        let text = format!(
            "--minutes {minutes}: expected 0 to {MOST_MINUTES}; leave the option out where the time is not known"
        );
        return Err(CommandError::input(text));
    }
    let duration = SimTime::from_secs_f64(60.0 * minutes);
    let share = options.compute.zip(options.device_memory);
    let share = share.map(|(compute_percent, memory_mib)| ShareRequest { compute_percent, memory_mib });
    let request = JobRequest { name: options.name.clone(), gpus, elasticity, share, ..JobRequest::default() };
    let job = Submission {
        application: options.application.clone(),
        tenant: options.tenant.clone(),
        resources: JobResources {
            cpus_per_gpu: options.cpus_per_gpu,
            memory_per_gpu_mib: options.memory_per_gpu,
            time_limit_mins: options.time_limit,
            account: options.account.clone(),
            qos: options.qos.clone(),
            partition: options.partition.clone(),
            constraint: options.constraint.clone(),
        },
        directory: absolute(options.directory.as_ref())?,
        grace_s: options.grace,
        batch: options.batch,
        retry: RetryBudget { failures: options.retries, ..RetryBudget::default() },
        checkpoint_dir: absolute(options.checkpoint_dir.as_ref())?,
        elastic: options.elastic,
        ..Submission::new(JobSpec { request, work: Work::Fixed { duration } }, options.command.clone())
    };
    api::check(&job).map_err(CommandError::input)?;
    Ok(job)
}
