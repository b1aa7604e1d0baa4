//! Accelerator types: memory, power and throughput, each figure with its source.
//!
//! A policy for unlike accelerators needs rates by type and model, and published rates are few and
//! uneven. So each figure keeps its source and says whether it was measured, derived or promised by
//! the maker. A figure that was not published is `None`, never zero and never interpolated: a
//! scheduler that needs more must profile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use goodput_env::cluster::{AcceleratorType, Cluster, Kind};
use serde::Deserialize;

use crate::error::DataError;

/// Name of the shipped file in messages.
const SHIPPED: &str = "accelerators.toml (shipped)";

/// Provenance of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Read from a log or a meter.
    Measured,
    /// Computed from measured figures.
    Derived,
    /// Stated by the maker.
    Nameplate,
    /// Not read in the source that is named: it comes from memory, or from a quotation by others.
    Unchecked,
}

impl Evidence {
    /// Name in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Derived => "derived",
            Self::Nameplate => "nameplate",
            Self::Unchecked => "unchecked",
        }
    }
}

/// Device memory of a type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// MiB of one accelerator.
    pub mib: u32,
    /// Provenance of the figure.
    pub kind: Evidence,
    /// Source of the figure, by its key.
    pub source: String,
}

/// Load under which a power is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerOf {
    /// Power of an idle device.
    Idle,
    /// Average power under load.
    Mean,
    /// Greatest power under load.
    Peak,
    /// Limit of the power.
    Limit,
}

/// Point at which power is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerAt {
    /// Power of the chip alone.
    Chip,
    /// Power of the board.
    Board,
    /// Power at the wall: the part of one accelerator in the power of the machine.
    Wall,
}

/// Power of one accelerator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Power in watts.
    pub watts: f64,
    /// Load under which a power is stated.
    pub of: PowerOf,
    /// Point of the measurement.
    pub at: PowerAt,
    /// Provenance of the figure.
    pub kind: Evidence,
    /// Source of the figure, by its key.
    pub source: String,
}

/// Price of one accelerator, without the machine around it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Dollars for an hour.
    pub dollars_per_hour: f64,
    /// Source of the figure, by its key.
    pub source: String,
}

/// Unit of a throughput figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateUnit {
    /// Minutes of training to the benchmark's target: less is better.
    MinutesToTarget,
    /// Samples a second.
    SamplesPerSecond,
    /// Output tokens a second.
    TokensPerSecond,
    /// Steps a second at the batch size that the model's name states.
    StepsPerSecond,
}

/// Throughput of a system of equal accelerators.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// Name of the benchmark; rates compare only within one benchmark.
    pub benchmark: String,
    /// Name of the model.
    pub model: String,
    /// Unit of the value.
    pub unit: RateUnit,
    /// Value for the whole system.
    pub value: f64,
    /// Number of accelerators in the system.
    pub devices: u32,
    /// Provenance of the figure.
    pub kind: Evidence,
    /// Source of the figure, by its key.
    pub source: String,
    /// Latency at this rate, milliseconds, where stated.
    #[serde(default)]
    pub latency_ms: Option<f64>,
    /// Percentile of the latency.
    #[serde(default)]
    pub percentile: Option<u32>,
}

impl Throughput {
    /// Rate of one accelerator, the higher the better: trainings a minute, or samples, tokens or steps a
    /// second.
    pub fn per_device(&self) -> f64 {
        let devices = f64::from(self.devices);
        match self.unit {
            RateUnit::MinutesToTarget => 1.0 / (self.value * devices),
            RateUnit::SamplesPerSecond | RateUnit::TokensPerSecond | RateUnit::StepsPerSecond => self.value / devices,
        }
    }

    /// The rate of one accelerator by the second.
    fn per_device_second(&self) -> f64 {
        match self.unit {
            RateUnit::MinutesToTarget => self.per_device() / 60.0,
            RateUnit::SamplesPerSecond | RateUnit::TokensPerSecond | RateUnit::StepsPerSecond => self.per_device(),
        }
    }
}

/// One accelerator type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorEntry {
    /// Name of the type, without rules.
    pub name: String,
    /// Kind of device.
    pub kind: Kind,
    /// Device memory, where known.
    #[serde(default)]
    pub memory: Option<Memory>,
    /// Known powers of the type.
    #[serde(default)]
    pub power: Vec<Power>,
    /// Price of the type, where known.
    #[serde(default)]
    pub price: Option<Price>,
    /// Known rates of the type.
    #[serde(default)]
    pub throughput: Vec<Throughput>,
}

impl AcceleratorEntry {
    /// Accelerator type for a cluster of the environment.
    pub fn accelerator_type(&self) -> AcceleratorType {
        let memory_mib = self.memory.as_ref().map(|memory| memory.mib);
        let watts = self.greatest_power().map(|power| power.watts);
        let dollars_per_hour = self.price.as_ref().map(|price| price.dollars_per_hour);
        AcceleratorType { name: self.name.clone(), kind: self.kind, memory_mib, watts, dollars_per_hour }
    }

