//! The configuration file of a deployment.

mod tenants;

use std::path::{Path, PathBuf};

use goodput_configs::error::{CheckError, ReadError};
use goodput_configs::kind::Kind;
use goodput_configs::reader::{self, ConfigFile};
use serde::{Deserialize, Serialize};

use super::decide::chooser::Reliance;
use super::guard::rules::Rules;
use super::shadow::ShadowSettings;
use crate::engine::agents::AgentsSettings;
pub use tenants::GroupSettings;

/// Mode of the daemon: how far it may act on the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
        [Self::Observe, Self::Canary, Self::Act].into_iter().find(|mode| mode.name() == name)
    }
}

/// Configuration of one deployment: engine, policy, guard, state and interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Engine that runs the jobs.
    pub engine: EngineSettings,
    /// Policy that decides.
    pub policy: PolicySettings,
    /// Mode at the first start of the daemon.
    #[serde(default)]
    pub mode: Mode,
    /// Jobs and nodes that the mode `canary` may touch.
    #[serde(default)]
    pub canary: CanarySettings,
    /// Times between observations and between decisions.
    #[serde(default)]
    pub cycle: CycleSettings,
    /// Rules of the guard for live plans.
    #[serde(default)]
    pub guard: Rules,
    /// Conditions under which the daemon falls back to a heuristic.
    #[serde(default)]
    pub reliance: Reliance,
    /// A policy that is compared with the one that acts; it never acts.
    #[serde(default)]
    pub shadow: Option<ShadowSettings>,
    /// Durable state of the daemon.
    pub state: StateSettings,
    /// The HTTP interface.
    #[serde(default)]
    pub api: ApiSettings,
    /// Tenants of the cluster. A job without a tenant belongs to the first one.
    #[serde(default)]
    pub tenants: Vec<GroupSettings>,
    /// Groups of tenants, or of other cohorts, that lend to each other and borrow.
    #[serde(default)]
    pub cohorts: Vec<GroupSettings>,
}

/// Engine that runs the jobs of a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum EngineSettings {
    /// Slurm, by its commands.
    Slurm(SlurmSettings),
    /// Our own node agents.
    Agents(AgentsSettings),
}

/// A Slurm cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmSettings {
    /// `slurm.conf`, where it is not the default one.
    pub conf: Option<PathBuf>,
    /// Folder of Slurm's commands, where the commands are not on the path.
    pub bin: Option<PathBuf>,
    /// Partitions it manages; all where empty.
    pub partitions: Vec<String>,
    /// URL under which jobs reach the daemon's interface to report their speed. Where the key is
    /// absent, jobs do not report, and policies do not learn their speeds.
    pub report_url: Option<String>,
}

/// Policy of a deployment, by name or as a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// A bundle that `train` wrote, or `zoo:NAME`. Either this or `name`.
    #[serde(default)]
    pub bundle: Option<PathBuf>,
    /// Name of a heuristic. Either this or `bundle`.
    #[serde(default)]
    pub name: Option<String>,
    /// Seed of policies that draw random numbers.
    #[serde(default)]
    pub seed: u64,
    /// Whether users' estimates of durations are shown to the policy: `profiled`, or `estimate`.
    #[serde(default)]
    pub information: InformationSetting,
}

/// Information level of a deployment: the knowledge of remaining work that the policy gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InformationSetting {
    /// Level at which the policy was published or trained.
    #[default]
    Policy,
    /// No knowledge of remaining work.
    Profiled,
    /// Estimates from the catalog and from time limits.
    Estimate,
}

/// Jobs and nodes that the mode `canary` may touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CanarySettings {
    /// Keys of jobs; all where empty.
    pub jobs: Vec<String>,
    /// Names of nodes; all where empty.
    pub nodes: Vec<String>,
    /// Most orders in an hour.
    pub orders_per_hour: usize,
}

impl Default for CanarySettings {
    fn default() -> Self {
        Self { jobs: Vec::new(), nodes: Vec::new(), orders_per_hour: 20 }
    }
}

/// Times between observations and between decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CycleSettings {
    /// Time between looks, seconds.
    pub poll_secs: f64,
    /// Time between decisions when nothing has happened, seconds of the policy's clock.
    pub round_secs: f64,
    /// Seconds of the policy's clock in a second; 1 but in experiments with compressed traces.
    pub speedup: f64,
    /// Seconds from SIGTERM to SIGKILL.
    pub grace_secs: u32,
    /// An order that has not been carried out after so long is given up, seconds.
    pub order_timeout_secs: f64,
}

impl Default for CycleSettings {
    fn default() -> Self {
        Self { poll_secs: 1.0, round_secs: 60.0, speedup: 1.0, grace_secs: 60, order_timeout_secs: 300.0 }
    }
}

