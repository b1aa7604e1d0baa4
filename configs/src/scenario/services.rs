//! Inference services: `[[services]]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use goodput_datasets::DataError;
use goodput_datasets::import::load;
use goodput_datasets::serving::{ServingCatalog, profile};
use goodput_datasets::synth::{LoadSynth, SynthError};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::service::{RateSeries, Service, Slo};
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;

/// Inference service and its load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// Name of the service, unique in the file.
    pub name: String,
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
    /// Tenant that owns the service: index into the tenants; absent: 0.
    #[serde(default)]
    pub tenant: u32,
    /// Accelerators of one node that a replica holds.
    #[serde(default = "one")]
    pub gpus_per_replica: u32,
    /// Service level objective (SLO) for latency.
    pub slo: SloConfig,
    /// From the decision to start a replica until it answers, seconds; the model's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_start_secs: Option<f64>,
    /// How long a replica that goes still holds its accelerators, seconds.
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
    /// Requests over time.
    pub load: LoadConfig,
}

/// How fast answers have to be.
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

/// Requests over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoadConfig {
    /// Drawn anew for each seed.
    Synthetic(LoadSynth),
    /// Read from a file, the same for each seed.
    File(LoadFile),
}

/// A series in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadFile {
    /// A csv file with a column of times (`t_s`, `timestamp`, `t` or `date`).
    pub path: PathBuf,
    /// Column of values; the first after that of times where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Unit of the values; absent: requests per second.
    #[serde(default)]
    pub unit: LoadUnit,
    /// Values are multiplied by this.
    #[serde(default = "unit")]
    pub scale: f64,
}

/// Unit of the values of a load series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadUnit {
    /// Requests per second.
    #[default]
    PerSecond,
    /// Requests from this row to the next.
    PerStep,
}

fn one() -> u32 {
    1
}

fn unit() -> f64 {
    1.0
}

fn most_replicas() -> u32 {
    10_000
}

fn interactive() -> String {
    "interactive".into()
}

fn p99() -> f64 {
    0.99
}

/// Checked services, ready to be drawn by seed.
#[derive(Clone, Debug, Default)]
pub(super) struct Services(Vec<(Arc<Service>, Option<LoadSynth>)>);

