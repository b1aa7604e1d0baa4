//! Terms of an inference service that experiments and deployments share: the speed of a replica, the
//! objective, times and limits.

use std::collections::BTreeMap;

use goodput_datasets::llm::ReplicaCatalog;
use goodput_datasets::serving::{ServingCatalog, profile};
use goodput_env::service::{RateSeries, Service, Slo};
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CheckError;
use crate::names::did_you_mean;

/// Objective for the latency of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SloConfig {
    /// Class that reports put together.
    #[serde(default = "interactive")]
    pub class: String,
    /// A request that takes longer violates the objective, milliseconds; absent for a language model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u32>,
    /// A request to a language model of which the first token takes longer violates the objective, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u32>,
    /// A request to a language model of which a further token takes longer in the mean violates the objective,
    /// milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<f64>,
    /// Share of requests that must not; of a language model, the share that must keep both of its objectives.
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

pub(crate) fn within(
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
        let latency_ms = self.check()?;
        let catalog = ServingCatalog::shipped();
        let unknown = |name: &str| unknown_model(name, catalog);
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
                latency: SimTime::from_millis(i64::from(latency_ms)),
                target: self.slo.target,
            },
            cold_start: SimTime::from_secs_f64(cold_start),
            drain: SimTime::from_secs_f64(self.drain_secs),
            min_replicas: self.replicas.0,
            max_replicas: self.replicas.1,
        })
    }

    /// Checks the terms; gives the objective, milliseconds.
    fn check(&self) -> Result<u32, CheckError> {
        if self.model.is_none() && self.profiles.is_empty() {
            let expected = "a model, or speeds by accelerator type";
            return Err(CheckError::value("services.profiles", "empty", expected));
        }
        let latency_ms = self.slo.of_answers()?;
        within("services.slo.target", self.slo.target, 0.5..=0.999_99, "0.5 to 0.99999")?;
        within("services.gpus_per_replica", f64::from(self.gpus_per_replica), 1.0..=1024.0, "1 to 1024")?;
        within("services.cold_start_secs", self.cold_start_secs.unwrap_or(0.0), 0.0..=1e6, "0 to 1000000")?;
        within("services.drain_secs", self.drain_secs, 0.0..=1e6, "0 to 1000000")?;
        within("services.arrival_cv2", self.arrival_cv2, 0.0..=100.0, "0 to 100")?;
        within("services.work_cv2", self.work_cv2, 0.0..=100.0, "0 to 100")?;
        let (least, most) = self.replicas;
        within("services.min_replicas", f64::from(least), 0.0..=f64::from(most), "0 to max_replicas")?;
        Ok(latency_ms)
    }
}

impl SloConfig {
    /// Objective of a service of whole answers, milliseconds.
    fn of_answers(&self) -> Result<u32, CheckError> {
        let foreign = [("services.slo.ttft_ms", self.ttft_ms.map(f64::from)), ("services.slo.tpot_ms", self.tpot_ms)];
        if let Some((key, ms)) = foreign.into_iter().find_map(|(key, ms)| Some((key, ms?))) {
            return Err(CheckError::value(key, ms, "latency_ms in its place: the model is no language model"));
        }
        let expected = "1 to 1000000000";
        let absent = || CheckError::value("services.slo.latency_ms", "absent", expected);
        let latency_ms = self.latency_ms.ok_or_else(absent)?;
        within("services.slo.latency_ms", f64::from(latency_ms), 1.0..=1e9, expected)?;
        Ok(latency_ms)
    }
}

/// Error of a model that is in neither catalog.
pub(crate) fn unknown_model(name: &str, catalog: &ServingCatalog) -> CheckError {
    let replicas = ReplicaCatalog::shipped().replicas.iter().map(|replica| replica.name.as_str());
    let answers = catalog.names();
    let near = did_you_mean(name, answers.iter().copied().chain(replicas));
    let expected =
        format!("{} or, in a scenario, a replica of `goodput list llm-replicas`{near}", answers.join(" or "));
    CheckError::value("services.model", format!("{name:?}"), expected)
}
