//! Inference services of a snapshot, in plain data.

use std::collections::BTreeMap;

use goodput_env::service::{RateSeries, Service, ServingProfile, Slo};
use goodput_env::time::SimTime;
use serde::{Deserialize, Serialize};

use super::DeclaredService;

/// Inference service of a snapshot: under Slurm the jobs of its name in the reservation of services, under node
/// agents a set of replicas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSeen {
    /// Name of the service.
    pub name: String,
    /// Speed, objective and limits of the service.
    pub spec: ServiceSpec,
    /// Requests per second now; `None` where the engine does not measure them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Requests that wait because the replicas cannot keep up; `None` where the engine does not
    /// measure them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<f64>,
    /// Whether the service is retired: no request comes any more.
    #[serde(default)]
    pub retired: bool,
    /// Replicas, oldest first.
    #[serde(default)]
    pub replicas: Vec<ReplicaSeen>,
}

impl ServiceSeen {
    /// Service with these replicas, oldest first. `loads` are the requests per second that each
    /// replica which answers has reported lately. The rate of the service is known where there is a
    /// replica that answers and all of them have reported.
    pub fn of(declared: &DeclaredService, replicas: Vec<ReplicaSeen>, loads: &[Option<f64>]) -> Self {
        let rate = loads.iter().copied().sum::<Option<f64>>().filter(|_| !loads.is_empty());
        let (name, spec) = (declared.name.clone(), declared.spec.clone());
        Self { name, spec, rate, backlog: None, retired: false, replicas }
    }

    /// Number of replicas on `node` that start or answer; those that leave do not count.
    pub fn lasting_on(&self, node: &str) -> u32 {
        let lasts = |replica: &&ReplicaSeen| !matches!(replica.phase, ReplicaStage::Draining { .. });
        self.replicas.iter().filter(lasts).filter(|replica| replica.node == node).count() as u32
    }
}

/// Replica of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaSeen {
    /// Name of the node.
    pub node: String,
    /// Phase of the replica.
    #[serde(flatten)]
    pub phase: ReplicaStage,
}

/// Phase of a replica. Times are milliseconds of the engine's clock; `None` where the engine does
/// not know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "phase")]
pub enum ReplicaStage {
    /// The replica loads, and requests do not reach it yet.
    Starting {
        /// Time at which the replica answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ready_ms: Option<i64>,
    },
    /// The replica answers requests.
    Ready,
    /// The replica finishes its requests and takes no new ones.
    Draining {
        /// Time at which its accelerators are free.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        free_ms: Option<i64>,
    },
}

/// Speed, objective and limits of a service: all that a policy knows of it beside its present state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSpec {
    /// Name of the tenant; empty where the service is of no tenant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Accelerators of one node that a replica holds.
    pub gpus_per_replica: u32,
    /// Speed of a replica by name of accelerator type. The service cannot run on other types.
    pub profiles: BTreeMap<String, ServingProfile>,
    /// Name of the type that gives an accelerator of type `gpu` its speed.
    #[serde(default)]
    pub reference: String,
    /// Objective of the service.
    pub slo: Slo,
    /// Time from the start of a replica until it answers, milliseconds.
    pub cold_start_ms: i64,
    /// Time for which a replica that leaves holds its accelerators, milliseconds.
    pub drain_ms: i64,
    /// Smallest number of replicas.
    pub min_replicas: u32,
    /// Largest number of replicas.
    pub max_replicas: u32,
    /// Squared coefficient of variation of the time between requests.
    #[serde(default = "one")]
    pub arrival_cv2: f64,
    /// Squared coefficient of variation of the work in a request.
    #[serde(default)]
    pub work_cv2: f64,
    /// Length of a step of the recorded rates, milliseconds.
    #[serde(default = "minute")]
    pub rate_step_ms: i64,
}

const fn one() -> f64 {
    1.0
}

const fn minute() -> i64 {
    60_000
}

impl ServiceSpec {
    /// Specification of a service of the environment, which belongs to the tenant of name `tenant`.
    pub fn of(service: &Service, tenant: &str) -> Self {
        Self {
            tenant: tenant.into(),
            gpus_per_replica: service.gpus_per_replica,
            profiles: service.profiles.clone(),
            reference: service.reference.clone(),
            slo: service.slo.clone(),
            cold_start_ms: service.cold_start.as_millis(),
            drain_ms: service.drain.as_millis(),
            min_replicas: service.min_replicas,
            max_replicas: service.max_replicas,
            arrival_cv2: service.arrival_cv2,
            work_cv2: service.work_cv2,
            rate_step_ms: service.rates.step().as_millis(),
        }
    }

    /// Service of the environment with this specification, with the name `name` and of tenant number
    /// `tenant`. No rate of requests is recorded yet.
    pub fn service(&self, name: &str, tenant: u32) -> Service {
        let step = SimTime::from_millis(self.rate_step_ms.max(1));
        Service {
            name: name.into(),
            tenant,
            rates: RateSeries::new(step, &[]).unwrap_or_default(),
            arrival_cv2: self.arrival_cv2,
            work_cv2: self.work_cv2,
            profiles: self.profiles.clone(),
            reference: self.reference.clone(),
            gpus_per_replica: self.gpus_per_replica,
            slo: self.slo.clone(),
            cold_start: SimTime::from_millis(self.cold_start_ms),
            drain: SimTime::from_millis(self.drain_ms),
            min_replicas: self.min_replicas,
            max_replicas: self.max_replicas,
        }
    }
}
