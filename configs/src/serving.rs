//! Terms of an inference service that experiments and deployments share: the speed of a replica, the
//! objective, times and limits.

use std::collections::BTreeMap;

use goodput_datasets::serving::{ServingCatalog, profile};
use goodput_env::service::{RateSeries, Service, Slo};
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CheckError;

/// Objective for the latency of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SloConfig {
    /// Class that reports put together.
    #[serde(default = "interactive")]
    pub class: String,
    /// A request that takes longer violates the objective, milliseconds.
    pub latency_ms: u32,
    /// Share of requests that must not.
    #[serde(default = "p99")]
    pub target: f64,
}

fn interactive() -> String {
    "interactive".into()
}

fn p99() -> f64 {
    0.99
}

pub(crate) fn one() -> u32 {
    1
}

pub(crate) fn unit() -> f64 {
    1.0
}

pub(crate) fn most_replicas() -> u32 {
    10_000
}

/// Terms of a service, as the tables of a file state them.
pub(crate) struct ServiceTerms<'a> {
    /// Name of a shipped inference model.
    pub model: Option<&'a str>,
    /// Speeds by accelerator type, in addition to those of the model.
    pub profiles: &'a BTreeMap<String, Vec<(u32, f64)>>,
    /// Accelerator type that gives its speed to a type called `gpu`.
    pub reference: Option<&'a str>,
    /// Accelerators of one node that a replica holds.
    pub gpus_per_replica: u32,
    /// Objective for latency.
    pub slo: &'a SloConfig,
    /// Time until a new replica answers, seconds; the model's where `None`.
    pub cold_start_secs: Option<f64>,
    /// Time for which a replica that goes still holds its accelerators, seconds.
    pub drain_secs: f64,
    /// Fewest and most replicas.
    pub replicas: (u32, u32),
    /// Squared coefficient of variation of the time between requests.
    pub arrival_cv2: f64,
    /// Squared coefficient of variation of the work in a request.
    pub work_cv2: f64,
}

fn within(
    key: &'static str,
    number: f64,
    range: std::ops::RangeInclusive<f64>,
    expected: &str,
) -> Result<(), CheckError> {
    if range.contains(&number) { Ok(()) } else { Err(CheckError::value(key, number, expected)) }
}

impl ServiceTerms<'_> {
    /// Service of the environment with these terms, of tenant number `tenant`. No rate of requests
    /// is known yet.
    pub fn service(&self, name: &str, tenant: u32) -> Result<Service, CheckError> {
        self.check()?;
        let catalog = ServingCatalog::shipped();
        let unknown =
            |name: &str| CheckError::value("services.model", format!("{name:?}"), catalog.names().join(" or "));
        let model = self.model.map(|name| catalog.model(name).ok_or_else(|| unknown(name))).transpose()?;
        let mut profiles = model.map(|model| model.by_type()).unwrap_or_default();
        for (kind, points) in self.profiles {
            let refused = |error| {
                let expected = "[[requests at once, milliseconds], ...]";
                CheckError::value("services.profiles", format!("{kind}: {error}"), expected)
            };
            profiles.insert(kind.clone(), profile(points).map_err(refused)?);
        }
        let reference = self.reference.map(str::to_string).or_else(|| model.map(|model| model.reference.clone()));
        let reference = reference.or_else(|| profiles.keys().next().cloned()).unwrap_or_default();
        let cold_start = self.cold_start_secs.or(model.map(|model| model.cold_start_secs)).unwrap_or(0.0);
        Ok(Service {
            name: name.into(),
            tenant,
            rates: RateSeries::default(),
            arrival_cv2: self.arrival_cv2,
            work_cv2: self.work_cv2,
            profiles,
            reference,
            gpus_per_replica: self.gpus_per_replica,
            slo: Slo {
                class: self.slo.class.clone(),
                latency: SimTime::from_millis(i64::from(self.slo.latency_ms)),
                target: self.slo.target,
            },
            cold_start: SimTime::from_secs_f64(cold_start),
            drain: SimTime::from_secs_f64(self.drain_secs),
            min_replicas: self.replicas.0,
            max_replicas: self.replicas.1,
        })
    }

    fn check(&self) -> Result<(), CheckError> {
        if self.model.is_none() && self.profiles.is_empty() {
            let expected = "a model, or speeds by accelerator type";
            return Err(CheckError::value("services.profiles", "empty", expected));
        }
        within("services.slo.latency_ms", f64::from(self.slo.latency_ms), 1.0..=1e9, "1 to 1000000000")?;
        within("services.slo.target", self.slo.target, 0.5..=0.999_99, "0.5 to 0.99999")?;
        within("services.gpus_per_replica", f64::from(self.gpus_per_replica), 1.0..=1024.0, "1 to 1024")?;
        within("services.cold_start_secs", self.cold_start_secs.unwrap_or(0.0), 0.0..=1e6, "0 to 1000000")?;
        within("services.drain_secs", self.drain_secs, 0.0..=1e6, "0 to 1000000")?;
        within("services.arrival_cv2", self.arrival_cv2, 0.0..=100.0, "0 to 100")?;
        within("services.work_cv2", self.work_cv2, 0.0..=100.0, "0 to 100")?;
        let (least, most) = self.replicas;
        within("services.min_replicas", f64::from(least), 0.0..=f64::from(most), "0 to max_replicas")
    }
}
