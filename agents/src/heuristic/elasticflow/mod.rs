//! ElasticFlow (Gu et al., ASPLOS'23): serverless training with deadlines. Users state a deadline and no number of
//! accelerators; the policy admits a job only where every admitted job still meets its deadline.
//!
//! - `course`: the minimum satisfactory share of a job, by progressive filling (Algorithm 1).
//! - `leftover`: what is left goes to the jobs with the highest marginal return (Algorithm 2).
//! - `admission`: which jobs are refused.
//! - `edf`: the baseline.
//! - `buddy`: placement in powers of two, with migration.
//!
//! Earliest deadline first, the baseline of the paper, gives each job as many accelerators as it can run on, in
//! order of deadlines. `edf-admission` and `edf-elastic` are the ablations of the paper's figure 9: earliest
//! deadline first with admission control, and with the minimum satisfactory share and elastic scaling but without
//! admission control. A job without a deadline is best effort: it comes after all jobs with one, and is never
//! refused.
//!
//! A rigid job keeps the size that it asked for. A refused job that stays in the system, as on a live cluster, is best
//! effort from then on.
//!
//! The paper is followed in its artifact's finer form of Algorithm 1: not the whole course of a job is raised by a
//! level, but its end from the latest moment on that is enough. `elasticflow@replica` is the artifact
//! (pkusys/ElasticFlow, `scheduler.py`) in more points: its plans take no account of restarts, and
//! [`most_accelerator_time`] and `admission` describe the others.

mod admission;
mod buddy;
mod course;
mod edf;
mod leftover;

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::state::Trigger;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use crate::allocation::free_profile::FreeProfile;
use crate::heuristic::parameters::Fixed;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::Free;
use admission::DeadlineAdmission;
use course::{Course, DeadlineDemand, SizeChoice};
pub use edf::Edf;
use leftover::{MarginalReturn, reserve, saved_per_accelerator, share_out};

const TRAITS: Traits = Traits { preemptive: true, elastic: true, heterogeneous: false };

/// Entries of ElasticFlow and its baseline in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "edf",
        about: "earliest deadline first, each job as large as it can be",
        source: "Liu and Layland, JACM 1973; baseline of Gu et al. (ElasticFlow), ASPLOS 2023",
        traits: TRAITS,
        constructor: &Fixed(|_| Box::new(Edf::default())),
        replica: None,
    },
    ListedPolicy {
        name: "edf-admission",
        about: "as edf, and a job that would make a deadline late is refused",
        source: "Gu et al. (ElasticFlow), ASPLOS 2023, figure 9",
        traits: TRAITS,
        constructor: &Fixed(|_| {
            Box::new(ElasticFlow::new(CourseFilling::Largest, Some(DeadlineAdmission::published())))
        }),
        replica: None,
    },
    ListedPolicy {
        name: "edf-elastic",
        about: "as elasticflow without admission control: no job is refused",
        source: "Gu et al. (ElasticFlow), ASPLOS 2023, figure 9",
        traits: TRAITS,
        constructor: &Fixed(|_| Box::new(ElasticFlow::new(MINIMUM_SHARE, None))),
        replica: None,
    },
    ListedPolicy {
        name: "elasticflow",
        about: "fewest accelerators that keep each deadline, the rest by marginal return; hopeless jobs are refused",
        source: "Gu et al. (ElasticFlow), ASPLOS 2023; pkusys/ElasticFlow",
        traits: TRAITS,
        constructor: &Fixed(|_| Box::new(ElasticFlow::new(MINIMUM_SHARE, Some(DeadlineAdmission::published())))),
        replica: Some(|_| Box::new(ElasticFlow::artifact())),
    },
];

const MINIMUM_SHARE: CourseFilling = CourseFilling::MinimumShare(saved_per_accelerator);

/// Rule by which the course of a job is filled.
#[derive(Clone, Copy, Debug)]
enum CourseFilling {
    /// As many accelerators as the job runs on.
    Largest,
    /// As few as keep the deadline, and what is left by marginal return.
    MinimumShare(MarginalReturn),
}

/// Return by which the artifact shares out what is left: it sorts the accelerator time that a further level *costs* in
/// descending order, so that jobs that scale worst come first.
pub fn most_accelerator_time(saved_gpu_secs: f64, gpus: u32) -> f64 {
    -saved_per_accelerator(saved_gpu_secs, gpus)
}

