//! Inference services: `[[services]]`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use goodput_datasets::import::load;
use goodput_datasets::llm::ReplicaCatalog;
use goodput_datasets::samples::load_series;
use goodput_datasets::synth::{LoadSynth, SynthError};
use goodput_datasets::{DataError, ServingCatalog};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::service::{RateSeries, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;
use super::language::{self, LlmConfig, TokenService};
use crate::error::CheckError;
use crate::serving::{ServiceTerms, SloConfig, most_replicas, one, unit, unknown_model};

/// Inference service and its load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// Name of the service, unique in the file.
    pub name: String,
    /// Name of a shipped inference model, which provides speeds and a cold start, or of a replica of a language model
    /// (`goodput list llm-replicas`), which provides speeds and the number of its accelerators; absent: `profiles`
    /// gives the speeds.
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
    /// Time for which a replica that goes still holds its accelerators, seconds.
    #[serde(default = "unit")]
    pub drain_secs: f64,
    /// Fewest replicas of the service; absent: 1.
    #[serde(default = "one")]
    pub min_replicas: u32,
    /// Most replicas of the service; absent: 10000. Where they leave no room for the replicas on two accelerator types,
    /// a change of the type under `+per-watt` or `+per-dollar` has fewer replicas for a cold start, and none where this
    /// is 1.
    #[serde(default = "most_replicas")]
    pub max_replicas: u32,
    /// Squared coefficient of variation of the time between requests; 1 for independent users.
    #[serde(default = "unit")]
    pub arrival_cv2: f64,
    /// Squared coefficient of variation of the work in a request; 0 for equal requests.
    #[serde(default)]
    pub work_cv2: f64,
    /// Requests to a language model and its server, where `model` is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm: Option<LlmConfig>,
    /// Requests over time.
    pub load: LoadConfig,
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
    /// A csv file with a column of times (`t_s`, `timestamp`, `t`, `date`, `ds` or `time`), or `sample:load`, which is
    /// part of the program: two weeks of requests to a language model.
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

/// Checked services, ready to be drawn by seed.
#[derive(Clone, Debug, Default)]
pub(super) struct Services(Vec<CheckedService>);

/// A checked service.
#[derive(Clone, Debug)]
struct CheckedService {
    service: Arc<Service>,
    /// Load that is drawn anew for each seed.
    drawn: Option<LoadSynth>,
    /// Server of a language model.
    server: Option<Arc<TokenService>>,
}

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
        let of_seed = |(key, CheckedService { service, drawn, .. }): (usize, &CheckedService)| {
            let drawn = drawn.as_ref().and_then(|load| load.series(seed, key as u64).ok());
            match drawn {
                Some(rates) => Arc::new(Service { rates, ..(**service).clone() }),
                None => service.clone(),
            }
        };
        self.0.iter().enumerate().map(of_seed).collect()
    }

    /// Server of each service that runs a language model.
    pub fn servers(&self) -> Vec<Option<Arc<TokenService>>> {
        self.0.iter().map(|checked| checked.server.clone()).collect()
    }
}

fn value(key: &'static str, value: String, expected: &str) -> SetupError {
    SetupError::Value { key, value, expected: expected.into() }
}

impl ServiceConfig {
    fn build(&self, cluster: &Cluster) -> Result<CheckedService, SetupError> {
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
        let (service, server) = match self.model.as_deref().and_then(|name| ReplicaCatalog::shipped().replica(name)) {
            Some(replica) => {
                let (service, server) = language::service(self, replica)?;
                (service, Some(Arc::new(server)))
            }
            None if self.llm.is_some() => return Err(no_language_model(self.model.as_deref()).into()),
            None => (terms.service(&self.name, self.tenant)?, None),
        };
        let (rates, drawn) = match &self.load {
            LoadConfig::Synthetic(load) => (first_series(load)?, Some(load.clone())),
            LoadConfig::File(file) => (file.read()?, None),
        };
        let service = Service { rates, ..service };
        let fits = cluster.nodes.iter().any(|node| {
            let kind = &cluster.types[node.accelerator.index()].name;
            node.pool != Pool::Training && node.gpus >= service.gpus_per_replica && service.profile(kind).is_some()
        });
        if !fits {
            let known = service.profiles.keys().map(String::as_str).collect::<Vec<_>>().join(" or ");
            let expected =
                format!("a group for inference or for all with {} of {known} a node", service.gpus_per_replica);
            return Err(value("cluster.groups", "without a node that a replica fits on".into(), &expected));
        }
        Ok(CheckedService { service: Arc::new(service), drawn, server })
    }
}

/// Error of a table `llm` beside a model that is no language model.
fn no_language_model(model: Option<&str>) -> CheckError {
    let catalog = ServingCatalog::shipped();
    match model {
        Some(name) if catalog.model(name).is_none() => unknown_model(name, catalog),
        _ => {
            let expected = "a replica of `goodput list llm-replicas` as the model, or no table `llm`";
            CheckError::value("services.llm", "given", expected)
        }
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
        let text: Cow<'_, [u8]> = match load_series(&self.path)? {
            Some(sample) => sample.into(),
            None => {
                let read = |source| DataError::Read { path: self.path.clone(), source };
                std::fs::read(&self.path).map_err(read)?.into()
            }
        };
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
