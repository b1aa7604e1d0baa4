//! Active jobs. Between events a job advances at a constant rate, so its state is only touched when
//! the rate changes and everything that grows with time is derived from `(value at since, rate)`.

use serde::{Deserialize, Serialize};

use super::profile::Profile;
use super::reconfiguration::Reconfiguration;
use super::saving::Saving;
use crate::job::JobId;
use crate::model::BatchConfig;
use crate::placement::{Placement, Slice};
use crate::time::SimTime;

/// Phase of an active job: waiting, restarting, or making progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Waits for accelerators.
    #[default]
    Pending,
    /// Holds accelerators and restarts on them.
    Starting {
        /// Moment at which the job begins to make progress.
        until: SimTime,
    },
    /// Holds accelerators and makes progress on them.
    Running,
}

/// One active job.
#[derive(Clone, Debug)]
pub struct JobState {
    /// Id of the job in its workload.
    pub id: JobId,
    /// Phase of the job.
    pub phase: Phase,
    /// Accelerators that the job holds.
    pub placement: Placement,
    /// The job it shares its accelerators with.
    pub partner: Option<JobId>,
    /// Current batch size per replica and accumulation steps.
    pub batch: BatchConfig,
    /// Number of epochs that are complete.
    pub epoch: u32,
    /// Changes of placement after the first start that stopped it.
    pub restarts: u32,
    /// First time it held accelerators.
    pub started: Option<SimTime>,
    /// Moment of the last change of the placement; the submission before that.
    pub changed: SimTime,
    /// Measurements of the job's own agent.
    pub profile: Profile,
    /// Accelerator time held before `since`, hundredths of GPU-milliseconds, as all such times are kept: a share of
    /// one percent held for a millisecond is one.
    pub(crate) attained: i64,
    pub(crate) executed: SimTime,
    pub(crate) restarting: SimTime,
    /// Work done before `since`, in the job's unit.
    pub(crate) progress: f64,
    /// Work per second from `since` on.
    pub(crate) rate: f64,
    /// Moment at which the fields above were last settled.
    pub(crate) since: SimTime,
    /// Since when it runs at one speed.
    pub(crate) segment: SimTime,
    /// Accelerator time held before `since` without use, hundredths of GPU-milliseconds.
    pub(crate) idle: i64,
    /// The change of size that is under way.
    pub(crate) resize: Option<Box<Reconfiguration>>,
    /// Number of the newest command of a change of size.
    pub(crate) commands: u32,
    /// Events scheduled under another generation are void.
    pub(crate) generation: u32,
    /// Number of times the job was told what other jobs have measured.
    pub(crate) told: u32,
    /// The agent's model may have changed since the batch size was chosen.
    pub(crate) stale: bool,
    /// Share of its speed that interference leaves it, in (0, 1].
    pub(crate) kept_speed: f64,
    /// Speed that shares of cards leave it, relative to what its work is measured on, in (0, 1].
    pub(crate) shared_speed: f64,
    /// Accelerators held before the change that is being carried out.
    pub(crate) previous_gpus: u32,
    /// Error of estimates of remaining work; 1 is exact.
    pub(crate) estimate_factor: f64,
    /// Checkpoints of the job, and the work that faults undid.
    pub(crate) saving: Saving,
}

impl JobState {
    /// A job that has just been submitted.
    pub fn new(id: JobId, now: SimTime, estimate_factor: f64) -> Self {
        Self {
            id,
            phase: Phase::Pending,
            placement: Placement::none(),
            partner: None,
            batch: BatchConfig { atomic: 0, accumulation: 0 },
            epoch: 0,
            restarts: 0,
            started: None,
            changed: now,
            profile: Profile::default(),
            attained: 0,
            executed: SimTime::ZERO,
            restarting: SimTime::ZERO,
            progress: 0.0,
            rate: 0.0,
            since: now,
            segment: now,
            idle: 0,
            resize: None,
            commands: 0,
            generation: 0,
            told: 0,
            stale: false,
            kept_speed: 1.0,
            shared_speed: 1.0,
            previous_gpus: 0,
            estimate_factor,
            saving: Saving::default(),
        }
    }

    /// Number of the job's state: it stays equal while only time passes and no measurement of other
    /// jobs arrives.
    #[inline]
    pub(crate) fn version(&self) -> (u32, u32) {
        (self.generation, self.told)
    }

    /// Whether what it holds counts as its own: two jobs that share accelerators hold one
    /// placement, counted for the first of them.
    #[inline]
    pub fn counts(&self) -> bool {
        self.partner.is_none_or(|partner| self.id < partner)
    }

    /// Whole accelerators by node that are free once the job has given up what it holds. Of two jobs that hold one
    /// placement the first frees it, and a part of a card frees none, because other jobs may hold the rest of the card.
    pub fn frees(&self) -> &[Slice] {
        if self.counts() && self.placement.share().is_none() { self.placement.slices() } else { &[] }
    }

    /// Whether the job holds accelerators.
    #[inline]
    pub fn is_allocated(&self) -> bool {
        !self.placement.is_empty()
    }

    /// The part of its placement that makes progress, or will after its restart; during an elastic
    /// resize that is what it ran on before.
    pub fn share(&self) -> &Placement {
        self.resize.as_ref().map_or(&self.placement, |resize| resize.share())
    }

    /// Accelerator time held until `now` without use, GPU-milliseconds: by a job that restarts all
    /// of its accelerators, by one that grows without a pause the new ones.
    pub fn idle_gpu_millis(&self, now: SimTime) -> i64 {
        self.idle_percent_millis(now) / 100
    }

    /// Accelerator time held until `now`, GPU-milliseconds; a share of a card counts by its compute.
    pub fn attained_gpu_millis(&self, now: SimTime) -> i64 {
        self.attained_percent_millis(now) / 100
    }

    pub(super) fn idle_percent_millis(&self, now: SimTime) -> i64 {
        let idle = match self.phase {
            Phase::Pending => 0,
            Phase::Starting { .. } => self.placement.compute_percent(),
            Phase::Running => self.placement.compute_percent().saturating_sub(self.share().compute_percent()),
        };
        self.idle + i64::from(idle) * (now - self.since).as_millis()
    }

    pub(super) fn attained_percent_millis(&self, now: SimTime) -> i64 {
        self.attained + i64::from(self.placement.compute_percent()) * (now - self.since).as_millis()
    }

    /// Wall time with accelerators until `now`.
    #[inline]
    pub fn executed(&self, now: SimTime) -> SimTime {
        if self.is_allocated() { self.executed + (now - self.since) } else { self.executed }
    }

    /// Wall time spent restarting until `now`.
    pub fn restarting(&self, now: SimTime) -> SimTime {
        match self.phase {
            Phase::Starting { .. } => self.restarting + (now - self.since),
            Phase::Pending | Phase::Running => self.restarting,
        }
    }

    /// Work done until `now`, in the job's unit.
    pub fn done(&self, now: SimTime) -> f64 {
        self.progress + self.rate * self.worked_secs(now)
    }

    /// Brings everything that grows with time up to `now`.
    pub(crate) fn settle(&mut self, now: SimTime) {
        // Writes are settled first, from the books as they stand at `since`.
        self.save_until(now);
        self.settle_counters(now);
    }

    fn settle_counters(&mut self, now: SimTime) {
        self.idle = self.idle_percent_millis(now);
        self.attained = self.attained_percent_millis(now);
        self.restarting = self.restarting(now);
        self.executed = self.executed(now);
        self.progress = self.done(now);
        // Every line above reads `since`, which therefore moves last.
        self.since = now;
    }
}
