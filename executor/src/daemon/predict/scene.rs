//! The cluster as it is at one moment, with the job that is asked about.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_configs::live::deployment::Deployment;
use goodput_env::job::{JobId, JobSpec, Work};
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::state::{Observed, ObservedJob};
use goodput_env::time::SimTime;

use crate::daemon::observe::ClusterObserver;
use crate::engine::{ClusterSnapshot, JobSeen, OnNode};

/// Job that is asked about.
#[derive(Clone, Copy, Debug)]
pub enum AskedStart<'a> {
    /// Job of the snapshot, by its key.
    Waits(&'a str),
    /// Job that is not submitted.
    New(&'a JobSeen),
}

/// Cluster as it is at one moment, with everything that a prediction needs of the daemon.
#[derive(Clone, Debug)]
pub struct StartScene {
    /// Applications, tenants and options of the run.
    pub(super) scenario: Arc<Scenario>,
    pub(super) options: SimOptions,
    pub(super) seen: Observed,
    /// Jobs of the observation, in its order.
    pub(super) jobs: Vec<SceneJob>,
    /// Place of the asked job among them.
    pub(super) asked: usize,
    /// Whether the asked job is one of the engine's.
    pub(super) is_submitted: bool,
    /// Moment of the snapshot, milliseconds of the engine's clock.
    pub(super) at_ms: i64,
    pub(super) speedup: f64,
    pub(super) notes: Vec<String>,
}

/// Job of a scene.
#[derive(Clone, Debug)]
pub(super) struct SceneJob {
    pub key: String,
    pub spec: JobSpec,
    /// Run time that the user stated.
    pub stated: Option<SimTime>,
    pub submit_ms: i64,
    pub placement: Vec<OnNode>,
}

impl StartScene {
    /// The scene of the last observation.
    ///
    /// # Errors
    /// The reason why the start of the job cannot be predicted.
    pub fn new(
        observer: &ClusterObserver,
        snapshot: &ClusterSnapshot,
        settings: &Deployment,
        asked: AskedStart<'_>,
    ) -> Result<Self, String> {
        let (scenario, observed) = observer.last().ok_or("the cluster was not observed yet")?;
        let mut notes = Vec::new();
        if !observed.services.is_empty() {
            notes.push("services stay as they are in every future".to_owned());
        }
        let mut seen = Observed { services: Vec::new(), ..observed.clone() };
        let of_engine: BTreeMap<&str, &JobSeen> = snapshot.jobs.iter().map(|job| (job.key.as_str(), job)).collect();
        let mut jobs = Vec::with_capacity(seen.jobs.len() + 1);
        for job in &mut seen.jobs {
            let key = observer.key(job.id).unwrap_or_default();
            let of_engine = of_engine.get(key);
            // The first start from now on counts, also for a job that has run before.
            job.started = job.started.filter(|_| !job.placement.is_empty());
            let spec = scenario.workload.jobs[job.id.index()].clone();
            jobs.push(SceneJob {
                key: key.to_owned(),
                stated: of_engine.and_then(|seen| stated(seen)),
                submit_ms: of_engine.map_or(0, |seen| seen.spec.request.submit.as_millis()),
                placement: observer.named(&job.placement),
                spec,
            });
        }
        if let AskedStart::New(new) = asked {
            let id = JobId::at(scenario.workload.jobs.len());
            let mut spec = observer.spec_of(new);
            spec.request.submit = seen.now;
            seen.jobs.push(ObservedJob::submitted(id, seen.now));
            let (stated, placement) = (stated(new), Vec::new());
            jobs.push(SceneJob { key: new.key.clone(), spec, stated, submit_ms: snapshot.at_ms, placement });
        }
        let is_submitted = matches!(asked, AskedStart::Waits(_));
        let key = match asked {
            AskedStart::Waits(key) => key,
            AskedStart::New(new) => new.key.as_str(),
        };
        let asked = jobs.iter().rposition(|job| job.key == key);
        let asked = asked.ok_or("the daemon leaves the job alone, so its policy does not start it")?;
        if !seen.jobs[asked].placement.is_empty() {
            return Err("it runs, or an order to start it is under way".to_owned());
        }
        Ok(Self {
            options: options(scenario, settings),
            scenario: scenario.clone(),
            seen,
            jobs,
            asked,
            is_submitted,
            at_ms: snapshot.at_ms,
            speedup: settings.cycle.speedup,
            notes,
        })
    }

    /// The scene with a sentence on what its prediction leaves out or assumes.
    #[must_use]
    pub fn noting(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }
}

/// Options of a future: the daemon decides in rounds and whenever something changes. The run times of the past hold
/// what starts and restarts took.
fn options(scenario: &Scenario, settings: &Deployment) -> SimOptions {
    let round = SimTime::from_secs_f64(settings.cycle.round_secs);
    SimOptions {
        rounds: Rounds { period: Some(round), on_churn: true },
        switch_cost: SwitchCost::Zero,
        ..scenario.options.clone()
    }
}

/// Run time that the user of a job stated: its time limit, else its estimate.
pub(in crate::daemon) fn stated(job: &JobSeen) -> Option<SimTime> {
    let estimate = match job.spec.work {
        Work::Fixed { duration } => Some(duration),
        Work::Application { .. } | Work::Steps { .. } => None,
    };
    job.spec.request.limit.or(estimate).filter(|stated| *stated > SimTime::ZERO)
}
