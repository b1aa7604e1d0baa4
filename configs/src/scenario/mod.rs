//! From a configuration to scenarios: the cluster, the workload and the environment, as every
//! command reads them.
//!
//! `sim`, `train` and `eval` share these tables, so one file describes a run whatever is done with
//! it.

mod faults;
mod instances;
mod loaning;
mod services;
mod tenants;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use goodput_agents::compose::loaning::Sharing;
use goodput_datasets::synth::{Generator, SynthConfig, SynthError};
use goodput_datasets::{Catalog, DataError, read_workload};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::gym::{EnvOptions, Layout, Reward};
use goodput_env::job::Workload;
use goodput_env::model::{Checkpointing, FaultModel, SwitchCost};
use goodput_env::scenario::{Batching, Information, Resize, Rounds, Scenario, SimOptions};
use goodput_env::tie_break::TieBreak;
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use instances::InstancesConfig;
pub use loaning::{ForecasterConfig, LoaningConfig};
pub use services::{LoadConfig, LoadFile, LoadUnit, ServiceConfig, SloConfig};
pub use tenants::{Burst, CohortConfig, QuotaChangeConfig, QuotaConfig, TenantConfig};

/// The machines: `[[cluster.groups]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    /// Groups of equal nodes.
    pub groups: Vec<NodeGroup>,
}

/// Group of equal nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// Type of accelerator: a name under which the catalog has speeds, or `gpu` for the catalog's
    /// first.
    #[serde(default = "any_accelerator")]
    pub accelerator: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Accelerators per node.
    pub gpus_per_node: u32,
    /// Pool of the nodes; absent: shared by training and services.
    #[serde(default, skip_serializing_if = "is_shared")]
    pub pool: Pool,
}

fn is_shared(pool: &Pool) -> bool {
    *pool == Pool::Shared
}

fn any_accelerator() -> String {
    "gpu".into()
}

/// The jobs: `[workload.synthetic.diurnal]`, `[workload.synthetic.pollux]`, `[workload.file]` or
/// `[[workload.bursts]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadConfig {
    /// Drawn anew for each seed.
    Synthetic(SynthConfig),
    /// Read from a file, the same for each seed.
    File(FileWorkload),
    /// Written down, the same for each seed.
    Bursts(Vec<Burst>),
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
    /// Cost of a change of a job's placement, by name: `zero`, `pollux_const`, `deepboot_afe`, ...
    /// as `goodput list switch-costs` names them.
    pub switch_cost: String,
    /// How a running job's change of size is carried out.
    pub resize: Resize,
    /// Inference instances, for workloads with requests.
    pub instances: InstancesConfig,
    /// Slowdown, in [0, 1), of distributed jobs that share a node.
    pub interference: f64,
    /// Faults of the cluster; absent: nothing fails.
    pub faults: Option<FaultModel>,
    /// How jobs write checkpoints; absent: only jobs that are stopped by plan save their work.
    pub checkpoint: Option<Checkpointing>,
    /// How jobs choose their batch size.
    pub batching: Batching,
    /// Information about jobs that policies are given.
    pub information: Information,
    /// Whether jobs of one application share the measurements of their agents; for `batching =
    /// "agent"`. In the published scheduler the jobs do not share them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared_profiles: bool,
    /// Order of jobs that are submitted at the same instant. Every policy uses this order as its
    /// last tie-break.
    pub tie_break: TieBreak,
    /// Episodes and runs are cut off here, seconds; absent: never.
    pub horizon_secs: Option<f64>,
    /// Job slots in an observation.
    pub slots: usize,
    /// Number of service slots in an observation, with actions for one replica more and one less;
    /// services beyond the slots keep their replicas.
    pub service_slots: usize,
    /// Whether a learned policy lends servers of the inference pool and calls them back.
    pub pool_actions: bool,
    /// Whether observations include the tenant of a job.
    pub tenant_features: bool,
    /// Whether observations distinguish accelerator types, with an action for each type that starts
    /// a job on the type or moves the job there.
    pub type_actions: bool,
    /// Reward of learned policies.
    pub reward: Reward,
}

