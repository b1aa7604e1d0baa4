//! Speeds on every accelerator type of a cluster: goodput-optimal batch sizes and rates of
//! applications at every size, and rates of job classes. The tables are computed once and shared by
//! all runs.

use std::sync::{Arc, OnceLock};

use crate::application::{Application, Pace};
use crate::cluster::{Cluster, TypeId};
use crate::job::{JobClass, Work, Workload};
use crate::model::{BatchConfig, GoodputModel, ThroughputParams};
use crate::placement::packed_shape;

/// The best way to run an application on a packed allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// Batch size per replica and accumulation steps.
    pub batch: BatchConfig,
    /// True progress, scale-invariant iterations per second.
    pub rate: f64,
}

/// Tables by application, accelerator type, epoch and number of replicas; rows are filled on first
/// use.
#[derive(Debug)]
pub struct SpeedTables {
    /// Accelerators of the largest node of each type.
    gpus_per_node: Vec<u32>,
    /// Accelerators of the type with most of them, where there are several types; no limit
    /// otherwise.
    most_of_one_type: u32,
    /// By application, then accelerator type.
    apps: Vec<AppSpeeds>,
    /// Work per second by job class and accelerator type, then stage of the class.
    classes: Vec<Vec<Option<f64>>>,
    /// Steps per second beside another class: by job class, the other class, then accelerator type.
    beside: Vec<Option<f64>>,
}

#[derive(Debug)]
struct AppSpeeds {
    app: Arc<Application>,
    pace: Option<Pace>,
    gpus_per_node: u32,
    /// By epoch; each row by replicas - 1.
    rows: Vec<OnceLock<Box<[Option<Best>]>>>,
}

impl SpeedTables {
    /// Prepares tables for all that `workload` runs on each accelerator type of `cluster`.
    pub fn new(cluster: &Cluster, workload: &Workload) -> Self {
        let kinds = cluster.types.len().max(1);
        let gpus_per_node: Vec<u32> = (0..kinds).map(|kind| cluster.gpus_per_node_of(TypeId::at(kind))).collect();
        let name = |kind: usize| cluster.types.get(kind).map_or("gpu", |kind| kind.name.as_str());
        let app_speeds = |app: &Arc<Application>, kind: usize| AppSpeeds {
            app: app.clone(),
            pace: app.pace(name(kind)),
            gpus_per_node: gpus_per_node[kind],
            rows: app.epochs.iter().map(|_| OnceLock::new()).collect(),
        };
        let apps = workload
            .applications
            .iter()
            .flat_map(|app| (0..kinds).map(|kind| app_speeds(app, kind)).collect::<Vec<_>>())
            .collect();
        let class_speed = |class: &Arc<JobClass>, kind: usize| -> Vec<Option<f64>> {
            (0..class.stages()).map(|stage| class.work_per_sec(stage, name(kind))).collect()
        };
        let classes = workload
            .classes
            .iter()
            .flat_map(|class| (0..kinds).map(|kind| class_speed(class, kind)).collect::<Vec<_>>())
            .collect();
        let beside = workload
            .classes
            .iter()
            .flat_map(|class| workload.classes.iter().map(move |other| (class, other)))
            .flat_map(|(class, other)| {
                (0..kinds).map(|kind| speed_beside(class, other, name(kind))).collect::<Vec<_>>()
            })
            .collect();
        let of_type = |kind: usize| -> u32 {
            let nodes = cluster.nodes.iter().filter(|node| node.accelerator.index() == kind);
            nodes.map(|node| node.gpus).sum()
        };
        let most_of_one_type = if kinds > 1 { (0..kinds).map(of_type).max().unwrap_or(0) } else { u32::MAX };
        Self { gpus_per_node, most_of_one_type, apps, classes, beside }
    }

    /// Accelerators of the largest node of type `kind`; 1 where there is none.
    pub fn gpus_per_node(&self, kind: TypeId) -> u32 {
        self.gpus_per_node.get(kind.index()).copied().unwrap_or(1)
    }

    /// Most accelerators that a job can hold where types differ, for it holds one type only; no
    /// limit on a cluster of one type.
    pub fn most_of_one_type(&self) -> u32 {
        self.most_of_one_type
    }

