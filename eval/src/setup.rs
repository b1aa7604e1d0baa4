//! From a configuration to scenarios: the cluster, the workload and the environment, as every command reads them.
//!
//! `sim`, `train` and `eval` share these tables, so one file describes a run whatever is done with it.

mod faults;

use std::path::PathBuf;
use std::sync::Arc;

use goodput_datasets::synth::{Generator, SynthConfig, SynthError};
use goodput_datasets::{Catalog, DataError, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::gym::Reward;
use goodput_env::job::Workload;
use goodput_env::model::{Checkpointing, FaultModel, SwitchCost};
use goodput_env::sim::{Resize, Rounds, Scenario, SimOptions};
use goodput_env::tie_break::TieBreak;
use goodput_env::time::SimTime;
use goodput_env::view::{Batching, Information};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The machines: `[[cluster.groups]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    /// Groups of equal nodes.
    pub groups: Vec<NodeGroup>,
}

/// Equal nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// Type of accelerator: a name under which the catalog has speeds, or `gpu` for the catalog's first.
    #[serde(default = "any_accelerator")]
    pub accelerator: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Accelerators per node.
    pub gpus_per_node: u32,
}

fn any_accelerator() -> String {
    "gpu".into()
}

/// The jobs: `[workload.synthetic.diurnal]`, `[workload.synthetic.pollux]` or `[workload.file]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadConfig {
    /// Drawn anew for each seed.
    Synthetic(SynthConfig),
    /// Read from a file, the same for each seed.
    File(FileWorkload),
}

/// A workload in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileWorkload {
    /// Canonical Parquet, or csv in a format that `goodput list formats` names.
    pub path: PathBuf,
}

/// How the cluster behaves: `[environment]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentConfig {
    /// Seconds between scheduling rounds; absent: none.
    pub round_secs: Option<f64>,
    /// Whether policies are also asked on each arrival and completion.
    pub on_churn: bool,
    /// Cost of changing a job's placement, by name: `zero`, `pollux_const`, `deepboot_afe`, ... as `goodput list switch-costs` names them.
    pub switch_cost: String,
    /// How a running job's change of size is carried out.
    pub resize: Resize,
    /// Slowdown, in [0, 1), of distributed jobs that share a node.
    pub interference: f64,
    /// What breaks; absent: nothing.
    pub faults: Option<FaultModel>,
    /// How jobs write checkpoints; absent: only jobs that are stopped by plan save their work.
    pub checkpoint: Option<Checkpointing>,
    /// How jobs choose their batch size.
    pub batching: Batching,
    /// What policies know.
    pub information: Information,
    /// Who goes first among jobs submitted at the same instant, and with it the last tie-break of every policy.
    pub tie_break: TieBreak,
    /// Episodes and runs are cut off here, seconds; absent: never.
    pub horizon_secs: Option<f64>,
    /// Job slots in an observation.
    pub slots: usize,
    /// Reward.
    pub reward: Reward,
}

impl Default for EnvironmentConfig {
    fn default() -> Self {
        Self {
            round_secs: Some(300.0),
            on_churn: true,
            switch_cost: "pollux_const".into(),
            resize: Resize::StopRestart,
            interference: 0.0,
            faults: None,
            checkpoint: None,
            batching: Batching::Catalog,
            information: Information::Estimate { sigma: 0.5 },
            tie_break: TieBreak::Trace,
            horizon_secs: None,
            slots: 64,
            reward: Reward::default(),
        }
    }
}

/// Why a configuration that parses cannot be run.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A value outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Value {
        /// The key, dotted.
        key: &'static str,
        /// What it says.
        value: String,
        /// What it should say.
        expected: String,
    },
    /// The workload cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The generator's settings make no workload.
    #[error("workload.synthetic: {0}")]
    Synthetic(#[from] SynthError),
}

/// Scenarios by seed.
#[derive(Clone, Debug)]
pub struct Setup {
    template: Scenario,
    source: Source,
    tie_break: TieBreak,
}

#[derive(Clone, Debug)]
enum Source {
    Synthetic(Box<Generator>),
    Fixed(Arc<Workload>),
}

impl Setup {
    /// Checks the tables and prepares what all seeds share.
    ///
    /// # Errors
    /// [`SetupError`] naming the key or the file.
    pub fn new(
        cluster: &ClusterConfig,
        workload: &WorkloadConfig,
        environment: &EnvironmentConfig,
    ) -> Result<Self, SetupError> {
        let catalog = Catalog::shipped();
        let cluster = Arc::new(cluster.build()?);
        let options = environment.options()?;
        options.faults.as_ref().map_or(Ok(()), |model| faults::check_script(model, &cluster))?;
        let (source, applications) = match workload {
            WorkloadConfig::Synthetic(config) => {
                (Source::Synthetic(Box::new(config.build(catalog)?)), catalog.applications.clone())
            }
            WorkloadConfig::File(file) => {
                let loaded = Arc::new(read_workload(&file.path, catalog)?.workload);
                (Source::Fixed(loaded.clone()), loaded.applications.clone())
            }
        };
        let empty = Arc::new(Workload::new(applications, Vec::new()));
        let template = Scenario::new(cluster, empty, options, 0);
        Ok(Self { template, source, tie_break: environment.tie_break })
    }