    /// Greatest power of one accelerator: the limit of its board, else the peak of its chip; `None` where neither was
    /// published.
    pub fn greatest_power(&self) -> Option<&Power> {
        self.power(PowerOf::Limit, PowerAt::Board).or_else(|| self.power(PowerOf::Peak, PowerAt::Chip))
    }

    /// Fastest row for a model in a benchmark; `None` where no measurement was published.
    pub fn fastest(&self, benchmark: &str, model: &str) -> Option<&Throughput> {
        let rows = self.throughput.iter().filter(|row| row.benchmark == benchmark && row.model == model);
        rows.max_by(|a, b| a.per_device().total_cmp(&b.per_device()))
    }

    /// Rate of one accelerator as [`Throughput::per_device`]; `None` where no measurement was
    /// published.
    pub fn rate(&self, benchmark: &str, model: &str) -> Option<f64> {
        self.fastest(benchmark, model).map(Throughput::per_device)
    }

    /// Watts of one accelerator; `None` where none were published.
    pub fn watts(&self, of: PowerOf, at: PowerAt) -> Option<f64> {
        self.power(of, at).map(|power| power.watts)
    }

    fn power(&self, of: PowerOf, at: PowerAt) -> Option<&Power> {
        self.power.iter().find(|power| (power.of, power.at) == (of, at))
    }

    /// Kinds of all figures but the price, which is a list price.
    fn evidence(&self) -> impl Iterator<Item = Evidence> {
        let memory = self.memory.iter().map(|memory| memory.kind);
        let power = self.power.iter().map(|power| power.kind);
        memory.chain(power).chain(self.throughput.iter().map(|row| row.kind))
    }

    /// Joules for one sample, step or training on one accelerator; `None` where rate or power is
    /// missing. Powers of another sort or measured elsewhere do not stand in.
    pub fn joules(&self, benchmark: &str, model: &str, of: PowerOf, at: PowerAt) -> Option<f64> {
        Some(self.watts(of, at)? / self.fastest(benchmark, model)?.per_device_second())
    }
}

/// Accelerator types in the order of the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerators {
    /// Citations by key.
    pub sources: BTreeMap<String, String>,
    /// Accelerator types in the order of the file.
    #[serde(rename = "accelerator")]
    pub types: Vec<AcceleratorEntry>,
}

/// A line of a listing: one figure, or a type without any.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceleratorRow<'a> {
    /// Name of the type.
    pub accelerator: &'a AcceleratorEntry,
    /// Benchmarks with a figure of the type, in ascending order.
    pub benchmarks: Vec<&'a str>,
    /// Number of models with a figure of the type, in any benchmark.
    pub models: usize,
    /// Number of figures that were not read in their source.
    pub unchecked: usize,
    /// Citations in ascending order.
    pub sources: Vec<&'a str>,
}

