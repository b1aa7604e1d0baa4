//! Gavel's public simulator (stanford-futuredata/gavel, `scheduler.py`), defects included, for
//! comparison job by job.
//!
//! The simulator counts whole steps. A job stops after the whole steps that fit into a round, and
//! the time up to then is what it has received. A job that completes in a round runs on until it is
//! done, and the round with it. Shares are only computed when the counts of received time are
//! reset, and a job that has come since then takes up accelerators in a round without running on them.
//! The lengths of jobs are always known.

use std::collections::BTreeMap;

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::Information;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::departures::Departures;
use super::instance::{GavelInstance, TimeShares};
use super::objectives::{makespan as least_makespan, makespan_secs, within};
use super::python_random::PythonRandom;
use super::rounds::{CombinationAccount, OpeningCredit, RoundTask};

/// State of the simulator beside the policy's own.
pub(super) struct Artifact {
    random: PythonRandom,
    /// Steps that active jobs have left as the simulator counts them: whole steps, round by round.
    steps_left: BTreeMap<JobId, f64>,
    /// Planned work of the round's tasks, in their order.
    work: Vec<PlannedWork>,
}

/// Work that the simulator plans for one task of a round.
#[derive(Clone, Copy, Debug)]
struct PlannedWork {
    /// Steps of the older and the younger job; of a single job the first entry only.
    steps: [f64; 2],
    /// Time when the steps are done, seconds.
    ends_secs: f64,
    /// One of the jobs completes with these steps.
    completes: bool,
    stopped: bool,
}

impl Artifact {
    /// No jobs yet; draws as Python does.
    pub(super) fn new(seed: u64) -> Self {
        // The scheduler's generators have consecutive seeds, and the sixth shuffles types.
        Self { random: PythonRandom::new(seed + 5), steps_left: BTreeMap::new(), work: Vec::new() }
    }

    fn plan_work(&self, view: &ClusterView<'_>, task: &RoundTask, start_secs: f64, round_secs: f64) -> PlannedWork {
        let combination = task.combination;
        let rates = match combination.older {
            Some(older) => view.shared_rates(older, combination.younger, task.kind),
            None => view
                .job(combination.younger)
                .and_then(|job| job.rate_on(task.kind, job.request().gpus).map(|rate| [rate; 2])),
        };
        let mut work = PlannedWork { steps: [0.0; 2], ends_secs: start_secs, completes: false, stopped: false };
        for (at, job) in combination.jobs().enumerate() {
            let left = self.steps_left.get(&job).copied().unwrap_or(1.0);
            let rate = rates.map_or(1.0, |rates| rates[at]);
            work.steps[at] = (rate * round_secs).floor().max(1.0).min(left);
            work.completes |= work.steps[at] >= left;
            work.ends_secs = work.ends_secs.max(start_secs + work.steps[at] / rate);
        }
        work
    }
}

impl Departures for Artifact {
    fn shuffle(&mut self, types: &mut [TypeId]) {
        self.random.shuffle(types);
    }

    /// Pairs that fit nowhere are kept as well; they change what the others' received time is a
    /// part of.
    fn opens_pair(&self, _runs: &[bool]) -> bool {
        true
    }

    fn credit_of_pairs(&self) -> OpeningCredit {
        OpeningCredit::Nothing
    }

    fn enter(&mut self, job: &JobView<'_>) {
        self.steps_left.insert(job.id(), job.remaining_work().unwrap_or(1.0));
    }

    fn steps_left(&self, job: &JobView<'_>) -> Option<f64> {
        self.steps_left.get(&job.id()).copied()
    }

    /// The speed on the first type, not the mean over the cluster.
    fn unaware_rate(&self, instance: &GavelInstance, job: usize) -> f64 {
        instance.rates(job).next().flatten().unwrap_or(1.0)
    }

    fn makespan(&self, instance: &GavelInstance) -> Option<TimeShares> {
        makespan(instance)
    }

    fn allocates_at_resets_only(&self) -> bool {
        true
    }

    fn starts(&self, account: &CombinationAccount) -> bool {
        account.share.is_some()
    }

    /// The simulator's clock runs in fractions of a millisecond, which the environment's clock
    /// would round.
    fn round_start(&self, previous_end: Option<f64>, now: f64) -> f64 {
        previous_end.unwrap_or(now)
    }

    fn start_round(&mut self, view: &ClusterView<'_>, tasks: &[RoundTask], start_secs: f64, round_secs: f64) -> f64 {
        self.work = tasks.iter().map(|task| self.plan_work(view, task, start_secs, round_secs)).collect();
        self.work.iter().map(|work| work.ends_secs).fold(start_secs, f64::max)
    }

    fn extends_round(&self, view: &ClusterView<'_>, tasks: &[RoundTask]) -> bool {
        let all_active = |task: &RoundTask| task.combination.jobs().all(|job| view.job(job).is_some());
        tasks.iter().zip(&self.work).any(|(task, work)| work.completes && all_active(task))
    }

    fn within_round(&mut self, view: &ClusterView<'_>, tasks: &[RoundTask]) -> Plan {
        let mut plan = Plan::keep();
        for (task, work) in tasks.iter().zip(&mut self.work) {
            if !work.stopped && !work.completes && SimTime::from_secs_f64(work.ends_secs) <= view.now {
                work.stopped = true;
                for job in task.combination.jobs().filter(|&job| view.job(job).is_some()) {
                    plan.set(job, Placement::none());
                }
            }
        }
        plan
    }

    fn task_end(&self, at: usize, _now: f64) -> f64 {
        self.work[at].ends_secs
    }

    fn settle(&mut self, view: &ClusterView<'_>, tasks: &[RoundTask]) {
        for (task, work) in tasks.iter().zip(&self.work) {
            for (job, steps) in task.combination.jobs().zip(work.steps) {
                let Some(known) = self.steps_left.get_mut(&job) else { continue };
                *known -= steps;
                // When one job of a pair completes early, the other runs faster than the simulator
                // plans.
                let left = view.job(job).and_then(|job| job.remaining_work()).unwrap_or(*known);
                if left < *known - 1.0 {
                    *known = left.ceil();
                }
            }
        }
        self.steps_left.retain(|&job, _| view.job(job).is_some());
    }

    fn wake_at(&self) -> Option<SimTime> {
        let stops = self.work.iter().filter(|work| !work.stopped && !work.completes);
        stops.map(|work| SimTime::from_secs_f64(work.ends_secs)).min()
    }

    fn information(&self, _of_objective: Information) -> Information {
        Information::Oracle
    }

    fn needs(&self, information: Information) -> Information {
        information
    }
}

/// The artifact's makespan: bisection between 100 s and 1,000,000 s (then ten times further each
/// time) until the ends are within 5 % of each other, so up to 5 % above the optimum. The artifact
/// asks the solver some fifteen times whether a time is enough. Where the optimum is known the
/// answers are known, and only the shares of the last time that was enough have to be solved for.
pub fn makespan(instance: &GavelInstance) -> Option<TimeShares> {
    let optimum = makespan_secs(instance, &least_makespan(instance)?);
    let (mut low, mut high, mut last_high): (f64, f64, f64) = (100.0, 1e6, 1e6);
    let mut enough = None;
    while enough.is_none() && optimum.is_finite() {
        while 1.05 * low < high {
            let middle = (low + high) / 2.0;
            if middle >= optimum {
                enough = Some(middle);
                high = middle;
            } else {
                low = middle;
            }
        }
        (low, high) = (last_high, last_high * 10.0);
        last_high *= 10.0;
    }
    within(instance, enough?)
}
