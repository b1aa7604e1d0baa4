//! One file describes one experiment: the scenario, the agent, the budget and the comparison at the
//! end.

mod circumstances;
mod evolution;
mod expert;
mod hold;
mod known;
mod offline;
mod ppo;
mod queue;
mod scaled;
mod sweep;

use std::borrow::Cow;
use std::sync::Arc;

use crate::adaptation;
use crate::error::{CheckError, ReadError};
use crate::kind::Kind;
use crate::policies::{self, PolicyText};
use crate::reader::{self, ConfigFile, Document};
use crate::resilience;
use crate::scenario::{
    ClusterConfig, EnvironmentConfig, ForecasterConfig, LoaningConfig, ServiceConfig, Setup, SetupError, WorkloadConfig,
};
use crate::tenants::{CohortConfig, TenantConfig};
use goodput_agents::compose::Wrappers;
use goodput_agents::compose::adaptation::Adaptation;
use goodput_agents::compose::resilience::Resilience;
use goodput_agents::learning::cem::CemConfig;
use goodput_agents::policies::utility::{Group, Theta};
use goodput_env::cluster::Pool;
use goodput_env::gym::{ClusterEnv, EnvOptions, ExpectedPeak};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::circumstances::{Curriculum, Randomise, WarmUpConfig};
pub use self::evolution::{EvolutionAgent, started};
pub use self::expert::ExpertAgent;
pub use self::hold::HoldAgent;

pub use self::offline::{Algorithm, OfflineAgent};
pub use self::ppo::{InputBaseline, PpoAgent, WarmStart};
pub use self::queue::{QueueAgent, QueueEvolution, QueueLearner, QueueObjective, QueuePpo};
pub use self::sweep::{SeedRange, SweepConfig, SweepPoint, SweepSettings, points};

/// An experiment: `goodput train FILE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name; runs go to `runs/NAME`.
    pub name: String,
    /// Master seed of the run; absent: 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Cluster on which the jobs run.
    pub cluster: ClusterConfig,
    /// Workload of training jobs.
    pub workload: WorkloadConfig,
    /// Tenants that submit the jobs, in the order of their indices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantConfig>,
    /// Groups of tenants that lend to each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cohorts: Vec<CohortConfig>,
    /// Inference services beside the jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceConfig>,
    /// Behaviour of the cluster.
    #[serde(default)]
    pub environment: EnvironmentConfig,
    /// On what terms services and training share it.
    #[serde(default)]
    pub loaning: LoaningConfig,
    /// Forecaster of the load of services. Where it is absent, observations of learned policies use
    /// the load of the day before, and loans and scaling use all models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecaster: Option<ForecasterConfig>,
    /// Guarantees around the policies of a comparison: key jobs, bad nodes and jobs that fail. Training itself, and the
    /// gate before the export, go without.
    #[serde(default, skip_serializing_if = "Resilience::is_empty")]
    pub resilience: Resilience,
    /// Priorities and quotas that adapt by themselves, around the policies of a comparison. Training itself, and the
    /// gate before the export, go without.
    #[serde(default, skip_serializing_if = "Adaptation::is_empty")]
    pub adaptation: Adaptation,
    /// Agent that learns; absent: the experiment only compares heuristics.
    #[serde(default)]
    pub agent: Option<AgentConfig>,
    /// Length of the training, and its checkpoints.
    #[serde(default)]
    pub train: TrainConfig,
    /// Comparison with heuristics after training.
    #[serde(default)]
    pub evaluate: EvaluateConfig,
    /// Settings that a study goes through: `goodput sweep`; absent: those of the file alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepConfig>,
}

fn one() -> u64 {
    1
}

/// Learning method of the agent, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentConfig {
    /// Proximal policy optimisation of a net.
    Ppo(PpoAgent),
    /// The cross-entropy method over a linear priority function.
    Cem(CemAgent),
    /// Evolution of utilities that a knapsack goes by.
    Evolution(EvolutionAgent),
    /// Expert iteration of utilities: exact rollouts of changes, and a fit on what they show.
    #[serde(rename = "expert_iteration")]
    Expert(ExpertAgent),
    /// Expert iteration of a net that holds back changes of a published policy.
    Hold(HoldAgent),
    /// Learning from logged decisions.
    Offline(OfflineAgent),
    /// An order of a batch queue.
    Queue(QueueAgent),
}

