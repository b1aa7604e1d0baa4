//! Work of jobs that have ended, as a guide to the work of those that have not.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use goodput_env::job::{JobRequest, JobSpec, WHOLE, Work, Workload};
use goodput_env::time::SimTime;
use rand::{Rng, RngExt};

/// Jobs that a draw looks back at, the latest ones.
const LATEST: usize = 300;
/// Fewest jobs for which a group of jobs is a guide.
const FEWEST: usize = 10;

/// Steps of a job of which nothing is known.
const UNKNOWN_STEPS: f64 = 10_000.0;

/// Unit of the work of a job: work of other kinds says nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorkKind {
    Seconds,
    Application(u16),
    Class(u16),
}

/// Jobs that are alike, from the most alike to all of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alike {
    /// One tenant, size and time limit.
    Request(WorkKind, u32, u32, Option<i64>),
    /// One size to the power of two, and one time limit.
    Shape(WorkKind, u32, Option<i64>),
    /// One size to the power of two, and one time limit to the power of two.
    Class(WorkKind, u32, Option<u32>),
    /// All jobs with a time limit, or without one.
    Kind(WorkKind, bool),
}

/// Work of the jobs that have ended, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct RunTimeHistory {
    /// Jobs that are alike.
    groups: BTreeMap<Alike, EndedGroup>,
}

/// Jobs that are alike and have ended, in the order in which they were added.
#[derive(Clone, Debug, Default)]
struct EndedGroup {
    ended: Vec<EndedWork>,
    /// Power of the time limit that the work of the latest ones grows with, once it was asked for.
    growth: OnceLock<f64>,
}

/// Work of a job that has ended, in the unit of its kind, and its time limit; 1 where it has none.
#[derive(Clone, Copy, Debug)]
struct EndedWork {
    total: f64,
    limit: f64,
    /// Logarithms of the limit and of the work.
    logs: (f64, f64),
}

/// Estimate of the work that is left of a job without a time limit, as the scheduler is told it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToldWork {
    /// Estimate of the work that is left, in the unit of the simulator.
    pub left: f64,
    /// Standard deviation of the logarithm of its error.
    pub sigma: f64,
}

/// Work that an unfinished job may have in all, in the unit of its work.
#[derive(Clone, Debug)]
pub(crate) struct PossibleWork {
    spec: Work,
    /// Done so far.
    done: f64,
    limit: Option<f64>,
    told: Option<ToldWork>,
    /// Whether the scheduler is told what is left of the time limit.
    tells_limit: bool,
    /// Work of jobs like it that had more work than it has done.
    candidates: Vec<f64>,
    /// Sums of the probabilities of the candidates; empty where all are alike.
    cumulative: Vec<f64>,
}

/// Work of a job in one future.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawnWork {
    pub work: Work,
    /// Error of the estimate of what is left, so that the scheduler is told in the future what it has been told.
    pub factor: Option<f64>,
}

impl RunTimeHistory {
    /// Adds a job that has ended, with its true work.
    pub fn add(&mut self, job: &JobSpec) {
        let (kind, total) = counted(job.work);
        let limit = limit_secs(&job.request, kind).unwrap_or(1.0);
        let ended = EndedWork { total, limit, logs: (limit.ln(), total.max(1e-3).ln()) };
        for alike in groups(&job.request, kind) {
            self.groups.entry(alike).or_default().add(ended);
        }
    }

    /// Adds a job of which nothing is known but the kind of its work, and that it has ended after `done`, in the unit
    /// of the simulator.
    pub(crate) fn add_done(&mut self, job: &JobSpec, done: f64, workload: &Workload) {
        let work = with_total(job.work, done * unit(job.work, workload));
        self.add(&JobSpec { request: job.request.clone(), work });
    }

    /// Work that `job` may have, of which `done` is done (in the unit of the simulator: seconds on the accelerators
    /// asked for, progress of the application, or steps).
    pub(crate) fn possible(
        &self,
        job: &JobSpec,
        done: f64,
        told: Option<ToldWork>,
        workload: &Workload,
    ) -> PossibleWork {
        let (kind, _) = counted(job.work);
        let limit = limit_secs(&job.request, kind);
        let unit = unit(job.work, workload);
        let done = done * unit;
        let told = told.map(|told| ToldWork { left: (told.left * unit).max(f64::MIN_POSITIVE), ..told });
        let scale = limit.unwrap_or(1.0);
        let longer = |group: &EndedGroup| -> Vec<f64> {
            let exponent = group.growth();
            group.latest().iter().map(|ended| ended.under(scale, exponent)).filter(|&total| total > done).collect()
        };
        let found = groups(&job.request, kind).into_iter().filter_map(|alike| self.groups.get(&alike)).map(longer);
        let candidates = found.into_iter().find(|candidates| candidates.len() >= FEWEST).unwrap_or_default();
        let (mut candidates, mut cumulative) = (candidates, Vec::new());
        if let Some(told) = told {
            (candidates, cumulative) = weighed(candidates, done, told);
        }
        PossibleWork { spec: job.work, done, limit, told, tells_limit: false, candidates, cumulative }
    }
}

