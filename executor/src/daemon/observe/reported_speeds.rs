//! Speed of jobs by their own reports: each job without an application of the catalog is an
//! application of its own.
//!
//! Policies that go by goodput (Pollux, Sia) see the model fitted to what a job has reported, as
//! its agent would have it in a simulation. As little as possible is made up of what was not
//! measured: before the first report a job scales linearly and is given no more than it needs at
//! least; a type of accelerator that it has not run on is as fast as the one it has run on most; a
//! job that says nothing of its batch sizes keeps to the one it reports. One that has run for
//! [`SILENT`] and said nothing does not speak the protocol, and is a job of known duration and
//! linear speed, as under other policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::cluster::{AcceleratorType, TypeId};
use goodput_env::job::{JobId, Work, Workload};
use goodput_env::model::{BatchLimits, GoodputModel, GradientStats, Sample, ThroughputParams, fit};
use goodput_env::scenario::Scenario;
use goodput_env::state::Profile;
use goodput_env::time::SimTime;

use super::register::UNKNOWN_DURATION;
use super::{AttainedService, ClusterObserver};
use crate::engine::{ClusterSnapshot, JobSeen};

/// A job that has run for so long and reported nothing never will, on the policy's clock.
const SILENT: SimTime = SimTime::from_secs(300);

/// Batch size shown of a job that has not said any: large enough to be shared by any number of
/// accelerators.
const UNKNOWN_BATCH: u32 = 65_536;

/// Linear in the number of accelerators.
const LINEAR: ThroughputParams = ThroughputParams {
    alpha_c: 1e-8,
    beta_c: 1e-3,
    alpha_n: 1e-8,
    beta_n: 1e-8,
    alpha_r: 1e-8,
    beta_r: 1e-8,
    gamma: 1.0,
};

/// Of a batch size that does not change, every sample is worth the same.
const NO_NOISE: GradientStats = GradientStats { sqr: 1.0, var: 0.0 };

/// Entries of the workload's applications that belong to single jobs.
#[derive(Debug, Default)]
pub(super) struct ReportedApplications {
    of_job: BTreeMap<JobId, ReportedApplication>,
    /// Entries of jobs that are over.
    free: Vec<u16>,
}

#[derive(Debug)]
struct ReportedApplication {
    index: u16,
    limits: Option<BatchLimits>,
}

impl ClusterObserver {
    /// Takes in what was said, forgets jobs that are over, and shows the rest as they are known
    /// now.
    pub(super) fn learn(&mut self, snapshot: &ClusterSnapshot) {
        let active = snapshot.jobs.iter().filter(|job| !job.phase.is_over() && job.history.is_none());
        let active: BTreeMap<JobId, &JobSeen> = active.filter_map(|seen| Some((self.id(&seen.key)?, seen))).collect();
        self.past.retain(|id, _| active.contains_key(id));
        for &id in active.keys() {
            let submit = self.scenario.workload.jobs[id.index()].request.submit;
            self.past.entry(id).or_insert_with(|| AttainedService::new(submit));
        }
        for said in &snapshot.said {
            if let Some(past) = self.id(&said.job).and_then(|id| self.past.get_mut(&id)) {
                past.learn(said);
            }
        }
        let mut changed = self.give_back(&active);
        for (&id, seen) in &active {
            changed |= self.show_own(id, seen);
        }
        if changed {
            let Scenario { cluster, workload, options, seed, .. } = &*self.scenario;
            // A new scenario works out the speeds of all applications anew.
            self.scenario = Arc::new(Scenario::new(cluster.clone(), workload.clone(), options.clone(), *seed));
        }
    }

    /// Known speed of a job, in words; empty where nothing is known.
    pub fn known_speed(&self, id: JobId) -> String {
        let Some(past) = self.past.get(&id).filter(|past| !past.learned.is_empty()) else { return String::new() };
        let of_type = |(name, samples): (&str, Vec<Sample>)| {
            let sizes: BTreeSet<u32> = samples.iter().map(|sample| sample.replicas).collect();
            let sizes = sizes.into_iter().map(|gpus| gpus.to_string()).collect::<Vec<_>>().join(", ");
            format!("measured on {sizes} of {name}")
        };
        let mut words = past.learned.types().map(of_type).collect::<Vec<_>>().join("; ");
        let slot = self.reported.of_job.get(&id);
        let own = slot.and_then(|slot| self.scenario.workload.applications.get(usize::from(slot.index)));
        if let Some(own) = own {
            let kind = past
                .profile
                .types()
                .iter()
                .max_by_key(|seen| seen.max_replicas())
                .map_or(TypeId(0), |seen| seen.kind());
            let per_node = self.cluster.gpus_per_node_of(kind).max(1);
            let model = past.profile.model(kind, own.limits);
            let goodput = |gpus: u32| Some(model?.best(gpus.div_ceil(per_node), gpus)?.goodput);
            let one = goodput(1).filter(|one| *one > 0.0);
            let times = [2, 4, 8, 16].into_iter().filter(|gpus| *gpus <= own.max_replicas);
            let times = times.filter_map(|gpus| Some(format!("{gpus} are {:.1} times one", goodput(gpus)? / one?)));
            let times = times.collect::<Vec<_>>().join(", ");
            if !times.is_empty() {
                words = format!("{words}; by the fit {times}");
            }
        }
        words
    }