impl AgentConfig {
    /// The heuristic that the policy comes from and must not be worse than.
    pub fn teacher(&self) -> Option<&str> {
        match self {
            Self::Ppo(agent) => agent.warm_start.as_ref().map(|plan| plan.teacher.as_str()),
            Self::Cem(_) | Self::Offline(_) | Self::Queue(_) => None,
            Self::Evolution(agent) => Some(&agent.teacher),
            Self::Expert(agent) => Some(&agent.teacher),
            Self::Hold(agent) => Some(&agent.teacher),
        }
    }

    /// Key of the teacher in the file.
    fn teacher_key(&self) -> &'static str {
        match self {
            Self::Ppo(_) => "agent.ppo.warm_start.teacher",
            Self::Cem(_) | Self::Offline(_) | Self::Queue(_) => "agent",
            Self::Evolution(_) => "agent.evolution.teacher",
            Self::Expert(_) => "agent.expert_iteration.teacher",
            Self::Hold(_) => "agent.hold.teacher",
        }
    }
}

/// The cross-entropy method: no gradients, a dozen weights; the baseline any net has to beat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CemAgent {
    /// Population and noise.
    pub search: CemConfig,
    /// Number of generations of the search.
    pub generations: u64,
    /// Episodes that score a candidate; the same for all candidates of a generation.
    pub episodes: u64,
}

impl Default for CemAgent {
    fn default() -> Self {
        Self { search: CemConfig::default(), generations: 30, episodes: 8 }
    }
}

/// Budget and rhythm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Decisions to learn from, warm start not included.
    pub decisions: u64,
    /// Updates between checkpoints.
    pub checkpoint_every: u64,
    /// Updates between evaluations on validation seeds; the best policy so far is the one that is
    /// exported.
    pub evaluate_every: u64,
    /// Validation seeds, under each load.
    pub validation_seeds: u64,
    /// Loads relative to the workload's own; empty: as it is.
    pub loads: Vec<f64>,
    /// Sizes of the cluster on which training episodes take turns, as shares of its nodes, each with the loads in
    /// proportion; empty: the cluster as it is. The bundle records the range, and a live daemon relies on a net from
    /// half to twice of it. For `[agent.ppo]`, `[agent.evolution]`, `[agent.expert_iteration]` and
    /// `[agent.hold]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<f64>,
    /// Switching costs on which training episodes and validation take turns, such as `30s` or by name, in place of
    /// `environment.switch_cost`; empty: that one. A learned utility then has parameters that change others with the
    /// length of a restart; a net of `[agent.ppo]` does not see that length. For `[agent.ppo]`, `[agent.evolution]` and
    /// `[agent.hold]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switch_costs: Vec<String>,
    /// Circumstances that training episodes draw; absent: as the experiment says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub randomise: Option<Randomise>,
    /// Growth of the difficulty of training episodes; absent: episodes are of one difficulty from
    /// the first on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curriculum: Option<Curriculum>,
    /// Episodes that begin in the middle; absent: on an empty cluster. For `[agent.ppo]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpConfig>,
    /// Export gate: the policies that the policy is compared with on validation seeds before it is exported.
    pub gate: GateRivals,
    /// Export gate, percent: the most by which the policy's mean job completion time (JCT) on
    /// validation seeds may exceed that of the best rival.
    pub gate_percent: f64,
}

/// Rivals of a policy at its export gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateRivals {
    /// The teacher alone.
    #[default]
    Teacher,
    /// The teacher and the heuristics of `evaluate.policies`, but for the genetic search of `pollux`, which costs more
    /// than a training. Where jobs measure their speeds, the measurements are shared for all, the policy included.
    Heuristics,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            decisions: 1_000_000,
            checkpoint_every: 20,
            evaluate_every: 20,
            validation_seeds: 16,
            loads: Vec::new(),
            sizes: Vec::new(),
            switch_costs: Vec::new(),
            randomise: None,
            curriculum: None,
            warm_up: None,
            gate: GateRivals::Teacher,
            gate_percent: 0.0,
        }
    }
}