impl EndedGroup {
    fn add(&mut self, ended: EndedWork) {
        self.ended.push(ended);
        self.growth = OnceLock::new();
    }

    /// The latest ones, which a draw looks back at.
    fn latest(&self) -> &[EndedWork] {
        &self.ended[self.ended.len().saturating_sub(LATEST)..]
    }

    /// Power of the time limit that the work of the latest ones grows with.
    fn growth(&self) -> f64 {
        *self.growth.get_or_init(|| growth(self.latest()))
    }
}

impl EndedWork {
    /// The work as it may have been under another time limit, where work grows with this power of the limit. It exceeds
    /// its limit no more than it did.
    fn under(self, limit: f64, exponent: f64) -> f64 {
        let ratio = limit / self.limit;
        let grown = match exponent {
            0.0 => self.total,
            1.0 => self.total * ratio,
            exponent => self.total * ratio.powf(exponent),
        };
        grown.min((self.total * ratio).max(limit))
    }
}

/// Power of the time limit that the work of jobs grows with, from 0, where limits say nothing of run times, to 1, where
/// run times are shares of limits: the slope of the logarithms by least squares. 1 where all limits are equal.
fn growth(ended: &[EndedWork]) -> f64 {
    if ended.windows(2).all(|pair| pair[0].limit == pair[1].limit) {
        return 1.0;
    }
    let logs = || ended.iter().map(|of| of.logs);
    let count = ended.len().max(1) as f64;
    let (limits, totals) = logs().fold((0.0, 0.0), |(x, y), (limit, total)| (x + limit / count, y + total / count));
    let (spread, both) = logs().fold((0.0, 0.0), |(spread, both), (limit, total)| {
        (spread + (limit - limits).powi(2), both + (limit - limits) * (total - totals))
    });
    (both / spread).clamp(0.0, 1.0)
}

/// Work as it is drawn in one unit of the simulator: applications in thousandths of their whole training.
fn unit(work: Work, workload: &Workload) -> f64 {
    match work {
        Work::Application { index, .. } => {
            workload.applications.get(usize::from(index)).map_or(1.0, |of| f64::from(WHOLE) / of.total_work())
        }
        Work::Fixed { .. } | Work::Steps { .. } => 1.0,
    }
}

/// Candidates with sums of their probabilities, given what was told: a prior and a likelihood. No candidates where
/// fewer than [`FEWEST`] of them carry the weight.
fn weighed(candidates: Vec<f64>, done: f64, told: ToldWork) -> (Vec<f64>, Vec<f64>) {
    let likelihood = |total: &f64| {
        let error = (told.left / (total - done)).ln() / told.sigma.max(1e-3);
        (-0.5 * error * error).exp()
    };
    let weights: Vec<f64> = candidates.iter().map(likelihood).collect();
    let (sum, squares) =
        weights.iter().fold((0.0, 0.0), |(sum, squares), weight| (sum + weight, squares + weight * weight));
    // Kish's effective size of a weighted sample.
    if sum * sum < FEWEST as f64 * squares || sum <= 0.0 {
        return (Vec::new(), Vec::new());
    }
    let mut before = 0.0;
    let cumulative = weights.iter().map(|weight| {
        before += weight / sum;
        before
    });
    (candidates, cumulative.collect())
}

impl PossibleWork {
    /// The work of a job of which the scheduler is told what is left of its time limit, where it has one.
    pub(crate) fn telling_limit(self) -> Self {
        Self { tells_limit: true, ..self }
    }

    /// Draw of the work of the job.
    pub(crate) fn draw(&self, random: &mut impl Rng) -> DrawnWork {
        let total = match (self.candidates.len(), self.told) {
            (0, Some(told)) => self.done + told.left * (told.sigma * normal(random)).exp(),
            (0, None) => self.unguided(random),
            (count, None) => self.candidates[random.random_range(0..count)],
            (count, Some(_)) => {
                let drawn = random.random::<f64>();
                self.candidates[self.cumulative.partition_point(|sum| *sum < drawn).min(count - 1)]
            }
        };
        let left_of_limit = self.limit.filter(|_| self.tells_limit).map(|limit| (limit - self.done).max(0.0));
        let left = self.told.map(|told| told.left).or(left_of_limit);
        let factor = left.map(|left| left / (total - self.done).max(f64::MIN_POSITIVE));
        DrawnWork { work: with_total(self.spec, total), factor }
    }

