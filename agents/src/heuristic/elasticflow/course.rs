//! Course of a job: how many accelerators the job is to hold until it is done.

use goodput_env::job::JobId;
use goodput_env::time::SimTime;
use goodput_env::view::JobView;

use crate::allocation::free_profile::FreeProfile;

/// Part of a job's work that rounding may hide.
const SLACK: f64 = 1e-9;

/// Number of accelerators that a job can run on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeLevel {
    /// Accelerators of the job at this level.
    pub gpus: u32,
    /// Work per second on these.
    pub rate: f64,
}

/// Sizes that a job is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeChoice {
    /// Powers of two at which the job runs, slower ones included.
    All,
    /// Of these, the ones that are faster than every smaller one.
    Faster,
}

/// Need of a job until its deadline.
#[derive(Clone, Debug)]
pub struct DeadlineDemand {
    /// Id of the job.
    pub job: JobId,
    /// Sizes of the job in ascending order: buddy placement wants powers of two.
    pub levels: Vec<SizeLevel>,
    /// Work that is left, in the unit of the rates.
    pub work: f64,
    /// Time by which the job has to be done; [`SimTime::NEVER`]: best effort.
    pub deadline: SimTime,
    /// Accelerators that the job holds.
    pub held: u32,
    /// Seconds for which a change of its size stops the job.
    pub restart_secs: f64,
}

/// Accelerators of a job for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Time from which the job holds them.
    pub from: SimTime,
    /// Time until which the job holds them.
    pub until: SimTime,
    /// Accelerators, at least 1.
    pub gpus: u32,
}

/// Accelerators of a job until it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// Stretches in order of time; between them the job waits.
    pub stretches: Vec<Stretch>,
    /// Whether the work is done by the end of the last stretch.
    pub done: bool,
}

impl Course {
    /// Accelerators held at `now`, the beginning of the course.
    pub fn gpus_at(&self, now: SimTime) -> u32 {
        self.stretches.first().filter(|first| first.from == now).map_or(0, |first| first.gpus)
    }

    /// Time at which the job is done; [`SimTime::NEVER`] where it is not.
    pub fn end(&self) -> SimTime {
        self.stretches.last().filter(|_| self.done).map_or(SimTime::NEVER, |last| last.until)
    }

    /// First time after `now` at which the job holds another number of accelerators while it is not done.
    pub fn changes_at(&self, now: SimTime) -> Option<SimTime> {
        let edges = self.stretches.iter().flat_map(|stretch| [stretch.from, stretch.until]);
        edges.filter(|&at| at > now && at < self.end()).min()
    }

    /// Accelerator time in all, GPU-seconds.
    pub fn gpu_secs(&self) -> f64 {
        let each = self.stretches.iter();
        each.map(|stretch| f64::from(stretch.gpus) * (stretch.until - stretch.from).as_secs_f64()).sum()
    }

    /// Adds a stretch, or prolongs the last one.
    fn push(&mut self, stretch: Stretch) {
        match self.stretches.last_mut() {
            Some(last) if last.until == stretch.from && last.gpus == stretch.gpus => last.until = stretch.until,
            _ => self.stretches.push(stretch),
        }
    }
}

/// Sizes of a job in ascending order, on a cluster of `capacity` accelerators. Where no power of two is in the job's
/// range, the smallest size of the job stands in. A job of unknown speed has its smallest
/// size, as if it did one unit of work a second there.
pub fn levels(job: &JobView<'_>, capacity: u32, sizes: SizeChoice) -> Vec<SizeLevel> {
    let (min, max) = (job.min_gpus(), job.max_gpus().min(capacity));
    let powers = (0..u32::BITS).map(|power| 1 << power).filter(|gpus| (min..=max).contains(gpus));
    let mut levels: Vec<SizeLevel> = Vec::new();
    for gpus in powers.chain([min]) {
        let Some(rate) = job.rate(gpus).filter(|rate| *rate > 0.0) else { continue };
        let fits = |last: &SizeLevel| gpus > last.gpus && (sizes == SizeChoice::All || rate > last.rate);
        if levels.last().is_none_or(fits) {
            levels.push(SizeLevel { gpus, rate });
        }
    }
    if levels.is_empty() {
        levels.push(SizeLevel { gpus: min, rate: 1.0 });
    }
    levels
}

impl DeadlineDemand {
    /// Demand of an active job on a cluster of `capacity` accelerators. The plan leaves the time of one more restart
    /// before the deadline.
    pub fn of(job: &JobView<'_>, capacity: u32, sizes: SizeChoice) -> Self {
        let restart_secs = job.restart_secs();
        let margin = SimTime::from_secs_f64(restart_secs);
        let deadline = job.request().deadline.map_or(SimTime::NEVER, |deadline| deadline - margin);
        let (levels, work) = (levels(job, capacity, sizes), job.remaining_work().unwrap_or(f64::INFINITY));
        Self { job: job.id(), levels, work, deadline, held: job.gpus(), restart_secs }
    }

    /// Largest level, counted from 1, of at most `cap` levels and at most `free` accelerators; 0 where there is none.
    fn level(&self, cap: usize, free: u32) -> usize {
        self.levels[..cap].partition_point(|level| level.gpus <= free)
    }

