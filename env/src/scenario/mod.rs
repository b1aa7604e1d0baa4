//! One run's fixed inputs, shared by all simulators of it.

mod allocation;
mod alone;
mod information;
mod limits;
mod mixing;
mod options;
mod preset;
mod shapes;
mod speeds;

use std::sync::{Arc, OnceLock};

use crate::cluster::{Cluster, TypeId};
use crate::job::{JobId, WHOLE, Work, Workload};
use crate::model::{BatchConfig, GoodputModel};
use crate::placement::Placement;
use crate::service::{Service, ServiceId, ServingProfile};

pub use allocation::Allocation;
pub use information::{Batching, Information};
pub use mixing::NormalisedWorkers;
pub use options::{CardSharing, EpochEnd, InstanceOptions, Release, Resize, Rounds, SimOptions};
pub use preset::Preset;
pub use shapes::{JobShape, JobShapes};
pub use speeds::{Best, SpeedTables};

/// Cluster, workload, options and master seed: what determines a run, together with the policy.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Machines of the run, before anything fails.
    pub cluster: Arc<Cluster>,
    /// Jobs, services and requests of the run.
    pub workload: Arc<Workload>,
    /// Precomputed speeds of the workload's applications on the cluster.
    pub speeds: Arc<SpeedTables>,
    /// Serving profiles by service, then accelerator type.
    pub profiles: Arc<[Option<ServingProfile>]>,
    /// Shapes of the workload's jobs, computed on first use.
    pub shapes: OnceLock<JobShapes>,
    /// Run times of [`Self::alone_secs`], computed on first use.
    pub alone: OnceLock<Box<[Option<f64>]>>,
    /// Options of the run: decision points, costs, information.
    pub options: SimOptions,
    /// Master seed of all random streams of the run.
    pub seed: u64,
}

impl Scenario {
    /// Puts the inputs together and prepares the speed tables.
    pub fn new(cluster: Arc<Cluster>, workload: Arc<Workload>, options: SimOptions, seed: u64) -> Self {
        let workload = divided(&cluster, workload, &options);
        let speeds = Arc::new(SpeedTables::new(&cluster, &workload));
        let profiles = profiles(&cluster, &workload);
        Self { cluster, workload, speeds, profiles, shapes: OnceLock::new(), alone: OnceLock::new(), options, seed }
    }

    /// Speed of a replica of `service` on accelerator type `kind`; `None` where it cannot run
    /// there.
    pub fn profile(&self, service: ServiceId, kind: TypeId) -> Option<&ServingProfile> {
        let kinds = self.cluster.types.len();
        self.profiles.get(service.index() * kinds..)?.get(..kinds)?.get(kind.index())?.as_ref()
    }

    /// Shapes of the workload's jobs.
    pub fn shapes(&self) -> &JobShapes {
        self.shapes.get_or_init(|| JobShapes::new(&self.workload, &self.speeds, self.cluster.types.len()))
    }

    /// The accelerator type of `placement`; the first type where it is empty.
    pub fn kind_of(&self, placement: &Placement) -> TypeId {
        match placement.slices().first() {
            Some(first) if self.cluster.types.len() > 1 => self.cluster.type_of(first.node),
            _ => TypeId(0),
        }
    }

    /// Steps per second of `job` beside `partner` on the same accelerators of type `kind`; `None`
    /// where nothing is known of it.
    pub(crate) fn rate_beside(&self, job: JobId, partner: JobId, kind: TypeId) -> Option<f64> {
        let class = |job: JobId| match self.workload.jobs.get(job.index())?.work {
            Work::Steps { class, .. } => Some(class),
            Work::Fixed { .. } | Work::Application { .. } => None,
        };
        self.speeds.steps_per_sec_beside(class(job)?, class(partner)?, kind)
    }