/// The comparison at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluateConfig {
    /// Heuristics by name, with their parameters: `"gandiva(quantum_secs=600)"`, or a table
    /// `{ name = "gandiva", quantum_secs = 600 }`. `goodput list policies --parameters` names them.
    #[serde(deserialize_with = "policies::names")]
    #[schemars(with = "Vec<PolicyText>")]
    pub policies: Vec<String>,
    /// Held-out seeds: never trained on, never selected on.
    pub seeds: u64,
    /// Loads relative to the workload's own; empty: as it is.
    pub loads: Vec<f64>,
    /// Error of the estimates for heuristics that need more information than the run gives:
    /// standard deviation of the logarithm. Absent: such heuristics are refused. The estimates
    /// include the applications' true speeds, which heuristics that choose accelerator types need
    /// where only the jobs' agents measure speeds.
    pub estimates_sigma: Option<f64>,
}

impl Default for EvaluateConfig {
    fn default() -> Self {
        let policies = ["fifo", "srtf", "tiresias", "optimus", "pollux"];
        Self { policies: policies.map(String::from).to_vec(), seeds: 20, loads: Vec::new(), estimates_sigma: None }
    }
}

impl Experiment {
    /// Checks values and prepares the scenarios.
    ///
    /// # Errors
    /// [`SetupError`] naming the key.
    pub fn setup(&self) -> Result<Setup, SetupError> {
        let value = |key, value: String, expected: &str| SetupError::Value { key, value, expected: expected.into() };
        if self.name.is_empty() || self.name.contains(['/', '\\']) {
            return Err(value("name", format!("{:?}", self.name), "a name without slashes"));
        }
        if let Some(AgentConfig::Ppo(ppo)) = &self.agent {
            ppo.check()?;
        }
        if self.evaluate.seeds == 0 {
            return Err(value("evaluate.seeds", "0".into(), "at least 1"));
        }
        let TrainConfig { validation_seeds, evaluate_every, checkpoint_every, .. } = self.train;
        for (key, number) in [
            ("train.validation_seeds", validation_seeds),
            ("train.evaluate_every", evaluate_every),
            ("train.checkpoint_every", checkpoint_every),
        ] {
            if number == 0 {
                return Err(value(key, "0".into(), "at least 1"));
            }
        }
        if !self.train.gate_percent.is_finite() || self.train.gate_percent < 0.0 {
            return Err(value("train.gate_percent", self.train.gate_percent.to_string(), "at least 0"));
        }
        let untaught = self.agent.as_ref().is_some_and(|agent| agent.teacher().is_none());
        if self.train.gate == GateRivals::Heuristics && untaught {
            let expected = "teacher: this agent has none, and is exported as it is";
            return Err(value("train.gate", "heuristics".into(), expected));
        }
        self.check_circumstances()?;
        resilience::check(&self.resilience, &self.tenants)?;
        resilience::check_allocation(&self.resilience, self.environment.allocation)?;
        adaptation::check(&self.adaptation, &self.tenants, &self.cohorts)?;
        if let Some(AgentConfig::Evolution(agent)) = &self.agent {
            agent.check(&Theta::sia().with(self.groups()))?;
        }
        if let Some(AgentConfig::Expert(agent)) = &self.agent {
            agent.check(&Theta::sia().with(self.groups()))?;
        }
        if let Some(AgentConfig::Hold(agent)) = &self.agent {
            agent.check(self)?;
        }
        if let Some(AgentConfig::Offline(agent)) = &self.agent {
            agent.check()?;
        }
        if let Some(AgentConfig::Queue(agent)) = &self.agent {
            agent.check()?;
        }
        if let (Some(agent), Some(teacher)) = (&self.agent, self.agent.as_ref().and_then(AgentConfig::teacher)) {
            known::teacher(agent.teacher_key(), teacher)?;
        }
        if let (Some(allocation), Some(_)) = (self.environment.allocation, &self.agent) {
            return Err(value("environment.allocation", allocation.name().into(), "none in a file with an [agent]"));
        }
        if let Some(sigma) = self.evaluate.estimates_sigma.filter(|sigma| !(0.0..=10.0).contains(sigma)) {
            return Err(value("evaluate.estimates_sigma", sigma.to_string(), "0 to 10"));
        }
        for (key, loads) in [("train.loads", &self.train.loads), ("evaluate.loads", &self.evaluate.loads)] {
            if let Some(load) = loads.iter().find(|load| !(0.01..=100.0).contains(*load)) {
                return Err(value(key, load.to_string(), "0.01 to 100"));
            }
            if !loads.is_empty() && !matches!(self.workload, WorkloadConfig::Synthetic(_)) {
                return Err(value(key, format!("{loads:?}"), "no loads with a workload that is not synthetic"));
            }
        }
        if let Some(size) = self.train.sizes.iter().find(|size| !(0.01..=100.0).contains(*size)) {
            return Err(value("train.sizes", size.to_string(), "0.01 to 100"));
        }
        Setup::new(&self.cluster, &self.workload, &self.environment)?
            .with_tenants(&self.tenants, &self.cohorts)?
            .with_services(&self.services)?
            .with_sharing(&self.loaning, &self.forecaster.clone().unwrap_or_default())
    }

