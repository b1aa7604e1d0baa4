//! The file of a deployment: one cluster that a policy drives.

use std::path::{Path, PathBuf};

use goodput_agents::compose::adaptation::Adaptation;
use goodput_agents::compose::resilience::Resilience;
use goodput_agents::compose::{Wrappers, lookahead_base};
use goodput_env::tenant::Tenants;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api::ApiConfig;
use super::engine::EngineConfig;
use super::guard::GuardConfig;
use super::leader::LeaderConfig;
use super::policy::{PolicyConfig, RelianceConfig, ShadowConfig};
use super::report::ReportConfig;
use super::rollback::RollbackConfig;
use super::services::LiveServiceConfig;
use super::times::{check_positive_secs, check_secs};
use crate::adaptation;
use crate::error::CheckError;
use crate::forecast::PrometheusConfig;
use crate::kind::Kind;
use crate::policies;
use crate::reader::ConfigFile;
use crate::resilience;
use crate::tenants::{self, CohortConfig, TenantConfig};

/// Shortest time, milliseconds, that a policy which looks ahead may be given.
const LOOK_MS: u64 = 1000;

/// A live cluster that a policy drives: `goodput live run FILE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// Engine that runs the jobs.
    pub engine: EngineConfig,
    /// Policy that decides.
    pub policy: PolicyConfig,
    /// Mode at the first start of the daemon; a mode set by `goodput live mode` is kept and rules.
    #[serde(default)]
    pub mode: Mode,
    /// Jobs and nodes that the mode `canary` may touch.
    #[serde(default)]
    pub canary: CanaryConfig,
    /// Times between observations and between decisions.
    #[serde(default)]
    pub cycle: CycleConfig,
    /// Rules of the guard for live plans.
    #[serde(default)]
    pub guard: GuardConfig,
    /// Conditions under which the daemon falls back to a heuristic.
    #[serde(default)]
    pub reliance: RelianceConfig,
    /// Guarantees around the policy and its fallback: key jobs, bad nodes and jobs that fail.
    #[serde(default, skip_serializing_if = "Resilience::is_empty")]
    pub resilience: Resilience,
    /// Priorities and quotas that adapt by themselves, around the policy and its fallback. What has been observed is
    /// lost when the daemon restarts.
    #[serde(default, skip_serializing_if = "Adaptation::is_empty")]
    pub adaptation: Adaptation,
    /// A policy that is compared with the one that acts; it never acts.
    #[serde(default)]
    pub shadow: Option<ShadowConfig>,
    /// Evidence that the mode `observe` collects for `goodput live report`.
    #[serde(default)]
    pub report: ReportConfig,
    /// Automatic return to the policy before, after a change of the policy.
    #[serde(default)]
    pub rollback: RollbackConfig,
    /// Durable state of the daemon.
    pub state: StateConfig,
    /// Leadership among the daemons of the cluster.
    #[serde(default)]
    pub leader: LeaderConfig,
    /// The HTTP interface.
    #[serde(default)]
    pub api: ApiConfig,
    /// Tenants of the cluster. A job without a tenant belongs to the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantConfig>,
    /// Groups of tenants, or of other cohorts, that lend to each other and borrow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cohorts: Vec<CohortConfig>,
    /// Inference services that share the cluster with training jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<LiveServiceConfig>,
    /// Prometheus that knows the loads of services with `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusConfig>,
}

/// Mode of the daemon: how far it may act on the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The daemon reads, decides and writes down what it would do. It touches nothing.
    #[default]
    Observe,
    /// The daemon acts on the jobs and nodes that `[canary]` lists, a few times an hour.
    Canary,
    /// The daemon acts on the whole cluster.
    Act,
}

impl Mode {
    /// Every mode, from the one that touches nothing to the one that acts on all.
    pub const ALL: [Self; 3] = [Self::Observe, Self::Canary, Self::Act];

    /// Name of the mode in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Canary => "canary",
            Self::Act => "act",
        }
    }

    /// The mode called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Jobs and nodes that the mode `canary` may touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CanaryConfig {
    /// Keys of jobs; where empty, `nodes` alone decides. With both lists empty nothing is touched.
    pub jobs: Vec<String>,
    /// Names of nodes; where empty, `jobs` alone decides. A name that no node has opens nothing.
    pub nodes: Vec<String>,
    /// Most orders in an hour.
    pub orders_per_hour: usize,
}

impl Default for CanaryConfig {
    fn default() -> Self {
        Self { jobs: Vec::new(), nodes: Vec::new(), orders_per_hour: 20 }
    }
}

/// Times between observations and between decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CycleConfig {
    /// Time between two observations, seconds.
    pub poll_secs: f64,
    /// Time between decisions when nothing has happened, seconds of the policy's clock.
    pub round_secs: f64,
    /// Seconds of the policy's clock in a second; 1 but in experiments with compressed traces.
    pub speedup: f64,
    /// Seconds from SIGTERM to SIGKILL where the daemon stops, moves or cancels a job; under node agents at most the
    /// job's own.
    pub grace_secs: u32,
    /// An order that has not been carried out after so long is given up, seconds.
    pub order_timeout_secs: f64,
}

impl Default for CycleConfig {
    fn default() -> Self {
        Self { poll_secs: 1.0, round_secs: 60.0, speedup: 1.0, grace_secs: 60, order_timeout_secs: 300.0 }
    }
}