    /// Work as users said it: up to the time limit, else as the scheduler is told; `None` where there is neither. A job
    /// that has outlived its limit ends in a second.
    pub(crate) fn stated(&self) -> Option<DrawnWork> {
        let total = match (self.limit, self.told) {
            (Some(limit), _) => limit.max(self.done + 1.0),
            (None, Some(told)) => self.done + told.left,
            (None, None) => return None,
        };
        Some(DrawnWork { work: with_total(self.spec, total), factor: self.told.map(|_| 1.0) })
    }

    /// Draw where no jobs are a guide: any moment up to the time limit, else from what is done to four times that;
    /// where nothing is done, a quarter of an hour to four hours, or one training of the application.
    fn unguided(&self, random: &mut impl Rng) -> f64 {
        match self.limit {
            Some(limit) if limit > self.done => random.random_range(self.done..limit).max(1.0),
            _ if self.done > 0.0 => self.done * 4_f64.powf(random.random::<f64>()),
            _ => match self.spec {
                Work::Fixed { .. } => 3600.0 * 16_f64.powf(random.random::<f64>() - 0.5),
                Work::Application { .. } => f64::from(WHOLE),
                Work::Steps { .. } => UNKNOWN_STEPS,
            },
        }
    }
}

/// Standard normal draw (Box and Muller 1958).
fn normal(random: &mut impl Rng) -> f64 {
    let (first, second): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos()
}

/// The kind of the work, and how much of it there is.
fn counted(work: Work) -> (WorkKind, f64) {
    match work {
        Work::Fixed { duration } => (WorkKind::Seconds, duration.as_secs_f64()),
        Work::Application { index, work_milli } => (WorkKind::Application(index), f64::from(work_milli)),
        Work::Steps { class, steps } => (WorkKind::Class(class), steps),
    }
}

fn with_total(work: Work, total: f64) -> Work {
    match work {
        Work::Fixed { .. } => Work::Fixed { duration: SimTime::from_secs_f64(total.max(0.001)) },
        Work::Application { index, .. } => Work::Application { index, work_milli: (total.ceil() as u32).max(1) },
        Work::Steps { class, .. } => Work::Steps { class, steps: total.max(f64::MIN_POSITIVE) },
    }
}

/// Time limit of a job of which the work is counted in seconds.
fn limit_secs(request: &JobRequest, kind: WorkKind) -> Option<f64> {
    let limit = request.limit.map(SimTime::as_secs_f64).filter(|limit| *limit > 0.0);
    limit.filter(|_| kind == WorkKind::Seconds)
}

fn groups(request: &JobRequest, kind: WorkKind) -> [Alike; 4] {
    let limit = limit_secs(request, kind);
    let millis = limit.map(|limit| (1e3 * limit) as i64);
    let size = request.gpus.max(1).ilog2();
    [
        Alike::Request(kind, request.tenant, request.gpus, millis),
        Alike::Shape(kind, size, millis),
        Alike::Class(kind, size, limit.map(|limit| (limit as u64).max(1).ilog2())),
        Alike::Kind(kind, limit.is_some()),
    ]
}

#[cfg(test)]
mod tests {
    use goodput_env::seed::{Stream, rng};

    use super::*;

