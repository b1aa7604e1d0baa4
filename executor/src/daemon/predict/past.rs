//! A scene with the jobs of the journal: what came, and how long those ran that have ended.

use std::collections::BTreeSet;

use goodput_agents::futures::RunTimeHistory;
use goodput_env::job::{JobId, JobSpec, Work, Workload};
use goodput_env::state::Observed;
use goodput_env::time::SimTime;

use super::scene::StartScene;
use crate::daemon::durability::journal::PastJob;

/// Run time that is assumed of a job without a stated one, where nothing else is known.
const ASSUMED: SimTime = SimTime::from_secs(3600);

/// A scene in which jobs of the past and jobs at hand are one workload, in the order of their submission.
pub(super) struct SceneWithPast {
    pub workload: Workload,
    pub history: RunTimeHistory,
    pub seen: Observed,
    pub asked: JobId,
    /// By id of a job at hand, in ascending order: its place in the scene.
    places: Vec<(JobId, usize)>,
    /// Jobs that have ended, and all jobs that came.
    pub ended: usize,
    pub came: usize,
    /// Jobs at hand that stated no run time.
    pub unstated: usize,
    /// Jobs at hand of which the work is not counted in seconds.
    pub measured: usize,
}

impl SceneWithPast {
    /// `scene` with the jobs of `past`.
    pub fn new(scene: &StartScene, past: &[PastJob]) -> Self {
        let at_hand: BTreeSet<(i64, &str)> = scene.jobs.iter().map(|job| (job.submit_ms, job.key.as_str())).collect();
        let mut history = RunTimeHistory::default();
        let mut ended = 0;
        // Jobs with their place in the scene, where they are at hand.
        let mut all: Vec<(JobSpec, Option<usize>)> = Vec::with_capacity(past.len() + scene.jobs.len());
        for job in past {
            let spec = spec_of(scene, job);
            if job.ran_secs.is_some() {
                history.add(&spec);
                ended += 1;
            }
            if !at_hand.contains(&(job.submit_ms, job.key.as_str())) {
                all.push((spec, None));
            }
        }
        for (place, job) in scene.jobs.iter().enumerate() {
            let mut spec = job.spec.clone();
            spec.request.limit = job.stated;
            all.push((spec, Some(place)));
        }
        // The sort is stable: jobs at hand that were submitted at one time keep their order.
        all.sort_by_key(|(spec, _)| spec.request.submit);
        let mut seen = scene.seen.clone();
        let mut places = Vec::with_capacity(scene.jobs.len());
        for (id, (_, place)) in all.iter().enumerate() {
            if let Some(place) = place {
                seen.jobs[*place].id = JobId::at(id);
                places.push((JobId::at(id), *place));
            }
        }
        let renumbered: Vec<JobId> = seen.jobs.iter().map(|job| job.id).collect();
        for job in &mut seen.jobs {
            let place = |old: JobId| scene.seen.jobs.iter().position(|of| of.id == old);
            job.partner = job.partner.and_then(place).map(|place| renumbered[place]);
        }
        let asked = renumbered[scene.asked];
        seen.jobs.sort_by_key(|job| job.id);
        let Workload { applications, classes, models, tenants, .. } = (*scene.scenario.workload).clone();
        let jobs: Vec<JobSpec> = all.into_iter().map(|(spec, _)| spec).collect();
        let came = jobs.len();
        let workload = Workload { applications, classes, models, tenants, jobs, ..Workload::default() };
        let unstated = scene.jobs.iter().filter(|job| job.stated.is_none()).count();
        let measured = scene.jobs.iter().filter(|job| !matches!(job.spec.work, Work::Fixed { .. })).count();
        Self { workload, history, seen, asked, places, ended, came, unstated, measured }
    }

    /// The scene in which a job that stated no run time runs for an hour.
    #[must_use]
    pub fn with_assumed_limits(mut self) -> Self {
        for (id, _) in &self.places {
            let job = &mut self.workload.jobs[id.index()];
            if matches!(job.work, Work::Fixed { .. }) {
                job.request.limit = job.request.limit.or(Some(ASSUMED));
            }
        }
        self
    }

    /// Place of a job at hand in the scene.
    pub fn place(&self, job: JobId) -> Option<usize> {
        let at = self.places.binary_search_by_key(&job, |(id, _)| *id).ok()?;
        Some(self.places[at].1)
    }
}

/// A job of the past in the terms of the environment.
fn spec_of(scene: &StartScene, job: &PastJob) -> JobSpec {
    let mut request = job.asked.request.clone();
    let ago = (scene.at_ms - job.submit_ms) as f64 * scene.speedup;
    request.submit = scene.seen.now - SimTime::from_millis(ago.round() as i64);
    let tenants = &scene.scenario.workload.tenants;
    request.tenant = tenants.iter().position(|tenant| tenant.name == job.asked.tenant).unwrap_or_default() as u32;
    JobSpec { request, work: Work::Fixed { duration: job.ran_secs.map_or(ASSUMED, SimTime::from_secs_f64) } }
}