impl Accelerators {
    /// Accelerator types that ship with the product.
    pub fn shipped() -> &'static Self {
        static CATALOG: OnceLock<Accelerators> = OnceLock::new();
        CATALOG.get_or_init(|| {
            let parsed = Self::parse(Path::new(SHIPPED), include_str!("../catalog/accelerators.toml"));
            parsed.expect("the shipped catalog is valid: a test reads it")
        })
    }

    /// Reads a catalog file.
    ///
    /// # Errors
    /// Where it cannot be read, is not TOML of the right shape, or contradicts itself.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::parse(path, &fs::read_to_string(path).map_err(DataError::read(path))?)
    }

    /// As [`Self::read`] from the text of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, DataError> {
        let parsed: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() as u64 + 1;
            let column = before.chars().rev().take_while(|&c| c != '\n').count() as u64 + 1;
            DataError::AcceleratorFile { path: path.to_owned(), line, column, message: error.message().to_owned() }
        })?;
        parsed.checked(path)
    }

    /// Writes into the types of a cluster what is known of their power and price, and gives each type the catalog's
    /// spelling of its name: see [`Self::canonical`].
    pub fn describe(&self, cluster: &mut Cluster) {
        for at in 0..cluster.types.len() {
            let name = self.canonical(&cluster.types[at].name).to_owned();
            // Two spellings of one name stay two types: no type is named twice.
            if cluster.types.iter().all(|of| of.name != name) {
                cluster.types[at].name = name;
            }
        }
        for kind in &mut cluster.types {
            let known = self.get(&kind.name).map(AcceleratorEntry::accelerator_type);
            kind.watts = known.as_ref().and_then(|known| known.watts);
            kind.dollars_per_hour = known.and_then(|known| known.dollars_per_hour);
        }
    }

    /// The catalog's spelling of a name: upper case, spaces and dashes make no other type (`A100`, `RTX 2080 Ti`,
    /// `tpu_v5e`). A name that the catalog does not have stays as it is.
    pub fn canonical<'a>(&'a self, name: &'a str) -> &'a str {
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
        };
        if self.get(name).is_some() {
            return name;
        }
        let asked = plain(name);
        self.types.iter().map(|known| known.name.as_str()).find(|known| plain(known) == asked).unwrap_or(name)
    }

    /// A type by its name.
    pub fn get(&self, name: &str) -> Option<&AcceleratorEntry> {
        self.types.iter().find(|accelerator| accelerator.name == name)
    }

    /// Fastest type for a model in a benchmark with its rate, the first on ties; `None` where no
    /// measurement was published.
    pub fn best(&self, benchmark: &str, model: &str) -> Option<(&AcceleratorEntry, f64)> {
        let rated =
            self.types.iter().filter_map(|accelerator| Some((accelerator, accelerator.rate(benchmark, model)?)));
        rated.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// Type that spends least energy on a model, with its joules, the first on ties. Types with an
    /// unknown rate or power are not candidates. Where `most_latency_ms` is given, types without a
    /// stated latency or with a higher one are not either.
    pub fn most_frugal(
        &self,
        (benchmark, model): (&str, &str),
        (of, at): (PowerOf, PowerAt),
        most_latency_ms: Option<f64>,
    ) -> Option<(&AcceleratorEntry, f64)> {
        let prompt = |accelerator: &&AcceleratorEntry| match most_latency_ms {
            None => true,
            Some(most) => accelerator
                .fastest(benchmark, model)
                .and_then(|row| row.latency_ms)
                .is_some_and(|latency| latency <= most),
        };
        let known = self.types.iter().filter(prompt);
        let spent = known.filter_map(|accelerator| Some((accelerator, accelerator.joules(benchmark, model, of, at)?)));
        spent.reduce(|best, next| if next.1 < best.1 { next } else { best })
    }

    /// One line a type, for a listing.
    pub fn rows(&self) -> Vec<AcceleratorRow<'_>> {
        self.types.iter().map(|accelerator| self.row(accelerator)).collect()
    }

    fn row<'a>(&'a self, accelerator: &'a AcceleratorEntry) -> AcceleratorRow<'a> {
        let benchmarks: BTreeSet<&str> = accelerator.throughput.iter().map(|row| row.benchmark.as_str()).collect();
        let models: BTreeSet<&str> = accelerator.throughput.iter().map(|row| row.model.as_str()).collect();
        let keys: BTreeSet<&str> = keys(accelerator).collect();
        AcceleratorRow {
            accelerator,
            benchmarks: benchmarks.into_iter().collect(),
            models: models.len(),
            unchecked: accelerator.evidence().filter(|kind| *kind == Evidence::Unchecked).count(),
            sources: keys.into_iter().filter_map(|key| self.sources.get(key)).map(String::as_str).collect(),
        }
    }

    fn checked(self, path: &Path) -> Result<Self, DataError> {
        let mut names = BTreeSet::new();
        for accelerator in &self.types {
            let refuse = |what: String| DataError::Accelerator {
                path: path.to_owned(),
                accelerator: accelerator.name.clone(),
                what,
            };
            if !names.insert(&accelerator.name) {
                return Err(refuse("is described twice".into()));
            }
            if let Some(key) = keys(accelerator).find(|key| !self.sources.contains_key(*key)) {
                return Err(refuse(format!("source {key:?} is not among [sources]")));
            }
            let positive = |value: f64| value.is_finite() && value > 0.0;
            if let Some(power) = accelerator.power.iter().find(|power| !positive(power.watts)) {
                return Err(refuse(format!("watts are {}, expected a number above 0", power.watts)));
            }
            if let Some(price) = accelerator.price.iter().find(|price| !positive(price.dollars_per_hour)) {
                let dollars = price.dollars_per_hour;
                return Err(refuse(format!("dollars_per_hour is {dollars}, expected a number above 0")));
            }
            for row in &accelerator.throughput {
                let about = format!("{} {}", row.benchmark, row.model);
                if !positive(row.value) || row.devices == 0 {
                    let found = format!("{} by {} devices", row.value, row.devices);
                    return Err(refuse(format!(
                        "{about}: {found}, expected both above 0; leave out what was not measured"
                    )));
                }
                if row.latency_ms.is_some_and(|latency| !positive(latency)) || row.percentile.is_some_and(|p| p > 100) {
                    return Err(refuse(format!("{about}: latency_ms must be above 0 and percentile at most 100")));
                }
            }
        }
        Ok(self)
    }
}

/// Keys of all citations of a type.
fn keys(accelerator: &AcceleratorEntry) -> impl Iterator<Item = &str> {
    let memory = accelerator.memory.iter().map(|memory| memory.source.as_str());
    let power = accelerator.power.iter().map(|power| power.source.as_str());
    let price = accelerator.price.iter().map(|price| price.source.as_str());
    memory.chain(power).chain(price).chain(accelerator.throughput.iter().map(|row| row.source.as_str()))
}
