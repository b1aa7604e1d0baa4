//! One run's fixed inputs, shared by all simulators of it.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::job::{JobId, Work, Workload};
use crate::model::{BatchConfig, GoodputModel};
use crate::sim::options::SimOptions;
use crate::sim::speeds::Speeds;

/// Cluster, workload, options and master seed: what determines a run, together with the policy.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The machines.
    pub cluster: Arc<Cluster>,
    /// The jobs.
    pub workload: Arc<Workload>,
    /// Precomputed speeds of the workload's applications on the cluster.
    pub speeds: Arc<Speeds>,
    /// Options.
    pub options: SimOptions,
    /// Master seed.
    pub seed: u64,
}

impl Scenario {
    /// Puts the inputs together and prepares the speed tables.
    pub fn new(cluster: Arc<Cluster>, workload: Arc<Workload>, options: SimOptions, seed: u64) -> Self {
        let speeds = Arc::new(Speeds::new(&cluster, &workload.applications));
        Self { cluster, workload, speeds, options, seed }
    }

    /// The same cluster and applications with other jobs and seed; the speed tables are shared.
    pub fn with_jobs(&self, workload: Arc<Workload>, seed: u64) -> Self {
        Self { workload, seed, ..self.clone() }
    }

    /// The goodput-optimal batch size by the catalogued model on `gpus` accelerators of `nodes` nodes.
    pub(crate) fn best_batch(&self, index: u16, epoch: u32, nodes: u32, gpus: u32) -> Option<BatchConfig> {
        let app = &self.workload.applications[index as usize];
        let stats = app.gradients.at(f64::from(app.limits.init), epoch);
        GoodputModel { params: *self.speeds.params(index)?, stats, limits: app.limits }
            .best(nodes, gpus)
            .map(|best| app.limits.capped(best.batch, gpus))
    }

    /// All work of a job in its unit: scale-invariant iterations, or seconds at the requested size.
    pub(crate) fn total_work(&self, job: JobId) -> f64 {
        match self.workload.jobs[job.index()].work {
            Work::Fixed { duration } => duration.as_secs_f64(),
            Work::Application { index } => self.workload.applications[index as usize].total_work(),
        }
    }
}
