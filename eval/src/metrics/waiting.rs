//! Times of one job, seconds.

use goodput_env::sim::JobRecord;

/// Completion minus submission.
pub fn jct_secs(job: &JobRecord) -> Option<f64> {
    Some(job.jct()?.as_secs_f64())
}

/// From submission to the first accelerator.
pub fn queueing_delay_secs(job: &JobRecord) -> Option<f64> {
    Some((job.start? - job.submit).as_secs_f64())
}

/// JCT over wall time with accelerators, the latter taken as at least 10 s; at least 1.
pub fn bounded_slowdown(job: &JobRecord) -> Option<f64> {
    job.bounded_slowdown()
}
