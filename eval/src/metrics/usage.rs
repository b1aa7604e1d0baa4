//! Use of the accelerators of a run.

use goodput_env::job::{JobId, Work};
use goodput_env::scenario::Scenario;
use goodput_env::sim::JobRecord;

use super::isolated::IsolatedReference;

/// GPU time held minus the part spent restarting, GPU-milliseconds. The record keeps restarts as
/// wall time only, so they are priced at the job's mean size over all the time it held
/// accelerators.
pub fn productive_gpu_millis(job: &JobRecord) -> f64 {
    let executed = job.executed.as_millis();
    if executed <= 0 {
        return 0.0;
    }
    let making_progress = (executed - job.restarting.as_millis()).max(0);
    job.attained_gpu_millis as f64 * (making_progress as f64 / executed as f64)
}

/// The least GPU time in which the whole job can be done: GPU-seconds at its most efficient size,
/// without restarts. `None` where its application has no speed on this cluster.
pub fn reference_gpu_secs(scenario: &Scenario, reference: &IsolatedReference, job: JobId) -> Option<f64> {
    let spec = &scenario.workload.jobs[job.index()];
    match spec.work {
        Work::Fixed { duration } => Some(f64::from(spec.request.gpus) * duration.as_secs_f64()),
        Work::Steps { class, steps } => {
            let fastest = scenario
                .cluster
                .type_ids()
                .filter_map(|kind| scenario.mean_work_per_sec(class, steps, kind))
                .max_by(f64::total_cmp)?;
            Some(f64::from(spec.request.gpus) * steps / fastest)
        }
        Work::Application { index, work_milli } => {
            let sizes = spec.request.min_gpus()..=spec.request.max_gpus();
            let costs = sizes.filter_map(|gpus| Some(f64::from(gpus) * reference.job_secs(index, gpus, work_milli)?));
            costs.min_by(f64::total_cmp)
        }
    }
}
