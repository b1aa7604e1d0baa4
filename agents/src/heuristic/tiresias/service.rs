//! Service that jobs have attained, and when it makes them change their queue.

use goodput_env::time::SimTime;

use super::line::{Line, QueuedJob};
use super::{DemotionTiming, ServiceMeasure, TiresiasConfig};

impl ServiceMeasure {
    /// Service of a time on `gpus` accelerators, GPU-milliseconds (or milliseconds).
    pub(super) fn weighted(self, gpus: u32, time: SimTime) -> i64 {
        time.as_millis() * self.width(gpus)
    }

    /// Service of a job on `gpus` accelerators in a unit of time.
    fn width(self, gpus: u32) -> i64 {
        match self {
            Self::GpuTime => i64::from(gpus),
            Self::Time => 1,
        }
    }
}

impl TiresiasConfig {
    /// Service at which a job leaves a queue, in the unit of [`Self::attained`]; `None` for the last queue.
    pub(super) fn limit(&self, queue: usize) -> Option<i64> {
        self.limits.get(queue).map(|&limit| i64::from(limit) * 1000)
    }

    /// Service that a job had attained when its times were true.
    pub(super) fn attained(&self, entry: &QueuedJob) -> i64 {
        self.service.weighted(entry.gpus, entry.counted())
    }

    /// Whether the job's wait counts: it has run since its last promotion.
    fn counts_wait(&self, entry: &QueuedJob) -> bool {
        self.starvation_knob > 0.0 && entry.counted() > SimTime::ZERO
    }

    /// Adds the wait of a waiting job until `now`.
    pub(super) fn count_wait(&self, entry: &mut QueuedJob, now: SimTime) {
        if self.counts_wait(entry) {
            entry.waited += now - entry.since;
        }
        entry.since = now;
    }

    /// Whether a long wait brings a waiting job back to the first queue.
    pub(super) fn promotes(&self, entry: &QueuedJob) -> bool {
        entry.at.queue > 0 && self.counts_wait(entry)
    }

    /// Wait after which a job is promoted.
    pub(super) fn patience(&self, entry: &QueuedJob) -> SimTime {
        SimTime::from_secs_f64(self.starvation_knob * entry.counted().as_secs_f64())
    }

    /// Moment at which a job is to change its queue, while it runs or waits as it does.
    pub(super) fn due(&self, entry: &QueuedJob) -> SimTime {
        if entry.running {
            let limit = self.limit(entry.at.queue);
            return limit.map_or(SimTime::NEVER, |limit| {
                let width = self.service.width(entry.gpus);
                // Rounded up, so that the limit is reached when the policy wakes.
                entry.since + SimTime::from_millis((limit - self.attained(entry) + width - 1) / width)
            });
        }
        if !self.promotes(entry) {
            return SimTime::NEVER;
        }
        entry.since.saturating_add(self.patience(entry) - entry.waited)
    }

    /// Moment at which the policy wants to be asked because a job is to change its queue.
    pub(super) fn next_change(&self, line: &Line, now: SimTime) -> Option<SimTime> {
        match self.demotion {
            DemotionTiming::Due => line.next_due(),
            DemotionTiming::Artifact => line.jobs().map(|entry| self.artifact_due(entry, now)).min(),
        }
        .filter(|at| *at < SimTime::NEVER)
    }

    /// Moment at which the public simulator moves a job.
    fn artifact_due(&self, entry: &QueuedJob, now: SimTime) -> SimTime {
        let Some(limit) = self.limit(entry.at.queue).filter(|_| entry.running) else { return entry.due };
        let counted = entry.counted() + (now - entry.since);
        let width = self.service.width(entry.gpus);
        now + SimTime::from_millis((limit - counted.as_millis()) / 1000 / width * 1000)
    }
}