impl CycleConfig {
    fn check(&self) -> Result<(), CheckError> {
        check_positive_secs("cycle.poll_secs", self.poll_secs)?;
        check_positive_secs("cycle.round_secs", self.round_secs)?;
        if !(self.speedup > 0.0 && self.speedup < 1e7) {
            return Err(CheckError::value("cycle.speedup", self.speedup, "a positive number below 10000000"));
        }
        check_secs("cycle.grace_secs", f64::from(self.grace_secs), 0.0)?;
        check_secs("cycle.order_timeout_secs", self.order_timeout_secs, 0.0)
    }
}

/// Durable state of the daemon: its directory, its name and its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateConfig {
    /// Directory of journal, audit log, lock and stop file.
    pub directory: PathBuf,
    /// Name of this daemon among others that share the directory; the host's where absent.
    #[serde(default)]
    pub name: Option<String>,
    /// Seconds without renewal after which another daemon takes over; 1 or more.
    #[serde(default = "lease_secs")]
    pub lease_secs: u32,
    /// Size from which the file of the audit log is closed and a new one begun, MiB.
    #[serde(default = "audit_mib")]
    pub audit_mib: u32,
    /// Closed files of the audit log that are kept; all of them where 0.
    #[serde(default = "audit_files")]
    pub audit_files: u32,
}

fn lease_secs() -> u32 {
    15
}

fn audit_mib() -> u32 {
    64
}

fn audit_files() -> u32 {
    16
}

impl Deployment {
    /// Tenants of the cluster, with the rules between them checked.
    ///
    /// # Errors
    /// [`CheckError`] that names the key, the tenant or the cohort.
    pub fn tenants(&self) -> Result<Tenants, CheckError> {
        for tenant in &self.tenants {
            let TenantConfig { name, priority, quota_changes, .. } = tenant;
            let expected = |what| format!("{what} in a deployment: they are for experiments");
            let problem = if *priority != 0 {
                CheckError::value("tenants.priority", priority, expected("none"))
            } else if !quota_changes.is_empty() {
                CheckError::value("tenants.quota_changes", "given", expected("none"))
            } else {
                continue;
            };
            return Err(problem.within("tenants", name));
        }
        tenants::build(&self.tenants, &self.cohorts, &tenants::types(&self.tenants, &self.cohorts))
    }

    /// Adaptation and guarantees around the policy and its fallback.
    pub fn wrappers(&self) -> Wrappers {
        Wrappers { adaptation: self.adaptation.clone(), resilience: self.resilience.clone() }
    }

    /// Checks that `policy`, and the fallback, know the quotas and the limits of the tenants.
    ///
    /// # Errors
    /// [`CheckError`] with the key of the policy and the name of the tenant or the cohort.
    pub fn check_tenants_under(&self, policy: &PolicyConfig) -> Result<(), CheckError> {
        let acting = match (&policy.name, &policy.bundle) {
            (Some(name), _) => ("policy.name", name.as_str()),
            (None, bundle) => ("policy.bundle", bundle.as_deref().and_then(Path::to_str).unwrap_or_default()),
        };
        let tenants = self.tenants()?;
        [acting, ("reliance.fallback", &self.reliance.fallback)].into_iter().try_for_each(|(key, name)| {
            policies::check_quotas(key, name, &tenants)?;
            policies::check_limits(key, name, &self.tenants)
        })
    }

    /// Checks that `policy` has time to plan: a policy that looks ahead simulates for a second or more, and the
    /// fallback decides instead of a policy that is late.
    ///
    /// # Errors
    /// [`CheckError`] with the key `reliance.timeout_ms`.
    pub fn check_time_of(&self, policy: &PolicyConfig) -> Result<(), CheckError> {
        let plans = policy.name.as_deref().is_some_and(|name| lookahead_base(name).is_some());
        match self.reliance.timeout_ms {
            short if plans && short < LOOK_MS => Err(CheckError::value(
                "reliance.timeout_ms",
                short,
                format!("at least {LOOK_MS} for a policy that looks ahead, because a look takes a second or more"),
            )),
            _ => Ok(()),
        }
    }

    /// Checks that the engine's settings allow `mode`.
    ///
    /// # Errors
    /// The key that does not go with the mode.
    pub fn check_mode(&self, mode: Mode) -> Result<(), CheckError> {
        match &self.engine {
            EngineConfig::Kubernetes(kubernetes) => kubernetes.check_mode(mode != Mode::Observe),
            _ => Ok(()),
        }
    }
}

impl ConfigFile for Deployment {
    const KIND: Kind = Kind::Deployment;

    fn check(&self) -> Result<(), CheckError> {
        self.policy.check()?;
        self.reliance.check()?;
        self.shadow.as_ref().map_or(Ok(()), ShadowConfig::check)?;
        self.report.check()?;
        self.rollback.check()?;
        self.cycle.check()?;
        check_secs("state.lease_secs", f64::from(self.state.lease_secs), 1.0)?;
        self.leader.check(self.state.lease_secs)?;
        if !(1..=65_536).contains(&self.state.audit_mib) {
            return Err(CheckError::value("state.audit_mib", self.state.audit_mib, "a number from 1 to 65536"));
        }
        self.guard.check()?;
        self.engine.check()?;
        if let EngineConfig::Agents(agents) = &self.engine {
            agents.check_pace(self.cycle.poll_secs)?;
        }
        self.check_mode(self.mode)?;
        self.tenants()?;
        self.check_tenants_under(&self.policy)?;
        self.check_time_of(&self.policy)?;
        resilience::check(&self.resilience, &self.tenants)?;
        adaptation::check(&self.adaptation, &self.tenants, &self.cohorts)?;
        self.services()?;
        self.api.check(&self.tenants)
    }
}
