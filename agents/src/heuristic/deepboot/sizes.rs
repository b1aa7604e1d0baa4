//! ATS-T: size and placement of each training job (DeepBoot, section on the training scheduler;
//! artifact `dp.py`).
//!
//! The value of a size is the speedup over a fair share, discounted for restarts if the job would
//! change its size. A knapsack maximises the plain sum of values, which does not keep a slow job
//! from starving.

use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::view::{ClusterView, JobView};

use super::choice::SizeChoice;
use super::speedup::SpeedupTables;
use crate::placement::{Free, Packer};

/// Value of a job's first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartValue {
    /// Full speedup: there is nothing to lose.
    Full,
    /// Speedup as after a restart, so that a job that has just come has no value (artifact).
    Discounted,
}

/// DeepBoot's training scheduler.
#[derive(Clone, Debug)]
pub struct SizeScheduler {
    start: StartValue,
    /// Seconds that a restart costs in the objective, whatever the true cost.
    restart_secs: f64,
    goodputs: SpeedupTables,
    choice: SizeChoice,
    free: Free,
}

impl SizeScheduler {
    /// A scheduler with the given value of starting a job, and seconds that a restart counts.
    pub fn new(start: StartValue, restart_secs: f64) -> Self {
        Self {
            start,
            restart_secs,
            goodputs: SpeedupTables::default(),
            choice: SizeChoice::default(),
            free: Free::default(),
        }
    }

    /// Value of a first start.
    pub fn start(&self) -> StartValue {
        self.start
    }

    /// Adds to `plan` the changes that take every job to its size. A job that keeps its size keeps
    /// its nodes. The others are placed in ascending order of (size, id), each where the fewest
    /// sufficient accelerators are free (figure 7).
    pub fn plan(&mut self, view: &ClusterView<'_>, plan: &mut Plan) {
        let jobs: Vec<JobView<'_>> = view.jobs().collect();
        self.goodputs.retain(|job| view.job(job).is_some());
        let gpus = view.total_free() + jobs.iter().map(JobView::gpus).sum::<u32>();
        let fair = gpus.div_ceil(jobs.len().max(1) as u32).max(1);
        let values: Vec<_> = jobs.iter().map(|job| self.values(view, job, gpus, fair)).collect();
        let sizes = self.choice.sizes(gpus, values);

        self.free.reset(view);
        let mut changed: Vec<(u32, &JobView<'_>)> =
            sizes.into_iter().zip(&jobs).filter(|(size, job)| *size != job.gpus()).collect();
        for (_, job) in &changed {
            self.free.release(&job.state.placement);
        }
        changed.sort_by_key(|(size, job)| (*size, job.id()));
        for (size, job) in changed {
            let (held, least) = (&job.state.placement, job.min_gpus());
            let placement = match size {
                0 => None,
                _ => Packer::FewestNodes.place_most(view.cluster(), &mut self.free, held, size, least),
            };
            let placement = placement.unwrap_or_else(Placement::none);
            if placement != *held {
                plan.set(job.id(), placement);
            }
        }
    }

    fn values(&mut self, view: &ClusterView<'_>, job: &JobView<'_>, gpus: u32, fair: u32) -> Vec<(u32, f64)> {
        let per_node = view.cluster().gpus_per_node();
        let factor = self.factor(job);
        let most = job.max_gpus().min(gpus);
        let value = |size: u32| {
            let speedup = self.goodputs.speedup(job, size.div_ceil(per_node), size, fair);
            (size, if size == job.gpus() { speedup } else { speedup * factor })
        };
        (job.min_gpus().max(1)..=most).map(value).collect()
    }

    fn factor(&self, job: &JobView<'_>) -> f64 {
        if job.state.started.is_none() && self.start == StartValue::Full {
            return 1.0;
        }
        let age = job.age().as_secs_f64();
        (age - self.restart_secs * f64::from(job.state.restarts)).max(0.0) / (age + self.restart_secs)
    }
}
