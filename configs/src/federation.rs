//! Configuration of a federation: the servers that move, the coordinator, and the clusters.

use goodput_agents::compose::NamedPolicy;
use goodput_agents::compose::coordinator::Coordinator;
use goodput_agents::compose::loaning::{Composite, Sharing, Variant};
use goodput_agents::compose::serving::{Ahead, Decided, ForecastingOptions, Now, Outlook};
use goodput_env::cluster::Pool;
use goodput_env::policy::{Policy, Scope};
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CheckError;
use crate::kind::Kind;
use crate::policies::{self, PolicyText};
use crate::reader::ConfigFile;
use crate::scenario::{
    ClusterConfig, EnvironmentConfig, ForecasterConfig, LoaningConfig, NodeGroup, ServiceConfig, Setup, SetupError,
    WorkloadConfig,
};

/// Clusters that can lend each other servers: `goodput federate FILE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FederationConfig {
    /// Name of the federation.
    pub name: String,
    /// First seed of the repetitions; absent: 0.
    #[serde(default)]
    pub seed: u64,
    /// Repetitions, each with workloads and loads of its own.
    #[serde(default = "one")]
    pub seeds: u64,
    /// The servers that move. They are for inference, and training borrows them.
    pub server: ServerConfig,
    /// Coordinator that moves servers between clusters.
    #[serde(default)]
    pub coordinator: CoordinatorConfig,
    /// Behaviour of every cluster.
    #[serde(default)]
    pub environment: EnvironmentConfig,
    /// On what terms services and training share each of them.
    #[serde(default)]
    pub loaning: LoaningConfig,
    /// Forecaster of the load of services, within clusters and between them.
    #[serde(default)]
    pub forecaster: ForecasterConfig,
    /// At least two.
    pub clusters: Vec<MemberConfig>,
}

/// A server that moves; all are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Type of accelerator.
    #[serde(default = "any_accelerator")]
    pub accelerator: String,
    /// Number of accelerators of one server.
    pub gpus_per_node: u32,
}

/// Coordinators to compare, and the terms on which servers move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoordinatorConfig {
    /// The coordinators to compare, in the order of the table.
    pub outlook: Vec<OutlookConfig>,
    /// Between its decisions, seconds.
    pub period_secs: f64,
    /// Probability that a service's highest rate stays below what its servers are kept for, with the outlook
    /// `forecast`.
    pub quantile: f64,
    /// Share of the need kept on top of it.
    pub headroom: f64,
    /// Cost of the move of one server, job-seconds.
    pub move_cost_job_secs: f64,
}

/// Foresight of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutlookConfig {
    /// There is none: the clusters are isolated.
    None,
    /// The load as it is.
    Reactive,
    /// The forecaster, until two periods from now and a cold start.
    Forecast,
    /// The load that the objectives of the services ask for until then, without room for utilisation.
    Objective,
}

/// Cluster of the federation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberConfig {
    /// Name of the cluster, unique in the federation.
    pub name: String,
    /// Movable servers it owns at the start.
    pub movable: u32,
    /// Nodes that never move, for training or for all.
    #[serde(default)]
    pub groups: Vec<NodeGroup>,
    /// Workload of training jobs in the cluster.
    pub workload: WorkloadConfig,
    /// Inference services of the cluster; absent: none.
    #[serde(default)]
    pub services: Vec<ServiceConfig>,
    /// Schedulers of the cluster: a training policy, and its way to borrow servers within the
    /// cluster, as in `srtf+forecast`.
    #[serde(deserialize_with = "policies::name")]
    #[schemars(with = "PolicyText")]
    pub policy: String,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        Self {
            outlook: vec![OutlookConfig::None, OutlookConfig::Reactive, OutlookConfig::Forecast],
            period_secs: 600.0,
            quantile: 0.9,
            headroom: 0.02,
            move_cost_job_secs: 6000.0,
        }
    }
}