    /// The scenario of `seed`.
    pub fn scenario(&self, seed: u64) -> Arc<Scenario> {
        let workload = match &self.source {
            Source::Synthetic(generator) => Arc::new(generator.generate(seed)),
            Source::Fixed(workload) => workload.clone(),
        };
        let workload = match self.tie_break {
            TieBreak::Trace => workload,
            other => {
                let mut workload = Workload::clone(&workload);
                other.arrange(&mut workload.jobs, seed);
                Arc::new(workload)
            }
        };
        Arc::new(self.template.with_jobs(workload, seed))
    }

    /// The options all scenarios share.
    pub fn options(&self) -> &SimOptions {
        &self.template.options
    }

    /// The cluster all scenarios share.
    pub fn cluster(&self) -> &Cluster {
        &self.template.cluster
    }
}

impl ClusterConfig {
    /// Builds the cluster.
    ///
    /// # Errors
    /// [`SetupError::Value`] for empty groups.
    pub fn build(&self) -> Result<Cluster, SetupError> {
        let value = |key, value: String, expected: &str| SetupError::Value { key, value, expected: expected.into() };
        if self.groups.is_empty() {
            return Err(value("cluster.groups", "empty".into(), "at least one group of nodes"));
        }
        let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
        for group in &self.groups {
            if group.nodes == 0 || group.nodes > 1_000_000 {
                return Err(value("cluster.groups.nodes", group.nodes.to_string(), "1 to 1000000"));
            }
            if group.gpus_per_node == 0 || group.gpus_per_node > 1024 {
                return Err(value("cluster.groups.gpus_per_node", group.gpus_per_node.to_string(), "1 to 1024"));
            }
            cluster.add(&group.accelerator, group.nodes, group.gpus_per_node);
        }
        Ok(cluster)
    }
}

impl EnvironmentConfig {
    /// The simulator's options.
    ///
    /// # Errors
    /// [`SetupError::Value`] for values outside their range.
    pub fn options(&self) -> Result<SimOptions, SetupError> {
        let value = |key, value: String, expected: &str| SetupError::Value { key, value, expected: expected.into() };
        let span = |key, secs: Option<f64>| match secs {
            Some(secs) if !(0.001..=1e12).contains(&secs) => {
                Err(value(key, secs.to_string(), "a positive number of seconds"))
            }
            secs => Ok(secs.map(SimTime::from_secs_f64)),
        };
        let period = span("environment.round_secs", self.round_secs)?;
        if period.is_none() && !self.on_churn {
            return Err(value(
                "environment.on_churn",
                "false".into(),
                "true where there is no round_secs, or no policy is ever asked",
            ));
        }
        if !(0.0..1.0).contains(&self.interference) {
            return Err(value("environment.interference", self.interference.to_string(), "at least 0 and below 1"));
        }
        if let Information::Estimate { sigma } = self.information
            && !(0.0..=10.0).contains(&sigma)
        {
            return Err(value("environment.information.estimate.sigma", sigma.to_string(), "0 to 10"));
        }
        if self.slots == 0 || self.slots > 4096 {
            return Err(value("environment.slots", self.slots.to_string(), "1 to 4096"));
        }
        if !(self.reward.scale_secs > 0.0 && self.reward.scale_secs.is_finite()) {
            return Err(value(
                "environment.reward.scale_secs",
                self.reward.scale_secs.to_string(),
                "a positive number of seconds",
            ));
        }
        self.faults.as_ref().map_or(Ok(()), faults::check_faults)?;
        self.checkpoint.as_ref().map_or(Ok(()), faults::check_checkpoint)?;
        let switch_cost = SwitchCost::by_name(&self.switch_cost).ok_or_else(|| {
            value("environment.switch_cost", self.switch_cost.clone(), &SwitchCost::names().join(" or "))
        })?;
        // Some models are of systems in which a job goes on while its size changes.
        let resize = match self.resize {
            Resize::StopRestart if switch_cost.overlaps() => Resize::Overlapped,
            resize => resize,
        };
        Ok(SimOptions {
            rounds: Rounds { period, on_churn: self.on_churn },
            switch_cost,
            resize,
            interference: self.interference,
            faults: self.faults.clone(),
            checkpoint: self.checkpoint,
            batching: self.batching,
            information: self.information,
            horizon: span("environment.horizon_secs", self.horizon_secs)?,
            ..SimOptions::standard()
        })
    }
}
