//! Jobs that fail again and again wait longer each time, as Kubernetes restarts containers
//! (`CrashLoopBackOff`): 10 s, twice as long after each failure, at most 5 min. A crash loop then
//! costs others a bounded share of the queue's head.

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::{ExpectedLoad, Look, Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, Restriction};

use super::{BackOffTerms, earlier};

/// A policy that does not see jobs that have just failed.
pub struct BackOff {
    inner: Box<dyn Policy>,
    first: SimTime,
    longest: SimTime,
    /// Jobs that failed: how often, and until when they wait. Ascending.
    waiting: Vec<(JobId, u32, SimTime)>,
    wake: Option<SimTime>,
}

impl std::fmt::Debug for BackOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackOff").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl BackOff {
    /// Back-off around the policy `inner`.
    pub fn new(inner: Box<dyn Policy>, terms: &BackOffTerms) -> Self {
        let (first, longest) = (SimTime::from_secs_f64(terms.first_secs), SimTime::from_secs_f64(terms.longest_secs));
        Self { inner, first, longest, waiting: Vec::new(), wake: None }
    }

    /// Wait of a job after this many failures, at least one.
    fn delay(&self, failures: u32) -> SimTime {
        // The shift is bounded because a job may fail more often than an integer has bits.
        let waits = self.first.as_millis().saturating_mul(1 << (failures - 1).min(20));
        SimTime::from_millis(waits.min(self.longest.as_millis()))
    }
}

impl Policy for BackOff {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let now = view.now;
        self.waiting.retain(|(job, ..)| view.job(*job).is_some());
        for job in view.jobs().filter(|job| job.failures() > 0) {
            let (id, failures) = (job.id(), job.failures());
            let entry = (id, failures, now + self.delay(failures));
            match self.waiting.binary_search_by_key(&id, |known| known.0) {
                Ok(at) if self.waiting[at].1 < failures => self.waiting[at] = entry,
                Ok(_) => {}
                Err(at) => self.waiting.insert(at, entry),
            }
        }
        let waits = |id: JobId| {
            let known = self.waiting.binary_search_by_key(&id, |known| known.0);
            known.is_ok_and(|at| self.waiting[at].2 > now)
        };
        let shown: Vec<JobId> =
            // A job that runs again stays visible, or its policy would lose it.
            view.jobs().filter(|job| job.gpus() > 0 || !waits(job.id())).map(|job| job.id()).collect();
        self.wake = self.waiting.iter().map(|known| known.2).filter(|&until| until > now).min();
        if shown.is_empty() {
            return Plan::keep();
        }
        let part = Restriction { jobs: shown, ..Restriction::of(view) };
        self.inner.decide(&view.within(&part))
    }

    fn wake_at(&self) -> Option<SimTime> {
        earlier(self.wake, self.inner.wake_at())
    }

    fn expected_loads(&self) -> &[ExpectedLoad] {
        self.inner.expected_loads()
    }

    fn last_look(&self) -> Option<&Look> {
        self.inner.last_look()
    }

    fn scope(&self) -> Scope {
        self.inner.scope()
    }

    fn round(&self) -> Option<SimTime> {
        self.inner.round()
    }

    fn batching(&self) -> Batching {
        self.inner.batching()
    }

    fn information(&self) -> Information {
        self.inner.information()
    }

    fn needs(&self) -> Information {
        self.inner.needs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::by_name;

    #[test]
    #[allow(clippy::unwrap_used, reason = "helpers of tests")]
    fn delays_double_up_to_five_minutes() {
        let policy = BackOff::new(by_name("fifo", 0).unwrap(), &BackOffTerms::default());
        let secs = |failures| policy.delay(failures).as_millis() / 1000;
        assert_eq!([1, 2, 3, 4, 5, 6, 60].map(secs), [10, 20, 40, 80, 160, 300, 300]);
    }
}