impl Default for EnvironmentConfig {
    fn default() -> Self {
        Self {
            round_secs: Some(300.0),
            on_churn: true,
            switch_cost: "pollux_const".into(),
            resize: Resize::StopRestart,
            instances: InstancesConfig::default(),
            interference: 0.0,
            faults: None,
            checkpoint: None,
            batching: Batching::Catalog,
            information: Information::Estimate { sigma: 0.5 },
            shared_profiles: false,
            tie_break: TieBreak::Trace,
            horizon_secs: None,
            slots: 64,
            service_slots: 0,
            pool_actions: false,
            tenant_features: false,
            type_actions: false,
            reward: Reward::default(),
        }
    }
}

/// Error of a configuration that parses but cannot be run.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A value outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Value {
        /// The key, dotted.
        key: &'static str,
        /// Value in the file.
        value: String,
        /// Values that the key allows.
        expected: String,
    },
    /// The workload cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The generator's settings make no workload.
    #[error("workload.synthetic: {0}")]
    Synthetic(#[from] SynthError),
    /// Tenants contradict each other or the cluster.
    #[error("tenants: {0}")]
    Tenants(goodput_env::tenant::TenantError),
    /// One of several clusters cannot be run.
    #[error("clusters, {cluster}: {source}")]
    Member {
        /// Name of the cluster.
        cluster: String,
        /// Error of the cluster's settings.
        source: Box<SetupError>,
    },
    /// A service's settings make no service.
    #[error("services, {service}: {source}")]
    Service {
        /// Name of the service.
        service: String,
        /// Error of the service's settings.
        source: Box<SetupError>,
    },
}

/// Scenarios by seed.
#[derive(Clone, Debug)]
pub struct Setup {
    template: Scenario,
    source: Source,
    tenants: Vec<TenantConfig>,
    services: services::Services,
    sharing: Arc<Sharing>,
    tie_break: TieBreak,
}

