//! Memory of a run: the jobs that came, the work of those that are gone, and speeds that were measured.

use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::plan::Plan;
use goodput_env::scenario::Information;
use goodput_env::state::Phase;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::applications::SeenApplications;
use super::speeds::MeasuredSpeeds;
use crate::futures::{PossibleWork, RunTimeHistory, ToldWork};

/// Memory of what a run has shown.
#[derive(Debug, Default)]
pub(super) struct SeenRun {
    /// Jobs that came, with the kind of their work and no amount, and all applications that were seen.
    pub workload: Workload,
    pub applications: SeenApplications,
    pub history: RunTimeHistory,
    pub speeds: MeasuredSpeeds,
    /// Ids of the jobs that came, ascending, in the order of those of the workload.
    ids: Vec<JobId>,
    /// Jobs of the last decision.
    active: Vec<JobProgress>,
    at: SimTime,
}

/// Progress of a job at the last decision.
#[derive(Clone, Copy, Debug)]
struct JobProgress {
    job: JobId,
    done: f64,
    /// Work per second on the accelerators that the job holds.
    rate: f64,
}

impl SeenRun {
    /// Takes note of what has changed since the last decision.
    pub fn observe(&mut self, view: &ClusterView<'_>) {
        if self.ids.is_empty() {
            self.workload = Workload { applications: Vec::new(), ..view.catalogue() };
            self.applications = SeenApplications::default();
        }
        self.applications.observe(view.applications(), &mut self.workload.applications);
        // Policies are not told of completions: a job that ran and is gone is taken to be complete.
        let elapsed = (view.now - self.at).as_secs_f64();
        for progress in std::mem::take(&mut self.active) {
            if progress.rate > 0.0
                && view.job(progress.job).is_none()
                && let Ok(at) = self.ids.binary_search(&progress.job)
            {
                let done = progress.done + progress.rate * elapsed;
                self.history.add_done(&self.workload.jobs[at], done, &self.workload);
            }
        }
        for job in view.jobs() {
            let work = self.applications.placed(job.work_kind());
            match self.ids.binary_search(&job.id()) {
                // A live job has an application once it reports.
                Ok(at) => self.workload.jobs[at].work = work,
                Err(at) => {
                    self.ids.insert(at, job.id());
                    self.workload.jobs.insert(at, JobSpec { request: job.request().clone(), work });
                }
            }
            let runs = job.state.phase == Phase::Running;
            let rate = if runs { job.rate(job.gpus()).unwrap_or(0.0) } else { 0.0 };
            self.active.push(JobProgress { job: job.id(), done: job.state.done(view.now), rate });
            self.speeds.observe(work, &job.state.profile);
        }
        self.at = view.now;
    }

    /// Takes note of the speeds that jobs have from this decision on.
    pub fn planned(&mut self, view: &ClusterView<'_>, plan: &Plan) {
        for change in &plan.changes {
            let gpus = change.placement.gpus();
            let rate = view.job(change.job).filter(|_| gpus > 0).and_then(|job| job.rate(gpus)).unwrap_or(0.0);
            if let Some(progress) = self.active.iter_mut().find(|progress| progress.job == change.job) {
                progress.rate = rate;
            }
        }
    }

    /// Work that an active job may have in all, in units of the simulator.
    pub fn possible(&self, view: &ClusterView<'_>, job: &JobView<'_>) -> PossibleWork {
        let spec = JobSpec { request: job.request().clone(), work: self.applications.placed(job.work_kind()) };
        let sigma = match view.information {
            Information::Profiled => None,
            Information::Estimate { sigma } => Some(sigma),
            Information::Oracle => Some(0.0),
        };
        let told = sigma.zip(job.remaining_work()).map(|(sigma, left)| ToldWork { left, sigma });
        // What is told without an error needs no other jobs as a guide.
        let (history, nothing) = (&self.history, RunTimeHistory::default());
        let guide = if sigma == Some(0.0) { &nothing } else { history };
        guide.possible(&spec, job.state.done(view.now), told, &self.workload)
    }
}