impl Services {
    pub fn new(configs: &[ServiceConfig], cluster: &Cluster) -> Result<Self, SetupError> {
        let build = |config: &ServiceConfig| {
            let named = |source| SetupError::Service { service: config.name.clone(), source: Box::new(source) };
            config.build(cluster).map_err(named)
        };
        let services = configs.iter().map(build).collect::<Result<Vec<_>, _>>()?;
        let mut before = configs.iter().enumerate();
        match before.find(|(at, one)| configs[..*at].iter().any(|other| other.name == one.name)) {
            Some((_, config)) => Err(value("services.name", format!("{:?} twice", config.name), "names that differ")),
            None => Ok(Self(services)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The services of `seed`, each with a stream of its own.
    pub fn of_seed(&self, seed: u64) -> Vec<Arc<Service>> {
        let of_seed = |(key, (service, load)): (usize, &(Arc<Service>, Option<LoadSynth>))| {
            let drawn = load.as_ref().and_then(|load| load.series(seed, key as u64).ok());
            match drawn {
                Some(rates) => Arc::new(Service { rates, ..(**service).clone() }),
                None => service.clone(),
            }
        };
        self.0.iter().enumerate().map(of_seed).collect()
    }
}

fn value(key: &'static str, value: String, expected: &str) -> SetupError {
    SetupError::Value { key, value, expected: expected.into() }
}

fn within(
    key: &'static str,
    number: f64,
    range: std::ops::RangeInclusive<f64>,
    expected: &str,
) -> Result<(), SetupError> {
    if range.contains(&number) { Ok(()) } else { Err(value(key, number.to_string(), expected)) }
}

impl ServiceConfig {
    fn build(&self, cluster: &Cluster) -> Result<(Arc<Service>, Option<LoadSynth>), SetupError> {
        self.check()?;
        let catalog = ServingCatalog::shipped();
        let unknown = |name: &String| value("services.model", format!("{name:?}"), &catalog.names().join(" or "));
        let model = self.model.as_ref().map(|name| catalog.model(name).ok_or_else(|| unknown(name))).transpose()?;
        let mut profiles = model.map(|model| model.by_type()).unwrap_or_default();
        for (kind, points) in &self.profiles {
            let refused = |error| {
                value("services.profiles", format!("{kind}: {error}"), "[[requests at once, milliseconds], ...]")
            };
            profiles.insert(kind.clone(), profile(points).map_err(refused)?);
        }
        let reference = self.reference.clone().or_else(|| model.map(|model| model.reference.clone()));
        let reference = reference.or_else(|| profiles.keys().next().cloned()).unwrap_or_default();
        let cold_start = self.cold_start_secs.or(model.map(|model| model.cold_start_secs)).unwrap_or(0.0);
        let (rates, synthetic) = match &self.load {
            LoadConfig::Synthetic(load) => (first_series(load)?, Some(load.clone())),
            LoadConfig::File(file) => (file.read()?, None),
        };
        let service = Service {
            name: self.name.clone(),
            tenant: self.tenant,
            rates,
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
            min_replicas: self.min_replicas,
            max_replicas: self.max_replicas,
        };
        let fits = cluster.nodes.iter().any(|node| {
            let kind = &cluster.types[usize::from(node.accelerator)].name;
            node.pool != Pool::Training && node.gpus >= self.gpus_per_replica && service.profile(kind).is_some()
        });
        if !fits {
            let known = service.profiles.keys().map(String::as_str).collect::<Vec<_>>().join(" or ");
            let expected = format!("a group for inference or for all with {} of {known} a node", self.gpus_per_replica);
            return Err(value("cluster.groups", "without a node that a replica fits on".into(), &expected));
        }
        Ok((Arc::new(service), synthetic))
    }

    fn check(&self) -> Result<(), SetupError> {
        if self.model.is_none() && self.profiles.is_empty() {
            return Err(value("services.profiles", "empty".into(), "a model, or speeds by accelerator type"));
        }
        within("services.slo.latency_ms", f64::from(self.slo.latency_ms), 1.0..=1e9, "1 to 1000000000")?;
        within("services.slo.target", self.slo.target, 0.5..=0.999_99, "0.5 to 0.99999")?;
        within("services.gpus_per_replica", f64::from(self.gpus_per_replica), 1.0..=1024.0, "1 to 1024")?;
        within("services.cold_start_secs", self.cold_start_secs.unwrap_or(0.0), 0.0..=1e6, "0 to 1000000")?;
        within("services.drain_secs", self.drain_secs, 0.0..=1e6, "0 to 1000000")?;
        within("services.arrival_cv2", self.arrival_cv2, 0.0..=100.0, "0 to 100")?;
        within("services.work_cv2", self.work_cv2, 0.0..=100.0, "0 to 100")?;
        let most = f64::from(self.max_replicas);
        within("services.min_replicas", f64::from(self.min_replicas), 0.0..=most, "0 to max_replicas")
    }
}

/// The series of seed 0; what is wrong with the settings is found here.
fn first_series(load: &LoadSynth) -> Result<RateSeries, SetupError> {
    load.series(0, 0).map_err(|error| match error {
        SynthError::Setting { setting, value: found, expected } => {
            value("services.load.synthetic", format!("{setting} = {found}"), expected)
        }
        other => SetupError::Synthetic(other),
    })
}

impl LoadFile {
    fn read(&self) -> Result<RateSeries, SetupError> {
        let read = |source| DataError::Read { path: self.path.clone(), source };
        let text = std::fs::read(&self.path).map_err(read)?;
        let (load, report) = load::parse(&self.path, &text, self.column.as_deref())?;
        // Strict: a run on a part of a series compares with nothing.
        if let Some((line, problem)) = report.refused.examples.into_iter().min_by_key(|(line, _)| *line) {
            return Err(DataError::Row { path: self.path.clone(), line, problem }.into());
        }
        let per_second = match self.unit {
            LoadUnit::PerSecond => self.scale,
            LoadUnit::PerStep => self.scale / load.step.as_secs_f64(),
        };
        load.rates(per_second).map_err(|error| value("services.load.file", error.to_string(), "requests per second"))
    }
}