#[derive(Clone, Debug)]
enum Source {
    Synthetic(Box<Generator>),
    Fixed(Arc<Workload>),
    Bursts(Vec<Burst>, Arc<Workload>),
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
        if environment.type_actions && cluster.types.len() > Layout::MOST_TYPES {
            let expected = format!("false on a cluster of more than {} accelerator types", Layout::MOST_TYPES);
            return Err(SetupError::Value { key: "environment.type_actions", value: "true".into(), expected });
        }
        options.faults.as_ref().map_or(Ok(()), |model| faults::check_script(model, &cluster))?;
        let (source, applications) = match workload {
            WorkloadConfig::Synthetic(config) => {
                (Source::Synthetic(Box::new(config.build(catalog)?)), catalog.applications.clone())
            }
            WorkloadConfig::File(file) => {
                let loaded = Arc::new(read_workload(&file.path, catalog)?.workload);
                (Source::Fixed(loaded.clone()), loaded.applications.clone())
            }
            WorkloadConfig::Bursts(bursts) => {
                let workload = tenants::scripted(bursts, &[])?;
                (Source::Bursts(bursts.clone(), Arc::new(workload)), Vec::new())
            }
        };
        let empty = Arc::new(Workload::new(applications, Vec::new()));
        let template = Scenario::new(cluster, empty, options, 0);
        let tenants = Vec::new();
        let (services, sharing) = Default::default();
        Ok(Self { template, source, tenants, services, sharing, tie_break: environment.tie_break })
    }

    /// With declared tenants, those of the workload in their order.
    ///
    /// # Errors
    /// [`SetupError`] naming the key, the tenant or the cohort, or a tenant of the workload that is
    /// not declared.
    pub fn with_tenants(mut self, tenants: &[TenantConfig], cohorts: &[CohortConfig]) -> Result<Self, SetupError> {
        if tenants.is_empty() && cohorts.is_empty() {
            return Ok(self);
        }
        let types: Vec<&str> = self.template.cluster.types.iter().map(|of| &*of.name).collect();
        let built = Arc::new(tenants::build(tenants, cohorts, &types)?);
        match &mut self.source {
            Source::Synthetic(generator) => {
                let found = generator.tenants().len();
                if found > tenants.len() {
                    return Err(SetupError::Value {
                        key: "tenants",
                        value: format!("{} declared", tenants.len()),
                        expected: format!("one [[tenants]] for each of the {found} tenants of the workload"),
                    });
                }
            }
            Source::Fixed(workload) => {
                let workload = Arc::make_mut(workload);
                tenants::assign(workload, tenants)?;
                workload.tenants = built.clone();
            }
            Source::Bursts(bursts, workload) => {
                let mut scripted = tenants::scripted(bursts, tenants)?;
                tenants::assign(&mut scripted, tenants)?;
                scripted.tenants = built.clone();
                *workload = Arc::new(scripted);
            }
        }
        let mut empty = Workload::clone(&self.template.workload);
        empty.tenants = built;
        self.template.workload = Arc::new(empty);
        self.tenants = tenants.to_vec();
        Ok(self)
    }

    /// Setup with inference services beside the jobs.
    ///
    /// # Errors
    /// [`SetupError`] naming the service and the key or the file.
    pub fn with_services(mut self, services: &[ServiceConfig]) -> Result<Self, SetupError> {
        self.services = services::Services::new(services, &self.template.cluster)?;
        Ok(self)
    }

    /// Setup with services that share the cluster by the given terms and forecaster.
    ///
    /// # Errors
    /// [`SetupError`] naming the key or the file.
    pub fn with_sharing(mut self, loaning: &LoaningConfig, forecaster: &ForecasterConfig) -> Result<Self, SetupError> {
        self.sharing = Arc::new(loaning::sharing(loaning, forecaster, &self.services.of_seed(0))?);
        Ok(self)
    }

    /// How its services share the cluster.
    pub fn sharing(&self) -> &Arc<Sharing> {
        &self.sharing
    }

    /// The scenario of `seed`.
    pub fn scenario(&self, seed: u64) -> Arc<Scenario> {
        let workload = match &self.source {
            Source::Synthetic(generator) => {
                let mut workload = generator.generate(seed);
                // The declared tenants are no fewer than the generator's.
                if tenants::assign(&mut workload, &self.tenants).is_ok() {
                    workload.tenants = self.template.workload.tenants.clone();
                }
                Arc::new(workload)
            }
            Source::Fixed(workload) | Source::Bursts(_, workload) => workload.clone(),
        };
        let workload = match self.tie_break {
            TieBreak::Trace => workload,
            other => {
                let mut workload = Workload::clone(&workload);
                other.arrange(&mut workload.jobs, seed);
                Arc::new(workload)
            }
        };
        let workload = match self.services.is_empty() {
            true => workload,
            false => Arc::new(Workload { services: self.services.of_seed(seed), ..(*workload).clone() }),
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

    /// Names of the first `count` accelerator types of the cluster.
    pub fn type_names(&self, count: usize) -> Vec<String> {
        self.cluster().types.iter().take(count).map(|of| of.name.clone()).collect()
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
            cluster.add_to(group.pool, &group.accelerator, group.nodes, group.gpus_per_node);
        }
        Ok(cluster)
    }
}

impl EnvironmentConfig {
    /// Options of the environment that learned policies observe and act on.
    pub fn gym(&self, cluster: &ClusterConfig) -> EnvOptions {
        let types: BTreeSet<&str> = cluster.groups.iter().map(|group| &*group.accelerator).collect();
        EnvOptions {
            types: if self.type_actions { types.len() } else { 0 },
            slots: self.slots,
            services: self.service_slots,
            pools: self.pool_actions,
            tenants: self.tenant_features,
            reward: self.reward.clone(),
        }
    }

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
        if self.shared_profiles && self.batching != Batching::Agent {
            return Err(value(
                "environment.shared_profiles",
                "true".into(),
                "false where batching is not agent: nothing is measured",
            ));
        }
        if let Information::Estimate { sigma } = self.information
            && !(0.0..=10.0).contains(&sigma)
        {
            return Err(value("environment.information.estimate.sigma", sigma.to_string(), "0 to 10"));
        }
        if self.slots == 0 || self.slots > 4096 {
            return Err(value("environment.slots", self.slots.to_string(), "1 to 4096"));
        }
        if self.service_slots > 1024 {
            return Err(value("environment.service_slots", self.service_slots.to_string(), "0 to 1024"));
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
            instances: self.instances.options()?,
            interference: self.interference,
            faults: self.faults.clone(),
            checkpoint: self.checkpoint,
            batching: self.batching,
            information: self.information,
            shared_profiles: self.shared_profiles,
            horizon: span("environment.horizon_secs", self.horizon_secs)?,
            ..SimOptions::standard()
        })
    }
}
