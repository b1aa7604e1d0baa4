//! The past of one job, kept from snapshot to snapshot for engines that do not tell it.

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::state::{ClusterState, ObservedJob, Phase, Profile};
use goodput_env::time::SimTime;
use serde::{Deserialize, Serialize};

use super::ClusterObserver;
use crate::engine::{JobPhase, JobSeen, SpeedReport};
use crate::job::Learned;

/// Attained service of a job. Times are the policy's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttainedService {
    /// Time of the last observation.
    at: SimTime,
    /// Time of the last change of placement; submission before that.
    changed: SimTime,
    started: Option<SimTime>,
    restarts: u32,
    attained_gpu_millis: i64,
    executed: SimTime,
    /// Work done, as reported or as the rate makes it.
    done: f64,
    /// Work per second from now on, as far as is known.
    rate: f64,
    held: Placement,
    starts: u32,
    /// Measurements from the job's reports.
    #[serde(default)]
    pub(super) learned: Learned,
    /// Profile that policies see.
    #[serde(skip)]
    pub(super) profile: Profile,
    /// Whether that is out of date.
    #[serde(skip, default = "yes")]
    pub(super) unread: bool,
}

const fn yes() -> bool {
    true
}

impl AttainedService {
    /// A job that has just been submitted.
    pub fn new(submit: SimTime) -> Self {
        Self {
            at: submit,
            changed: submit,
            started: None,
            restarts: 0,
            attained_gpu_millis: 0,
            executed: SimTime::ZERO,
            done: 0.0,
            rate: 0.0,
            held: Placement::none(),
            starts: 0,
            learned: Learned::default(),
            profile: Profile::default(),
            unread: false,
        }
    }

    /// Brings the job's past up to `now`. `begun`: when the running attempt began.
    pub(super) fn advance(&mut self, now: SimTime, begun: Option<SimTime>, seen: &JobSeen, held: &Placement) {
        let now = now.max(self.at);
        if !held.is_empty() && (seen.starts != self.starts || self.held != *held) {
            // A new attempt: it holds since it began, which lies between two looks. Members that join and leave are no
            // restart, and no time without them is seen.
            let restarted = seen.starts != self.starts || seen.members.is_none();
            let begun = begun.unwrap_or(now).clamp(self.at, now);
            self.settle(begun);
            // The rate of the attempt before says nothing of this one.
            self.rate = 0.0;
            self.restarts += u32::from(restarted && self.started.is_some());
            self.started.get_or_insert(begun);
            self.changed = begun;
        } else if held.is_empty() && !self.held.is_empty() {
            self.settle(now);
            self.changed = now;
        }
        self.held = held.clone();
        self.starts = seen.starts;
        self.settle(now);
        if seen.phase != JobPhase::Running {
            self.rate = 0.0;
        }
        // What the job itself reports goes before what its rate would make of the time.
        if let Some(done) = seen.done {
            self.done = done;
        }
    }

    fn settle(&mut self, to: SimTime) {
        let span = to - self.at;
        let gpus = self.held.gpus();
        self.attained_gpu_millis += i64::from(gpus) * span.as_millis();
        if gpus > 0 {
            self.executed += span;
        }
        self.done += self.rate * span.as_secs_f64();
        self.at = to;
    }

    /// Takes in what the job said of its speed.
    pub(super) fn learn(&mut self, said: &SpeedReport) {
        self.unread |= self.learned.take(&said.accelerator, &said.measured);
    }

    /// Wall time with accelerators.
    pub(super) fn executed(&self) -> SimTime {
        self.executed
    }

    pub(super) fn observed(&self, id: JobId, seen: &JobSeen, held: &Placement) -> ObservedJob {
        ObservedJob {
            phase: if held.is_empty() { Phase::Pending } else { Phase::Running },
            placement: held.clone(),
            epoch: seen.epoch,
            restarts: self.restarts,
            started: self.started,
            attained_gpu_millis: self.attained_gpu_millis,
            executed: self.executed,
            done: self.done,
            failures: seen.failures,
            profile: self.profile.clone(),
            ..ObservedJob::submitted(id, self.changed)
        }
    }
}

impl ClusterObserver {
    /// Notes the work per second of running jobs from now on, for the work that they do not report.
    pub(super) fn note_rates(&mut self, cluster: &ClusterState) {
        let view = cluster.view();
        for (&id, past) in &mut self.past {
            // The view may show a job where an order wants it, where its rate is another one.
            let rate = view.job(id).filter(|job| !past.held.is_empty() && job.gpus() == past.held.gpus());
            past.rate = rate.and_then(|job| job.rate(job.gpus())).unwrap_or(0.0);
        }
    }

    /// Accelerator time of a job until `at_ms` of the engine's clock, as seconds on the accelerators that it asked for.
    /// `None` where it was never seen to run.
    pub(in crate::daemon) fn ran_secs(&self, job: &JobSeen, at_ms: i64) -> Option<f64> {
        let past = self.past.get(&self.id(&job.key)?)?;
        let since_look = (self.time(at_ms) - past.at).max(SimTime::ZERO);
        let held = past.attained_gpu_millis + i64::from(past.held.gpus()) * since_look.as_millis();
        (held > 0).then(|| held as f64 / 1e3 / f64::from(job.spec.request.gpus.max(1)))
    }

    /// The pasts by key, to be kept in the journal.
    pub fn pasts(&self) -> impl Iterator<Item = (&str, &AttainedService)> {
        // A job that never ran and said nothing has no past to lose.
        let told = |past: &&AttainedService| past.started.is_some() || past.learned != Learned::default();
        self.past.iter().filter(move |(_, past)| told(past)).filter_map(|(&id, past)| Some((self.key(id)?, past)))
    }

    /// Puts back what the journal kept of a job that is registered already.
    pub fn restore(&mut self, key: &str, past: AttainedService) {
        if let Some(id) = self.id(key) {
            self.past.insert(id, past);
        }
    }
}