    /// Checks the circumstances of training: their values, and that the agent and the workload can
    /// use them.
    fn check_circumstances(&self) -> Result<(), SetupError> {
        let TrainConfig { sizes, switch_costs, randomise, curriculum, warm_up, .. } = &self.train;
        randomise.as_ref().map_or(Ok(()), Randomise::check)?;
        curriculum.as_ref().map_or(Ok(()), Curriculum::check)?;
        warm_up.as_ref().map_or(Ok(()), WarmUpConfig::check)?;
        circumstances::costs("train.switch_costs", switch_costs)?;
        let only = |key, expected: &str| SetupError::Value { key, value: "given".into(), expected: expected.into() };
        let agent = self.agent.as_ref();
        let plays = agent.is_none_or(|agent| {
            matches!(
                agent,
                AgentConfig::Ppo(_) | AgentConfig::Evolution(_) | AgentConfig::Expert(_) | AgentConfig::Hold(_)
            )
        });
        if !plays && (randomise.is_some() || curriculum.is_some() || !switch_costs.is_empty()) {
            let expected = "none but with [agent.ppo], [agent.evolution], [agent.expert_iteration] and [agent.hold]";
            return Err(only("train.randomise, train.curriculum or train.switch_costs", expected));
        }
        if matches!(agent, Some(AgentConfig::Expert(_))) && !switch_costs.is_empty() {
            return Err(only(
                "train.switch_costs",
                "none with [agent.expert_iteration], which has no parameters by restart",
            ));
        }
        if let Some(twice) = switch_costs.iter().enumerate().find(|(at, cost)| switch_costs[..*at].contains(cost)) {
            return Err(SetupError::Value {
                key: "train.switch_costs",
                value: format!("{} twice", twice.1),
                expected: "each cost once".into(),
            });
        }
        if !switch_costs.is_empty() && randomise.as_ref().is_some_and(|randomise| !randomise.switch_costs.is_empty()) {
            return Err(only("train.randomise.switch_costs", "none beside train.switch_costs"));
        }
        if !sizes.is_empty() {
            let alone = self.services.is_empty() && self.tenants.is_empty();
            if !plays || !alone || !matches!(self.workload, WorkloadConfig::Synthetic(_)) {
                let expected = "none but with [agent.ppo], [agent.evolution], [agent.expert_iteration] and [agent.hold] on a \
                                synthetic workload without services and tenants";
                return Err(only("train.sizes", expected));
            }
        }
        if warm_up.is_some() && agent.is_some_and(|agent| !matches!(agent, AgentConfig::Ppo(_))) {
            return Err(only("train.warm_up", "none without [agent.ppo]: others are scored by whole workloads"));
        }
        if curriculum.is_some() && !matches!(self.workload, WorkloadConfig::Synthetic(_)) {
            return Err(only("train.curriculum", "none with a workload that is not synthetic"));
        }
        if randomise.as_ref().is_some_and(|randomise| randomise.faults > 0.0) && self.environment.faults.is_none() {
            return Err(only("train.randomise.faults", "0 without [environment.faults]"));
        }
        Ok(())
    }