fn one() -> u64 {
    1
}

fn any_accelerator() -> String {
    "gpu".into()
}

fn value(key: &'static str, value: impl ToString, expected: impl ToString) -> SetupError {
    SetupError::Value { key, value: value.to_string(), expected: expected.to_string() }
}

fn expect(holds: bool, key: &'static str, found: impl ToString, expected: &str) -> Result<(), SetupError> {
    if holds { Ok(()) } else { Err(value(key, found, expected)) }
}

impl FederationConfig {
    /// Checks values and prepares the clusters: one setup each.
    ///
    /// # Errors
    /// [`SetupError`] naming the key, and the cluster where it is one's.
    pub fn setups(&self) -> Result<Vec<Setup>, SetupError> {
        expect((1..=10_000).contains(&self.seeds), "seeds", self.seeds, "1 to 10000")?;
        expect(self.seed <= 1 << 40, "seed", self.seed, "at most 2^40")?;
        self.coordinator.check()?;
        self.environment.options()?;
        if let Some(allocation) = self.environment.allocation {
            return Err(value("environment.allocation", allocation.name(), "none where clusters have no tenants"));
        }
        let gpus = self.server.gpus_per_node;
        expect((1..=1024).contains(&gpus), "server.gpus_per_node", gpus, "1 to 1024")?;
        expect((2..=1000).contains(&self.clusters.len()), "clusters", self.clusters.len(), "2 to 1000 clusters")?;
        for (at, cluster) in self.clusters.iter().enumerate() {
            let before = self.clusters[..at].iter().any(|other| other.name == cluster.name);
            expect(!before, "clusters.name", format!("{:?} twice", cluster.name), "names that differ")?;
        }
        let movable: u64 = self.clusters.iter().map(|cluster| u64::from(cluster.movable)).sum();
        let movable = u32::try_from(movable).unwrap_or(u32::MAX);
        expect((1..=1_000_000).contains(&movable), "clusters.movable", movable, "1 to 1000000 in all")?;
        let nobodys = |name: &&String| !self.clusters.iter().any(|cluster| cluster.has_service(name));
        if let Some(name) = self.forecaster.saved.keys().find(nobodys) {
            return Err(value("forecaster.saved", format!("for {name:?}"), "a service of one of the clusters"));
        }
        let setup = |cluster: &MemberConfig| {
            let named = |source| SetupError::Member { cluster: cluster.name.clone(), source: Box::new(source) };
            cluster.setup(&self.server, movable, self).map_err(named)
        };
        self.clusters.iter().map(setup).collect()
    }
}

impl CoordinatorConfig {
    fn check(&self) -> Result<(), SetupError> {
        expect(
            !self.outlook.is_empty(),
            "coordinator.outlook",
            "empty",
            "some of none, reactive, forecast and objective",
        )?;
        let twice = self.outlook.iter().enumerate().any(|(at, one)| self.outlook[..at].contains(one));
        expect(!twice, "coordinator.outlook", "one of them twice", "each once")?;
        let period = self.period_secs;
        expect((1.0..=1e6).contains(&period), "coordinator.period_secs", period, "1 to 1000000")?;
        let quantile = self.quantile;
        expect((0.001..=0.999).contains(&quantile), "coordinator.quantile", quantile, "0.001 to 0.999")?;
        expect((0.0..=10.0).contains(&self.headroom), "coordinator.headroom", self.headroom, "0 to 10")?;
        let cost = self.move_cost_job_secs;
        expect((0.0..=1e12).contains(&cost), "coordinator.move_cost_job_secs", cost, "0 to 1e12")
    }

