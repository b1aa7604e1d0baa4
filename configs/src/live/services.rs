//! Inference services of a live cluster: `[[services]]` of a deployment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use goodput_env::service::Service;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::deployment::Deployment;
use super::engine::EngineConfig;
use super::times::check_positive_secs;
use crate::error::CheckError;
use crate::serving::{ServiceTerms, SloConfig, most_replicas, one, unit};

/// Load of a service as the Prometheus under `[prometheus]` knows it. It stands for what the replicas report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceLoadConfig {
    /// PromQL query for the requests per second of the service, with one series as its result, such as
    /// `sum(rate(http_requests_total{app="chat"}[1m]))`.
    pub query: String,
    /// Hours before the first start of the daemon from which forecasts learn.
    #[serde(default = "week_hours")]
    pub history_hours: f64,
}

fn week_hours() -> f64 {
    168.0
}

/// Inference service of a live cluster: its terms, and the program of a replica.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveServiceConfig {
    /// Name of the service, unique in the file: 1 to 40 letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Program of a replica and its arguments.
    pub command: Vec<String>,
    /// Environment of a replica, beside the variables of the job protocol.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Working directory of a replica; absent: the engine's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Name of a shipped inference model, which provides speeds and a cold start; absent:
    /// `profiles` gives the speeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Speeds by accelerator type, in addition to those of the model or in place of them: pairs of
    /// the number of requests that a replica processes at once and the milliseconds that each
    /// request then takes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, Vec<(u32, f64)>>,
    /// Accelerator type that gives its speed to a type called `gpu`; absent: that of the model,
    /// else the first type with a speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Name of the tenant that owns the service; absent: the first tenant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Accelerators of one node that a replica holds.
    #[serde(default = "one")]
    pub gpus_per_replica: u32,
    /// Query for the load; absent: the replicas report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<ServiceLoadConfig>,
    /// Service level objective (SLO) for latency.
    pub slo: SloConfig,
    /// From the decision to start a replica until it answers, seconds; the model's where absent. A
    /// replica that reports its load answers from its first report on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_start_secs: Option<f64>,
    /// Time in which a replica that goes may still finish its requests, seconds: from SIGTERM to
    /// SIGKILL.
    #[serde(default = "unit")]
    pub drain_secs: f64,
    /// Fewest replicas of the service; absent: 1.
    #[serde(default = "one")]
    pub min_replicas: u32,
    /// Most replicas of the service; absent: 10000.
    #[serde(default = "most_replicas")]
    pub max_replicas: u32,
    /// Squared coefficient of variation of the time between requests; 1 for independent users.
    #[serde(default = "unit")]
    pub arrival_cv2: f64,
    /// Squared coefficient of variation of the work in a request; 0 for equal requests.
    #[serde(default)]
    pub work_cv2: f64,
}

impl LiveServiceConfig {
    /// Service of the environment with these terms. No rate of requests is known yet.
    fn service(&self) -> Result<Service, CheckError> {
        self.terms().map_err(|error| error.within("services", &self.name))
    }

    fn terms(&self) -> Result<Service, CheckError> {
        let named = (1..=40).contains(&self.name.len())
            && self.name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && self.name.chars().all(plain);
        if !named {
            let expected = "1 to 40 letters, digits, `-`, `_` and `.`, the first a letter or digit";
            return Err(CheckError::value("services.name", format!("{:?}", self.name), expected));
        }
        if self.command.first().is_none_or(String::is_empty) {
            return Err(CheckError::value("services.command", "empty", "the program of a replica and its arguments"));
        }
        // Where only replicas tell the load, a service without any would never be started again.
        if self.min_replicas == 0 && self.load.is_none() {
            let expected = "1 or more without services.load: a service without replicas reports no load";
            return Err(CheckError::value("services.min_replicas", 0, expected));
        }
        if let Some(load) = &self.load {
            if load.query.trim().is_empty() {
                return Err(CheckError::value("services.load.query", "empty", "a query for the requests per second"));
            }
            check_positive_secs("services.load.history_hours", load.history_hours * 3600.0)?;
        }
        let terms = ServiceTerms {
            model: self.model.as_deref(),
            profiles: &self.profiles,
            reference: self.reference.as_deref(),
            gpus_per_replica: self.gpus_per_replica,
            slo: &self.slo,
            cold_start_secs: self.cold_start_secs,
            drain_secs: self.drain_secs,
            replicas: (self.min_replicas, self.max_replicas),
            arrival_cv2: self.arrival_cv2,
            work_cv2: self.work_cv2,
        };
        terms.service(&self.name, 0)
    }
}

impl Deployment {
    /// Services of the environment that the deployment declares, in their order.
    ///
    /// # Errors
    /// [`CheckError`] that names the service and the key.
    pub fn services(&self) -> Result<Vec<Service>, CheckError> {
        if let EngineConfig::Slurm(slurm) = &self.engine
            && !self.services.is_empty()
        {
            let reservation = slurm.reservation.as_deref().unwrap_or_default();
            if reservation.is_empty() || !reservation.chars().all(plain) {
                let expected = "the name of the reservation in which the replicas of `[[services]]` run";
                return Err(CheckError::value("engine.slurm.reservation", format!("{reservation:?}"), expected));
            }
        }
        if let (EngineConfig::Kubernetes(_), Some(service)) = (&self.engine, self.services.first()) {
            let expected = "no [[services]] under Kubernetes: a Deployment with its own autoscaler runs them there";
            return Err(CheckError::value("services.name", format!("{:?}", service.name), expected));
        }
        if let Some(prometheus) = &self.prometheus {
            prometheus.check()?;
            if self.services.iter().all(|service| service.load.is_none()) {
                let expected = "a service with `load`, since nothing else is asked of it";
                return Err(CheckError::value("prometheus", "given", expected));
            }
        }
        for (at, LiveServiceConfig { name, tenant, load, .. }) in self.services.iter().enumerate() {
            let problem = if self.services[..at].iter().any(|other| other.name == *name) {
                CheckError::value("services.name", format!("{name:?} twice"), "names that differ")
            } else if !(tenant.is_empty() || self.tenants.iter().any(|known| known.name == *tenant)) {
                CheckError::value("services.tenant", format!("{tenant:?}"), "the name of a tenant of the file")
            } else if load.is_some() && self.prometheus.is_none() {
                CheckError::value("services.load", "given", "a [prometheus] in the file, which is asked for the load")
            } else {
                continue;
            };
            return Err(problem.within("services", name));
        }
        self.services.iter().map(LiveServiceConfig::service).collect()
    }
}

/// Whether a character may be part of a name that goes into commands and paths.
fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}