    /// Checks that the policy `name`, which a file or a command names at `key`, knows the quotas of the tenants and
    /// the figures of the accelerators that it goes by.
    ///
    /// # Errors
    /// [`CheckError`] at `key`.
    pub fn check_policy(&self, key: impl Into<Cow<'static, str>>, name: &str, setup: &Setup) -> Result<(), CheckError> {
        let key = key.into();
        policies::check_quotas(key.clone(), name, setup.tenants())?;
        policies::check_allocation(key.clone(), name, self.environment.allocation)?;
        policies::check_types(key, name, setup.cluster())
    }

    /// Text of the experiment with every default filled in.
    ///
    /// # Errors
    /// A value that TOML cannot express.
    pub fn resolved(&self) -> Result<String, ReadError> {
        reader::resolved(self)
    }

    /// The experiment of a text that [`Self::resolved`] made.
    ///
    /// # Errors
    /// The first key or value that does not fit.
    pub fn of_resolved(text: &str) -> Result<Self, ReadError> {
        Document::new("plan.json", text, &[])?.parse(Kind::Experiment)
    }

    /// Adaptation and guarantees around the policies of a comparison.
    pub fn wrappers(&self) -> Wrappers {
        Wrappers { adaptation: self.adaptation.clone(), resilience: self.resilience.clone() }
    }

    /// Groups of parameters of a utility that this experiment gives a meaning.
    pub fn groups(&self) -> impl Iterator<Item = Group> {
        let lends = self.cluster.groups.iter().any(|group| group.pool == Pool::Inference) && !self.services.is_empty();
        let fails = self.environment.faults.as_ref().is_some_and(|faults| faults.bugs.is_some());
        let all = [
            (Group::Loans, lends),
            (Group::Tenants, self.tenants.len() > 1),
            (Group::Faults, fails),
            (Group::Restarts, self.train.switch_costs.len() > 1),
        ];
        all.into_iter().filter(|(_, has)| *has).map(|(group, _)| group)
    }

    /// Options of the environment that learned policies observe and act on.
    pub fn gym(&self) -> EnvOptions {
        self.environment.gym(&self.cluster)
    }

    /// Expected peak load in the observations of learned policies, given the experiment's own
    /// setup.
    pub fn expected_peak(&self, setup: &Setup) -> ExpectedPeak {
        match self.forecaster {
            Some(_) => setup.sharing().forecasting.expected_peak(),
            None => ExpectedPeak::default(),
        }
    }

    /// Environment in which the learned policies of this experiment are trained, on the scenarios of its setup.
    pub fn cluster_env(&self, setup: Setup) -> ClusterEnv {
        let expected = self.expected_peak(&setup);
        ClusterEnv::new(Arc::new(move |seed| setup.scenario(seed)), self.gym()).with_expected_peak(expected)
    }
}

impl ConfigFile for Experiment {
    const KIND: Kind = Kind::Experiment;

    fn complete(&mut self, written: &dyn Fn(&str) -> bool) {
        self.environment.complete(written);
    }

    fn check(&self) -> Result<(), CheckError> {
        self.sweep.as_ref().map_or(Ok(()), SweepConfig::check)?;
        let setup = self.setup()?;
        let mut named = self.evaluate.policies.iter().enumerate();
        named.try_for_each(|(at, name)| {
            let key = format!("evaluate.policies.{at}");
            policies::check(key.clone(), name)?;
            self.check_policy(key.clone(), name, &setup)?;
            // Validation scores what is learnt beside published policies.
            match &self.agent {
                Some(_) => policies::check_published(key, name),
                None => Ok(()),
            }
        })
    }
}