    /// Coordinator of the clusters with the given service forecasters; `None` for the outlook
    /// `None`.
    pub fn build<'a>(
        &self,
        outlook: OutlookConfig,
        clusters: impl Iterator<Item = &'a ForecastingOptions>,
    ) -> Option<Coordinator> {
        let one = |forecasting: &ForecastingOptions| -> Option<Box<dyn Outlook>> {
            match outlook {
                OutlookConfig::None => None,
                OutlookConfig::Reactive => Some(Box::new(Now)),
                OutlookConfig::Forecast => Some(Box::new(Ahead::new(forecasting.clone().at(self.quantile)))),
                OutlookConfig::Objective => Some(Box::new(Decided::new(forecasting.clone()))),
            }
        };
        let outlooks = clusters.map(one).collect::<Option<_>>()?;
        let mut coordinator = Coordinator::new(outlooks, SimTime::from_secs_f64(self.period_secs));
        (coordinator.headroom, coordinator.move_cost) = (self.headroom, self.move_cost_job_secs);
        Some(coordinator)
    }
}

impl OutlookConfig {
    /// As the file says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reactive => "reactive",
            Self::Forecast => "forecast",
            Self::Objective => "objective",
        }
    }
}

impl MemberConfig {
    /// Every cluster lists all movable servers, and before its own nodes, so that they have the
    /// same ids everywhere.
    fn setup(&self, server: &ServerConfig, movable: u32, all: &FederationConfig) -> Result<Setup, SetupError> {
        let ServerConfig { accelerator, gpus_per_node } = server.clone();
        let mut groups =
            vec![NodeGroup { accelerator, nodes: movable, gpus_per_node, memory_mib: None, pool: Pool::Inference }];
        groups.extend(self.groups.iter().cloned());
        let fixed = self.groups.iter().all(|group| group.pool != Pool::Inference);
        expect(fixed, "groups.pool", "inference", "training or shared; servers for inference are those that move")?;
        let setup = Setup::new(&ClusterConfig { groups }, &self.workload, &all.environment)?;
        let setup = setup.with_services(&self.services)?.with_sharing(&all.loaning, &self.forecaster(all))?;
        let requests = setup.scenario(0).workload.requests.len();
        expect(requests == 0, "workload", format!("one with {requests} requests"), "one of training jobs only")?;
        policies::check_heuristic("policy", &self.policy)?;
        let policy = self.composite(0, setup.sharing()).ok_or_else(|| {
            let names = Variant::ALL.map(|(name, _)| name).join(", ");
            let expected = format!("a training policy of `goodput list policies`, alone or followed by + and {names}");
            value("policy", format!("{:?}", self.policy), expected)
        })?;
        let (needs, given) = (policy.needs(), setup.options().information);
        let known = format!("{}, which needs information level {needs}", self.policy);
        expect(given.allows(needs), "policy", known, &format!("one that runs at environment.information {given}"))?;
        Ok(setup)
    }

    /// The forecaster, with those made before for services of its own.
    fn forecaster(&self, all: &FederationConfig) -> ForecasterConfig {
        let mut forecaster = all.forecaster.clone();
        forecaster.saved.retain(|name, _| self.has_service(name));
        forecaster
    }

    fn has_service(&self, name: &str) -> bool {
        self.services.iter().any(|service| service.name == name)
    }

    /// Schedulers of the cluster. `None` where the name is unknown, or names a policy that
    /// schedules more than training.
    pub fn composite(&self, seed: u64, sharing: &Sharing) -> Option<Composite> {
        let named: NamedPolicy = self.policy.parse().ok()?;
        let training = named.training(seed);
        if training.scope() == Scope::Everything || named.is_beside_requests() || named.is_replica() {
            return None;
        }
        let variant = named.variant().unwrap_or_else(|| Variant::usual(&*training));
        Some(variant.around(training, sharing))
    }
}

impl ConfigFile for FederationConfig {
    const KIND: Kind = Kind::Federation;

    fn complete(&mut self, written: &dyn Fn(&str) -> bool) {
        self.environment.complete(written);
    }

    fn check(&self) -> Result<(), CheckError> {
        Ok(self.setups().map(drop)?)
    }
}