    /// Takes back the entries of jobs that are over or do not speak the protocol. `true`: there was
    /// one of the latter.
    fn give_back(&mut self, active: &BTreeMap<JobId, &JobSeen>) -> bool {
        if self.reported.of_job.is_empty() {
            return false;
        }
        let silent: BTreeSet<JobId> = self
            .past
            .iter()
            .filter(|(_, past)| past.learned.is_empty() && past.executed() >= SILENT)
            .map(|(&id, _)| id)
            .collect();
        let ReportedApplications { of_job, free } = &mut self.reported;
        let over = |id: &JobId| !active.contains_key(id) || silent.contains(id);
        let mut changed = false;
        let workload = Arc::make_mut(&mut Arc::make_mut(&mut self.scenario).workload);
        of_job.retain(|id, slot| {
            if over(id) {
                free.push(slot.index);
                workload.jobs[id.index()].work = Work::Fixed { duration: duration(active.get(id).copied()) };
                changed |= silent.contains(id);
            }
            !over(id)
        });
        changed
    }

    /// Brings what is shown of a job up to what is known. `true`: its application is another one
    /// now.
    fn show_own(&mut self, id: JobId, seen: &JobSeen) -> bool {
        let Some(past) = self.past.get_mut(&id) else { return false };
        let unread = std::mem::take(&mut past.unread);
        if unread {
            let kind = |name: &str| self.cluster.types.iter().position(|kind| kind.name == name);
            let types = past.learned.types().filter_map(|(name, samples)| Some((TypeId::at(kind(name)?), samples)));
            past.profile = Profile::measured(past.learned.stats().unwrap_or(NO_NOISE), types);
        }
        let spec = &self.scenario.workload.jobs[id.index()];
        let (known, is_own) = (matches!(spec.work, Work::Application { .. }), self.reported.of_job.contains_key(&id));
        let silent = past.learned.is_empty() && past.executed() >= SILENT;
        let adapts = self.scenario.options.batching.is_measured();
        if !adapts || silent || known && !is_own || matches!(spec.work, Work::Steps { .. }) {
            return false;
        }
        let limits = past.learned.stats().and(seen.batch);
        if !unread && self.reported.of_job.get(&id).is_some_and(|slot| slot.limits == limits) {
            return false;
        }
        let per_node = |kind: usize| self.cluster.gpus_per_node_of(TypeId::at(kind)).max(1);
        let own = of_job(&spec.request, duration(Some(seen)), past, limits, &self.cluster.types, per_node);
        self.put(id, Arc::new(own), limits);
        true
    }

    fn put(&mut self, id: JobId, application: Arc<Application>, limits: Option<BatchLimits>) {
        let Workload { applications, jobs, .. } = Arc::make_mut(&mut Arc::make_mut(&mut self.scenario).workload);
        let index = match (self.reported.of_job.get(&id), self.reported.free.pop()) {
            (Some(slot), unused) => {
                self.reported.free.extend(unused);
                slot.index
            }
            (None, Some(index)) => index,
            (None, None) => match u16::try_from(applications.len()) {
                Ok(index) => {
                    applications.push(application.clone());
                    index
                }
                // As many jobs as that at once are beyond what is numbered; this one stays one of
                // linear speed.
                Err(_) => return,
            },
        };
        applications[usize::from(index)] = application;
        jobs[id.index()].work = Work::application(index);
        self.reported.of_job.insert(id, ReportedApplication { index, limits });
    }
}

/// Duration of the job on the size that it asked for, as its user says.
fn duration(seen: Option<&JobSeen>) -> SimTime {
    match seen.map(|seen| seen.spec.work) {
        Some(Work::Fixed { duration }) if duration > SimTime::ZERO => duration,
        _ => UNKNOWN_DURATION,
    }
}

/// The application that a job is, by what is known of it.
fn of_job(
    request: &goodput_env::job::JobRequest,
    duration: SimTime,
    past: &AttainedService,
    limits: Option<BatchLimits>,
    types: &[AcceleratorType],
    per_node: impl Fn(usize) -> u32,
) -> Application {
    let reported = past.learned.batch().unwrap_or(UNKNOWN_BATCH).max(1);
    let fixed = BatchLimits { init: reported, max: reported, min_local: 1, max_local: reported };
    let limits = limits.unwrap_or(fixed);
    let stats = past.learned.stats().unwrap_or(NO_NOISE);
    let measured: BTreeMap<&str, Vec<Sample>> = past.learned.types().collect();
    let most = measured.values().max_by_key(|samples| samples.iter().map(|sample| sample.replicas).max());
    let otherwise = most.map_or(LINEAR, |samples| fit(samples));
    let params_on = |(at, kind): (usize, &AcceleratorType)| {
        let fitted = past.profile.on(TypeId::at(at)).map(|seen| seen.params());
        (kind.name.clone(), fitted.unwrap_or(otherwise))
    };
    let params: BTreeMap<String, ThroughputParams> = types.iter().enumerate().map(params_on).collect();
    // What its user says of its duration, in the unit of its progress.
    let asked =
        GoodputModel { params: otherwise, stats, limits }.best(request.gpus.div_ceil(per_node(0)), request.gpus);
    let rate = asked.map_or(1.0, |best| best.goodput / f64::from(limits.init));
    let table = |value: f64| EpochTable::constant(value);
    Application {
        name: request.name.clone(),
        limits,
        max_replicas: request.max_gpus(),
        fixed_batch: None,
        tensors: None,
        epochs: vec![(duration.as_secs_f64() * rate).max(f64::MIN_POSITIVE)],
        gradients: GradientTable { sqr: table(stats.sqr), var: table(stats.var) },
        iterations: None,
        reference: types.first().map_or_else(String::new, |kind| kind.name.clone()),
        params,
        local_limits: BTreeMap::new(),
        measured: BTreeMap::new(),
    }
}