/// ElasticFlow over a cluster, and earliest deadline first with admission control. Jobs are in ascending order of
/// (deadline, id). A decision falls at an arrival, at a completion, at a change of capacity, and where a plan says so.
#[derive(Clone, Debug)]
pub struct ElasticFlow {
    filling: CourseFilling,
    admission: Option<DeadlineAdmission>,
    /// Whether plans go as if a change of size took no time.
    forgets_restarts: bool,
    wake: Option<SimTime>,
    /// Accelerators that could be given at the last decision.
    capacity: u32,
    free: Free,
}

impl ElasticFlow {
    fn new(filling: CourseFilling, admission: Option<DeadlineAdmission>) -> Self {
        Self { filling, admission, forgets_restarts: false, wake: None, capacity: 0, free: Free::default() }
    }

    /// ElasticFlow as its artifact behaves.
    pub fn artifact() -> Self {
        let filling = CourseFilling::MinimumShare(most_accelerator_time);
        Self { forgets_restarts: true, ..Self::new(filling, Some(DeadlineAdmission::artifact())) }
    }

    fn demand(&self, job: &JobView<'_>, capacity: u32) -> DeadlineDemand {
        let sizes = if matches!(self.filling, CourseFilling::Largest) { SizeChoice::All } else { SizeChoice::Faster };
        let mut demand = DeadlineDemand::of(job, capacity, sizes);
        let due = job.request().deadline.unwrap_or(SimTime::NEVER);
        if self.forgets_restarts {
            (demand.restart_secs, demand.deadline) = (0.0, due);
        }
        if self.admission.as_ref().is_some_and(|admission| admission.has_refused(job.id())) {
            demand.deadline = SimTime::NEVER;
        }
        demand
    }

    /// Accelerators of each job now.
    fn sizes(&mut self, demands: &[DeadlineDemand], now: SimTime, capacity: u32) -> Vec<u32> {
        let (mut courses, mut free) = self.filling.courses(demands.iter(), now, capacity);
        if let CourseFilling::MinimumShare(returns) = self.filling {
            share_out(demands, &mut courses, &mut free, now, returns);
        }
        // Where nothing happens before, what was planned for later begins at its time.
        let soonest = now + SimTime::from_secs(1);
        self.wake = courses.iter().filter_map(|course| course.changes_at(now)).min().map(|at| at.max(soonest));
        courses.iter().map(|course| course.gpus_at(now)).collect()
    }
}

impl CourseFilling {
    /// Courses of jobs that take turns in the given order on `capacity` accelerators, and what they leave free. A job
    /// that cannot keep its deadline takes the largest level that is free.
    fn courses<'a>(
        self,
        demands: impl Iterator<Item = &'a DeadlineDemand>,
        now: SimTime,
        capacity: u32,
    ) -> (Vec<Course>, FreeProfile) {
        let mut free = FreeProfile::new(now, capacity, Vec::new());
        let courses = demands.map(|demand| {
            let share = match self {
                Self::Largest => None,
                Self::MinimumShare(_) => demand.minimum_share(&free, now),
            };
            let course = share.unwrap_or_else(|| demand.largest(&free, now));
            reserve(&mut free, &course);
            free.merge();
            course
        });
        (courses.collect(), free)
    }
}

impl Policy for ElasticFlow {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let jobs: Vec<JobView<'_>> = view.jobs().collect();
        let capacity = view.total_free() + jobs.iter().map(JobView::gpus).sum::<u32>();
        let Trigger { arrival, completion, fault, .. } = view.trigger;
        let planned = self.wake.is_some_and(|at| at <= view.now);
        if !(arrival || completion || fault || planned || capacity != self.capacity) {
            return plan;
        }
        (self.wake, self.capacity) = (None, capacity);
        let mut demands: Vec<DeadlineDemand> = jobs.iter().map(|job| self.demand(job, capacity)).collect();
        demands.sort_by_key(|demand| (demand.deadline, demand.job));
        if let Some(admission) = &mut self.admission {
            plan.refuse = admission.refuse(&demands, |admitted| self.filling.courses(admitted, view.now, capacity).0);
            demands.retain(|demand| !plan.refuse.contains(&demand.job));
        }
        let sizes = self.sizes(&demands, view.now, capacity);
        let sizes = demands.iter().zip(sizes).filter_map(|(demand, gpus)| Some((view.job(demand.job)?, gpus)));
        buddy::place(view, &mut self.free, &sizes.collect::<Vec<_>>(), &mut plan);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }

    fn information(&self) -> Information {
        self.needs()
    }

    fn needs(&self) -> Information {
        Information::Estimate { sigma: 0.0 }
    }
}

#[cfg(test)]
mod tests;
