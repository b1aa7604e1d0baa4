//! Goodput-optimal batch sizes and rates of every application at every size, computed once and shared by all runs.

use std::sync::{Arc, OnceLock};

use crate::application::Application;
use crate::cluster::Cluster;
use crate::model::{BatchConfig, GoodputModel, ThroughputParams};
use crate::view::packed_shape;

/// The best way to run an application on a packed allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// Batch size per replica and accumulation steps.
    pub batch: BatchConfig,
    /// True progress, scale-invariant iterations per second.
    pub rate: f64,
}

/// Tables by application, epoch and number of replicas; rows are filled on first use.
#[derive(Debug)]
pub struct Speeds {
    apps: Vec<AppSpeeds>,
}

#[derive(Debug)]
struct AppSpeeds {
    app: Arc<Application>,
    params: Option<ThroughputParams>,
    gpus_per_node: u32,
    /// By epoch; each row by replicas - 1.
    rows: Vec<OnceLock<Box<[Option<Best>]>>>,
}

impl Speeds {
    /// Prepares tables for `applications` on the first accelerator type of `cluster`.
    pub fn new(cluster: &Cluster, applications: &[Arc<Application>]) -> Self {
        let accelerator = cluster.types.first().map_or("gpu", |kind| kind.name.as_str());
        let apps = applications
            .iter()
            .map(|app| AppSpeeds {
                app: app.clone(),
                params: app.params(accelerator).copied(),
                gpus_per_node: cluster.gpus_per_node(),
                rows: app.epochs.iter().map(|_| OnceLock::new()).collect(),
            })
            .collect();
        Self { apps }
    }

    /// Fitted parameters of application `index` on this cluster.
    pub fn params(&self, index: u16) -> Option<&ThroughputParams> {
        self.apps.get(index as usize)?.params.as_ref()
    }

    /// The best batch size and its rate on `gpus` packed accelerators in `epoch`.
    pub fn best(&self, index: u16, epoch: u32, gpus: u32) -> Option<Best> {
        *self.row(index, epoch)?.get(gpus.checked_sub(1)? as usize)?
    }

    /// The same for all sizes, by accelerators - 1.
    pub fn row(&self, index: u16, epoch: u32) -> Option<&[Option<Best>]> {
        let app = self.apps.get(index as usize)?;
        Some(app.rows.get(epoch as usize)?.get_or_init(|| app.row(epoch)))
    }
}

impl AppSpeeds {
    fn row(&self, epoch: u32) -> Box<[Option<Best>]> {
        (1..=self.app.max_replicas).map(|gpus| self.compute(epoch, gpus)).collect()
    }

    fn compute(&self, epoch: u32, gpus: u32) -> Option<Best> {
        let params = self.params?;
        let batch = match self.app.fixed_batch {
            Some(total) => self.app.limits.split(total, gpus),
            None => {
                let stats = self.app.gradients.at(f64::from(self.app.limits.init), epoch);
                let nodes = gpus.div_ceil(self.gpus_per_node);
                GoodputModel { params, stats, limits: self.app.limits }.best(nodes, gpus)?.batch
            }
        };
        let shape = packed_shape(gpus, self.gpus_per_node);
        let step = self.app.step_time(&params, &shape, batch.atomic).ok()?;
        Some(Best { batch, rate: self.app.progress_rate(step, gpus, batch, epoch) })
    }
}