    fn job(gpus: u32, limit: Option<i64>, secs: i64) -> JobSpec {
        let request = JobRequest { gpus, limit: limit.map(SimTime::from_secs), ..JobRequest::default() };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(secs) } }
    }

    fn drawn(history: &RunTimeHistory, job: &JobSpec, done: f64) -> Vec<f64> {
        let possible = history.possible(job, done, None, &Workload::default());
        let mut random = rng(1, Stream::Futures);
        (0..200).map(|_| counted(possible.draw(&mut random).work).1).collect()
    }

    #[test]
    fn jobs_that_are_alike_are_the_guide() {
        let mut history = RunTimeHistory::default();
        for at in 0..20 {
            history.add(&job(1, Some(100), 10 + at));
            history.add(&job(8, Some(100), 90));
        }
        assert!(drawn(&history, &job(1, Some(100), 0), 0.0).iter().all(|secs| (10.0..30.0).contains(secs)));
        assert!(drawn(&history, &job(8, Some(100), 0), 0.0).iter().all(|secs| *secs == 90.0));
        // Another time limit: all sizes are a guide, as a share of the limit.
        let shares = drawn(&history, &job(64, Some(10_000), 0), 0.0);
        assert!(shares.contains(&9000.0) && shares.iter().any(|secs| *secs < 3000.0));
    }

    /// Users ask for two, five or ten minutes, and their jobs run for ten to twenty seconds.
    #[test]
    fn limits_that_say_nothing_are_not_a_guide() {
        let limits = [120, 300, 600];
        let mut history = RunTimeHistory::default();
        (0..60).for_each(|at| history.add(&job(1, Some(limits[at % 3]), 10 + (at as i64 * 7) % 11)));
        let unseen = drawn(&history, &job(64, Some(3600), 0), 0.0);
        assert!(unseen.iter().all(|secs| (9.0..25.0).contains(secs)), "{unseen:?}");
        // Where jobs run for half of their limits, so does one with another limit.
        let mut history = RunTimeHistory::default();
        (0..60).for_each(|at| history.add(&job(1, Some(limits[at % 3]), limits[at % 3] / 2)));
        assert!(drawn(&history, &job(64, Some(3600), 0), 0.0).iter().all(|secs| (secs - 1800.0).abs() < 1.0));
        // A limit that is shorter than what jobs ran for cuts them off.
        let mut history = RunTimeHistory::default();
        (0..60).for_each(|at| history.add(&job(1, Some(limits[at % 3]), 100)));
        assert!(drawn(&history, &job(64, Some(60), 0), 0.0).iter().all(|secs| *secs <= 60.0));
    }

    /// The power is asked for once between two jobs that end, and goes by the later one as well.
    #[test]
    fn jobs_that_end_later_change_the_power_of_the_limit() {
        let mut history = RunTimeHistory::default();
        (0..20).for_each(|_| history.add(&job(1, Some(100), 50)));
        let asked = job(64, Some(1000), 0);
        assert!(drawn(&history, &asked, 0.0).iter().all(|secs| *secs == 500.0));
        (0..20).for_each(|_| history.add(&job(1, Some(400), 50)));
        assert!(drawn(&history, &asked, 0.0).iter().all(|secs| *secs == 50.0));
    }

    #[test]
    fn what_is_done_rules_out_what_is_shorter() {
        let mut history = RunTimeHistory::default();
        (0..40).for_each(|at| history.add(&job(1, None, 10 * at)));
        assert!(drawn(&history, &job(1, None, 0), 200.0).iter().all(|secs| *secs > 200.0));
        // Longer than every job before it.
        assert!(drawn(&history, &job(1, None, 0), 1000.0).iter().all(|secs| (1000.0..=4000.0).contains(secs)));
    }

    /// An estimate shifts the draws, and the scheduler is told it in each future.
    #[test]
    fn an_estimate_and_the_jobs_that_have_ended_are_weighed() {
        let mut history = RunTimeHistory::default();
        (0..300).for_each(|at| history.add(&job(1, None, 100 + 10 * at)));
        let told = Some(ToldWork { left: 1500.0, sigma: 0.2 });
        let possible = history.possible(&job(1, None, 0), 0.0, told, &Workload::default());
        let mut random = rng(1, Stream::Futures);
        let mut sum = 0.0;
        for _ in 0..400 {
            let DrawnWork { work, factor } = possible.draw(&mut random);
            let total = counted(work).1;
            assert!((total * factor.unwrap_or(0.0) - 1500.0).abs() < 1e-6);
            sum += total / 400.0;
        }
        assert!((1400.0..1700.0).contains(&sum), "{sum}");
        // Far beyond all jobs that have ended, the estimate alone is the guide.
        let told = Some(ToldWork { left: 90_000.0, sigma: 0.2 });
        let possible = history.possible(&job(1, None, 0), 0.0, told, &Workload::default());
        assert!(counted(possible.draw(&mut random).work).1 > 30_000.0);
    }

    #[test]
    fn a_scheduler_is_told_what_is_left_of_a_limit() {
        let mut history = RunTimeHistory::default();
        (0..40).for_each(|at| history.add(&job(1, Some(1000), 300 + 10 * at)));
        let possible = history.possible(&job(1, Some(1000), 0), 200.0, None, &Workload::default()).telling_limit();
        let mut random = rng(1, Stream::Futures);
        for _ in 0..50 {
            let DrawnWork { work, factor } = possible.draw(&mut random);
            let left = counted(work).1 - 200.0;
            assert!((left * factor.unwrap_or(0.0) - 800.0).abs() < 1e-6);
        }
    }

    /// The true work of a job that runs or waits is never read.
    #[test]
    fn the_work_of_the_job_itself_does_not_leak() {
        let mut history = RunTimeHistory::default();
        (0..40).for_each(|at| history.add(&job(1, Some(500), 10 * at)));
        for done in [0.0, 100.0, 450.0] {
            let one = drawn(&history, &job(1, Some(500), 7), done);
            assert_eq!(one, drawn(&history, &job(1, Some(500), 499), done));
        }
    }
}