    /// Mean work per second of a job of class `index` over all its `work`, alone on accelerator type `kind`; `None`
    /// where a stage that the job reaches was not measured there.
    pub fn mean_work_per_sec(&self, index: u16, work: f64, kind: TypeId) -> Option<f64> {
        let class = self.workload.classes.get(index as usize)?;
        let first = self.speeds.work_per_sec(index, 0, kind)?;
        if class.stage_end(0) >= work {
            return Some(first);
        }
        let (mut done, mut secs) = (0.0, 0.0);
        for stage in 0..=class.stage_at(work) {
            let end = class.stage_end(stage).min(work);
            secs += (end - done) / self.speeds.work_per_sec(index, stage as u32, kind)?;
            done = end;
        }
        Some(work / secs)
    }

    /// Scenario on this cluster with these applications, but other jobs and another seed. The speed
    /// tables are shared.
    pub fn with_jobs(&self, workload: Arc<Workload>, seed: u64) -> Self {
        let workload = divided(&self.cluster, workload, &self.options);
        let profiles = profiles(&self.cluster, &workload);
        Self { workload, seed, profiles, shapes: OnceLock::new(), alone: OnceLock::new(), ..self.clone() }
    }

    /// The goodput-optimal batch size by the catalogued model on `gpus` accelerators of type `kind`
    /// on `nodes` nodes.
    pub(crate) fn best_batch(
        &self,
        index: u16,
        kind: TypeId,
        epoch: u32,
        nodes: u32,
        gpus: u32,
    ) -> Option<BatchConfig> {
        let app = &self.workload.applications[index as usize];
        let stats = app.gradients.at(f64::from(app.limits.init), epoch);
        let pace = self.speeds.pace(index, kind)?;
        GoodputModel { params: pace.params, stats, limits: pace.limits }
            .best(nodes, gpus)
            .map(|best| pace.limits.capped(best.batch, gpus))
    }

    /// All work of a job in its unit: scale-invariant iterations, steps, or seconds at the
    /// requested size.
    pub(crate) fn total_work(&self, job: JobId) -> f64 {
        match self.workload.jobs[job.index()].work {
            Work::Fixed { duration } => duration.as_secs_f64(),
            Work::Application { index, work_milli } => {
                self.workload.applications[index as usize].total_work() * (f64::from(work_milli) / f64::from(WHOLE))
            }
            Work::Steps { steps, .. } => steps,
        }
    }

    /// Work of a job at the end of its epoch number `epoch`, from 0: at most all of it. What is no
    /// application has one epoch a stage of its class, and one if it has no class.
    pub(crate) fn epoch_end(&self, job: JobId, epoch: u32) -> f64 {
        let total = self.total_work(job);
        match (self.workload.application(job), self.workload.class(job)) {
            (Some(app), _) => app.epoch_end(epoch).min(total),
            (None, Some(class)) => class.stage_end(epoch as usize).min(total),
            (None, None) => total,
        }
    }

    /// Epoch of a job that has done `work` and is not complete, as [`epoch_end`](Self::epoch_end) counts epochs.
    pub(crate) fn epoch_at(&self, job: JobId, work: f64) -> u32 {
        // All the work done would count as one epoch too many, so it stays below that.
        let work = work.min(self.total_work(job) * (1.0 - f64::EPSILON));
        match (self.workload.application(job), self.workload.class(job)) {
            (Some(app), _) => app.epochs_by(work),
            (None, Some(class)) => class.stage_at(work) as u32,
            (None, None) => 0,
        }
    }
}

/// The workload with tenants that hold what the run's allocation lets them hold.
fn divided(cluster: &Cluster, workload: Arc<Workload>, options: &SimOptions) -> Arc<Workload> {
    let Some(allocation) = options.allocation.filter(|allocation| !allocation.lends()) else { return workload };
    let tenants = Arc::new(allocation.of_tenants(cluster, &workload.tenants));
    Arc::new(Workload { tenants, ..Workload::clone(&workload) })
}

fn profiles(cluster: &Cluster, workload: &Workload) -> Arc<[Option<ServingProfile>]> {
    let by_type = |service: &Arc<Service>| -> Vec<_> {
        cluster.types.iter().map(|kind| service.profile(&kind.name).cloned()).collect()
    };
    workload.services.iter().flat_map(by_type).collect()
}