    /// Speed of application `index` on accelerator type `kind`; `None` where nothing is known of
    /// the application there.
    pub fn pace(&self, index: u16, kind: TypeId) -> Option<&Pace> {
        self.app(index, kind)?.pace.as_ref()
    }

    /// Fitted parameters of application `index` on accelerator type `kind`.
    pub fn params(&self, index: u16, kind: TypeId) -> Option<&ThroughputParams> {
        self.pace(index, kind).map(|pace| &pace.params)
    }

    /// The best batch size and its rate on `gpus` packed accelerators of type `kind` in `epoch`.
    pub fn best(&self, index: u16, kind: TypeId, epoch: u32, gpus: u32) -> Option<Best> {
        *self.row(index, kind, epoch)?.get(gpus.checked_sub(1)? as usize)?
    }

    /// Best batch sizes and rates for all sizes, by accelerators - 1.
    pub fn row(&self, index: u16, kind: TypeId, epoch: u32) -> Option<&[Option<Best>]> {
        let app = self.app(index, kind)?;
        // Past the last epoch that was measured, speeds are those of that one.
        let epoch = epoch.min((app.rows.len() as u32).checked_sub(1)?);
        Some(app.rows[epoch as usize].get_or_init(|| app.row(epoch)))
    }

    /// Work per second of job class `class` in its stage `stage` on accelerator type `kind`; `None` where it was not
    /// measured or cannot run. Without stages of batch size, work is steps.
    pub fn work_per_sec(&self, class: u16, stage: u32, kind: TypeId) -> Option<f64> {
        let kinds = self.gpus_per_node.len();
        let stages = self.classes.get(class as usize * kinds..)?.get(..kinds)?.get(kind.index())?;
        *stages.get((stage as usize).min(stages.len().checked_sub(1)?))?
    }

    /// Steps per second of job class `class` beside one of class `other` on the same accelerators
    /// of type `kind`; `None` where they were not measured together or do not fit.
    pub fn steps_per_sec_beside(&self, class: u16, other: u16, kind: TypeId) -> Option<f64> {
        let kinds = self.gpus_per_node.len();
        let classes = self.classes.len() / kinds;
        let row = class as usize * classes + other as usize;
        *self.beside.get(row * kinds..)?.get(..kinds)?.get(kind.index())?
    }

    /// Whether anything is known of such work on accelerator type `kind`.
    pub fn runs_on(&self, work: Work, kind: TypeId) -> bool {
        match work {
            Work::Fixed { .. } => true,
            Work::Application { index, .. } => self.pace(index, kind).is_some(),
            Work::Steps { class, .. } => self.work_per_sec(class, 0, kind).is_some(),
        }
    }

    fn app(&self, index: u16, kind: TypeId) -> Option<&AppSpeeds> {
        let kinds = self.gpus_per_node.len();
        self.apps.get(index as usize * kinds..)?.get(..kinds)?.get(kind.index())
    }
}

fn speed_beside(class: &JobClass, other: &JobClass, kind: &str) -> Option<f64> {
    // Only jobs of one size share accelerators.
    let known = (class.gpus == other.gpus).then(|| class.steps_per_sec_beside.get(kind))?;
    known?.get(&other.name).copied()
}

impl AppSpeeds {
    fn row(&self, epoch: u32) -> Box<[Option<Best>]> {
        (1..=self.app.max_replicas).map(|gpus| self.compute(epoch, gpus)).collect()
    }

    fn compute(&self, epoch: u32, gpus: u32) -> Option<Best> {
        let pace = self.pace.as_ref()?;
        let batch = match self.app.fixed_batch {
            Some(total) => pace.limits.split(total, gpus),
            None => {
                let stats = self.app.gradients.at(f64::from(self.app.limits.init), epoch);
                let nodes = gpus.div_ceil(self.gpus_per_node);
                let model = GoodputModel { params: pace.params, stats, limits: pace.limits };
                model.best(nodes, gpus)?.batch
            }
        };
        // The batch is chosen by the fitted model, as a job's agent would; the rate is the true
        // one.
        let step = pace.step_time(&packed_shape(gpus, self.gpus_per_node), batch.atomic).ok()?;
        Some(Best { batch, rate: self.app.progress_rate(step, gpus, batch, epoch) })
    }
}
