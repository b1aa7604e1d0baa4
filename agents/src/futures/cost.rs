//! Cost of a simulated future that is cut off.

use goodput_env::scenario::Information;
use goodput_env::sim::Simulator;
use goodput_env::view::ClusterView;

/// Replicas beyond those of any job: what a job can use does not depend on what it has explored.
const EXPLORED: u32 = 1 << 20;

/// Time that all jobs of a run spend in the system, seconds: until now, and for what they have left. A job that was
/// refused costs what a job costs that stays for all of `span_secs`: refusing is no way to be fast. It goes by the work
/// that the jobs truly have left, so it is for drawn futures and training episodes alone.
pub fn secs_of_jobs(run: &Simulator, span_secs: f64) -> f64 {
    let refused = run.records().iter().filter(|job| job.refused.is_some()).count() as f64;
    run.job_millis() as f64 / 1e3 + left_secs(&run.view()) + refused * span_secs
}

/// Time that the jobs still need, seconds, summed over jobs: each on an equal share of the accelerators, and longer
/// where these shares are more than there are.
fn left_secs(view: &ClusterView<'_>) -> f64 {
    let mut told = *view;
    told.information = Information::Oracle;
    let gpus = f64::from(view.cluster().total_gpus().max(1));
    let share = (gpus / view.active().max(1) as f64) as u32;
    let (mut secs, mut held) = (0.0, 0.0);
    for (job, drawn) in view.jobs().zip(told.jobs()) {
        let least = job.min_gpus().max(1);
        let size = share.clamp(least, job.max_gpus_explored(EXPLORED).max(least));
        let rate = job.rate(size).or_else(|| drawn.rate(size)).or_else(|| drawn.rate(job.request().gpus));
        if let Some(rate) = rate.filter(|rate| *rate > 0.0) {
            secs += drawn.remaining_work().unwrap_or(0.0) / rate;
            held += f64::from(size);
        }
    }
    secs * (held / gpus).max(1.0)
}
