//! Finish time that a job could expect with a fair share of the cluster, averaged over the job's life.

use std::collections::BTreeMap;

use goodput_env::job::JobId;

/// Weight of the average over time; the rest goes to the newest estimate.
const MOMENTUM: f64 = 0.9;

/// Estimates of the fair finish time by job: time of the estimate and the estimate, seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct FairFinish(BTreeMap<JobId, Vec<(f64, f64)>>);

impl FairFinish {
    /// Adds an estimate made at `now`.
    pub(super) fn add(&mut self, job: JobId, now: f64, estimate: f64) {
        self.0.entry(job).or_default().push((now, estimate));
    }

    /// Forgets jobs that are not active.
    pub(super) fn keep(&mut self, active: impl Fn(JobId) -> bool) {
        self.0.retain(|&job, _| active(job));
    }

    /// Average of the estimates of `job`, each weighted by the time for which it was the newest.
    pub(super) fn of(&self, job: JobId, now: f64) -> Option<f64> {
        let estimates = self.0.get(&job)?;
        let &(first, _) = estimates.first()?;
        let &(_, newest) = estimates.last()?;
        if now <= first {
            return Some(newest);
        }
        let ends = estimates.iter().skip(1).map(|(at, _)| *at).chain([now]);
        let weighted: f64 = estimates.iter().zip(ends).map(|((at, estimate), end)| (end - at) * estimate).sum();
        Some(MOMENTUM * weighted / (now - first) + (1.0 - MOMENTUM) * newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_count_by_the_time_that_they_stood() {
        let mut finish = FairFinish::default();
        let job = JobId(3);
        assert_eq!(finish.of(job, 0.0), None);
        finish.add(job, 100.0, 1000.0);
        assert_eq!(finish.of(job, 100.0), Some(1000.0));
        finish.add(job, 300.0, 2000.0);
        // 200 s of 1000, 100 s of 2000, and a tenth for the newest.
        let expected = 0.9 * (200.0 * 1000.0 + 100.0 * 2000.0) / 300.0 + 0.1 * 2000.0;
        assert!((finish.of(job, 400.0).unwrap_or_default() - expected).abs() < 1e-9);
    }
}