/// Durable state of the daemon: its directory, its name and its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSettings {
    /// Directory of journal, audit log, lock and stop file.
    pub directory: PathBuf,
    /// Name of this daemon among others that share the directory; the host's where absent.
    #[serde(default)]
    pub name: Option<String>,
    /// Seconds without renewal after which another daemon takes over.
    #[serde(default = "lease_secs")]
    pub lease_secs: u32,
}

fn lease_secs() -> u32 {
    15
}

/// The HTTP interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiSettings {
    /// Address on which the interface listens. An empty text turns the interface off.
    pub listen: String,
    /// Tokens that callers may show. `goodput live token` makes their hashes.
    pub tokens: Vec<Token>,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self { listen: "127.0.0.1:7070".into(), tokens: Vec::new() }
    }
}

/// A bearer token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Name of the owner in the audit log.
    pub name: String,
    /// SHA-256 of the token, hexadecimal.
    pub sha256: String,
    /// Calls that the token allows.
    pub role: Role,
}

/// Role of a token: the calls that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reading calls only.
    Read,
    /// Reading calls, and calls that submit, cancel, drain or change the mode.
    Write,
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ReadError`] with the key and the line.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Ok(reader::read(path, &[])?.0)
    }

    /// Reads a text; `path` is for messages.
    ///
    /// # Errors
    /// As [`Settings::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ReadError> {
        reader::parse(&path.display().to_string(), text)
    }
}

impl ConfigFile for Settings {
    const KIND: Kind = Kind::Deployment;

    fn check(&self) -> Result<(), CheckError> {
        let settings = self;
        let wrong = |key: &'static str, problem: String| Err(CheckError::at(key, format!("[{key}] {problem}")));
        let policy = &settings.policy;
        if policy.bundle.is_some() == policy.name.is_some() {
            return wrong("policy", "name one: bundle = \"FILE\" or name = \"HEURISTIC\"".into());
        }
        if let Some(shadow) = &settings.shadow {
            if shadow.bundle.is_some() == shadow.name.is_some() {
                return wrong("shadow", "name one: bundle = \"FILE\" or name = \"HEURISTIC\"".into());
            }
            let numbers = [
                (shadow.horizon_secs, 1.0, "shadow.horizon_secs"),
                (shadow.every_secs, 1e-3, "shadow.every_secs"),
                (shadow.restart_secs, 0.0, "shadow.restart_secs"),
            ];
            if let Some((value, least, key)) =
                numbers.into_iter().find(|(value, least, _)| !(*least..=1e8).contains(value))
            {
                return wrong(key, format!("is {value}, expected {least} to 1e8"));
            }
        }
        let cycle = &settings.cycle;
        for (value, key) in [
            (cycle.poll_secs, "cycle.poll_secs"),
            (cycle.round_secs, "cycle.round_secs"),
            (cycle.speedup, "cycle.speedup"),
        ] {
            if !(value > 0.0 && value < 1e7) {
                return wrong(key, format!("is {value}, expected a positive number"));
            }
        }
        let guard = &settings.guard;
        for (value, most, key) in [
            (guard.min_run_secs, 1e9, "guard.min_run_secs"),
            (guard.preempt_every_secs, 1e9, "guard.preempt_every_secs"),
            (guard.preempt_percent, 100.0, "guard.preempt_percent"),
            (guard.max_snapshot_age_secs, 1e9, "guard.max_snapshot_age_secs"),
            (guard.mass_failure_percent, 100.0, "guard.mass_failure_percent"),
            (guard.mass_failure_moved_percent, 100.0, "guard.mass_failure_moved_percent"),
            (guard.mass_failure_hold_secs, 1e9, "guard.mass_failure_hold_secs"),
        ] {
            if !(0.0..=most).contains(&value) {
                return wrong(key, format!("is {value}, expected 0 to {most}"));
            }
        }
        if let EngineSettings::Agents(agents) = &settings.engine
            && agents.nodes.is_empty()
        {
            return wrong(
                "engine.agents",
                "nodes is empty: list the agents as { name = \"n0\", address = \"HOST:PORT\" }".into(),
            );
        }
        for group in settings.tenants.iter().chain(&settings.cohorts) {
            if !(0.0..=1e6).contains(&group.weight) {
                return wrong("tenants", format!("{}: weight = {}: expected 0 to 1000000", group.name, group.weight));
            }
        }
        if let Err(error) = settings.tenants() {
            return wrong("tenants", error.to_string());
        }
        for token in &settings.api.tokens {
            if token.sha256.len() != 64 || !token.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return wrong(
                    "api.tokens",
                    format!("{}: sha256 is not 64 hexadecimal digits; `goodput live token` makes one", token.name),
                );
            }
        }
        Ok(())
    }
}