    /// Seconds that the work takes at a level that is counted from 1, with a restart where the job does not hold that
    /// many accelerators; infinite at level 0.
    pub fn secs_at(&self, level: usize) -> f64 {
        let Some(&SizeLevel { gpus, rate }) = level.checked_sub(1).map(|at| &self.levels[at]) else {
            return f64::INFINITY;
        };
        self.work / rate + if gpus == self.held { 0.0 } else { self.restart_secs }
    }

    /// Work per second at a level that is counted from 1.
    fn rate(&self, level: usize) -> f64 {
        level.checked_sub(1).map_or(0.0, |at| self.levels[at].rate)
    }

    /// Course of `work` from `from` on that takes the largest level of at most `cap` levels that is free, at every
    /// moment until `until`, and the work that the course leaves. A job that holds `held` accelerators stands still for
    /// a restart before it runs on another number.
    fn follow(
        &self,
        free: &FreeProfile,
        (from, until): (SimTime, SimTime),
        (mut work, held): (f64, u32),
        cap: impl Fn(SimTime) -> usize,
    ) -> (Course, f64) {
        let mut course = Course::default();
        for (start, end, gpus) in spans(free, from, until) {
            let level = self.level(cap(start), gpus);
            if level == 0 {
                continue;
            }
            let SizeLevel { gpus, rate } = self.levels[level - 1];
            if course.stretches.is_empty() && gpus != held {
                work += rate * self.restart_secs;
            }
            let needs = SimTime::from_millis((work / rate * 1e3 * (1.0 - SLACK)).ceil().min(1e17) as i64);
            if start.saturating_add(needs) <= end {
                course.push(Stretch { from: start, until: start + needs, gpus });
                return (Course { done: true, ..course }, 0.0);
            }
            work -= rate * (end - start).as_secs_f64();
            course.push(Stretch { from: start, until: end, gpus });
        }
        (course, work)
    }

    /// Course at the largest level that is free at every moment from `now` on, whatever the deadline.
    pub fn largest(&self, free: &FreeProfile, now: SimTime) -> Course {
        self.follow(free, (now, SimTime::NEVER), (self.work, self.held), |_| self.levels.len()).0
    }

    /// Minimum satisfactory share from `now` on: the course of fewest accelerators that ends by the deadline, by
    /// progressive filling (Algorithm 1). `None` where even the largest level is too slow.
    pub fn minimum_share(&self, free: &FreeProfile, now: SimTime) -> Option<Course> {
        self.fill(free, now, (self.work, self.held))
    }

    /// The cap on the level rises step by step until the work fits before the deadline. The last rise counts from the
    /// latest moment on that is enough.
    fn fill(&self, free: &FreeProfile, from: SimTime, (work, held): (f64, u32)) -> Option<Course> {
        let spans: Vec<(SimTime, SimTime, u32)> = spans(free, from, self.deadline).collect();
        for cap in 1..=self.levels.len() {
            let done = |level: usize, &(start, end, gpus): &(SimTime, SimTime, u32)| {
                let rate = self.rate(self.level(level, gpus));
                if rate > 0.0 { rate * (end - start).as_secs_f64() } else { 0.0 }
            };
            // At most one restart at this level.
            let restart = if self.levels[cap - 1].gpus == held { 0.0 } else { self.rate(cap) * self.restart_secs };
            let enough = (work + restart) * (1.0 - SLACK);
            if spans.iter().map(|span| done(cap, span)).sum::<f64>() < enough {
                continue;
            }
            let mut sum: f64 = spans.iter().map(|span| done(cap - 1, span)).sum();
            let raised = spans.iter().rev().find(|span| {
                sum += done(cap, span) - done(cap - 1, span);
                sum >= enough
            });
            let raised = raised.map_or(from, |span| span.0);
            let cap_at = |at: SimTime| if at < raised { cap - 1 } else { cap };
            let (course, _) = self.follow(free, (from, self.deadline), (work, held), cap_at);
            // The sums say so, whatever a millisecond is rounded to.
            return Some(Course { done: true, ..course });
        }
        None
    }

    /// Course with `level` levels from `now` until the next step of `free`, and the minimum satisfactory share from
    /// then on; at the largest free level where the deadline cannot be kept.
    pub fn raised(&self, free: &FreeProfile, now: SimTime, level: usize) -> Course {
        let next = free.steps().get(1).map_or(SimTime::NEVER, |step| step.0);
        let (mut course, left) = self.follow(free, (now, next), (self.work, self.held), |_| level);
        if course.done {
            return course;
        }
        let from_here = (left, self.levels[level - 1].gpus);
        let late = || self.follow(free, (next, SimTime::NEVER), from_here, |_| self.levels.len()).0;
        let rest = self.fill(free, next, from_here).unwrap_or_else(late);
        rest.stretches.into_iter().for_each(|stretch| course.push(stretch));
        Course { done: rest.done, ..course }
    }
}

/// Steps of `free` from `from` to `until`: beginning, end and free accelerators.
fn spans(free: &FreeProfile, from: SimTime, until: SimTime) -> impl Iterator<Item = (SimTime, SimTime, u32)> + '_ {
    let steps = free.steps();
    let ends = steps.iter().skip(1).map(|step| step.0).chain([SimTime::NEVER]);
    let all = steps.iter().zip(ends).map(move |(&(start, gpus), end)| (start.max(from), end.min(until), gpus));
    all.filter(|(start, end, _)| start < end)
}
