//! Studies over settings: the values of keys that a study goes through, and the experiments that follow from them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Experiment;
use crate::error::{CheckError, ReadError};
use crate::reader::{self, Document};

/// Most combinations of settings in one file.
const MOST: usize = 10_000;

/// A study over settings: each combination of them is a workload of the comparison. `goodput sweep` runs it on any
/// number of machines, and `goodput eval` in one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SweepConfig {
    /// Lists of values by key: `environment.switch_cost = ["zero", "pollux_const"]`. Keys are those of this file, as
    /// for `--set`. The study goes through every combination.
    #[serde(skip_serializing_if = "SweepSettings::is_empty")]
    pub grid: SweepSettings,
    /// Settings that belong together: each entry has one value for each of its keys. The study goes through the
    /// entries, each with every combination of the grid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<SweepSettings>,
    /// Seeds of every workload; absent: as many held-out seeds as `evaluate.seeds` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<SeedRange>,
}

/// Seeds that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedRange {
    /// The first seed. Held-out seeds begin at 1000000.
    pub first: u64,
    /// Number of seeds.
    pub count: u64,
}

/// Values by dotted key. In a file, tables in tables are as good as keys with dots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct SweepSettings(pub BTreeMap<String, Value>);

impl SweepSettings {
    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn pairs(&self) -> Vec<(&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value)).collect()
    }
}

impl<'de> Deserialize<'de> for SweepSettings {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut flat = BTreeMap::new();
        flatten("", BTreeMap::<String, Value>::deserialize(deserializer)?, &mut flat);
        Ok(Self(flat))
    }
}

fn flatten(above: &str, table: impl IntoIterator<Item = (String, Value)>, flat: &mut BTreeMap<String, Value>) {
    for (key, value) in table {
        let key = if above.is_empty() { key } else { format!("{above}.{key}") };
        match value {
            Value::Object(below) => flatten(&key, below, flat),
            value => drop(flat.insert(key, value)),
        }
    }
}

/// Experiment of one combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint {
    /// The settings, as `switch_cost=zero nodes=8`; empty for an experiment without a sweep.
    pub name: String,
    /// The experiment with these settings, and without its sweep.
    pub experiment: Experiment,
}

impl SweepConfig {
    /// Checks everything but the experiments that follow.
    pub(super) fn check(&self) -> Result<(), CheckError> {
        if let Some((key, _)) = self.grid.0.iter().find(|(_, value)| value.as_array().is_none_or(Vec::is_empty)) {
            let message = format!("sweep.grid: {key:?} expects a list of at least one value");
            return Err(CheckError::at(format!("sweep.grid.{key}"), message));
        }
        if let Some(at) = self.points.iter().position(SweepSettings::is_empty) {
            return Err(CheckError::at(format!("sweep.points.{at}"), "an entry of sweep.points sets no key"));
        }
        if let Some(range) =
            self.seeds.filter(|range| range.count == 0 || range.first.checked_add(range.count).is_none())
        {
            return Err(CheckError::value("sweep.seeds.count", range.count, "at least 1 seed"));
        }
        let keys = self.grid.0.keys().chain(self.points.iter().flat_map(|point| point.0.keys()));
        for key in keys {
            let table = key.split('.').next().unwrap_or_default();
            if matches!(table, "sweep" | "name" | "seed" | "agent" | "train" | "evaluate") {
                let message = format!("sweep: {key:?} is no part of what a comparison plays");
                return Err(CheckError { remedy: Some(PLAYED), ..CheckError::at("sweep", message) });
            }
        }
        match self.combinations() {
            Some(..=MOST) => Ok(()),
            _ => Err(CheckError::at("sweep", format!("sweep has more than {MOST} combinations of settings"))),
        }
    }

    fn combinations(&self) -> Option<usize> {
        let lists = self.grid.0.values().filter_map(Value::as_array).map(Vec::len);
        lists.chain([self.points.len().max(1)]).try_fold(1_usize, usize::checked_mul)
    }

    /// The combinations, the last key of the grid the fastest.
    fn settings(&self) -> Vec<Vec<(&str, &Value)>> {
        let mut all: Vec<Vec<(&str, &Value)>> = self.points.iter().map(SweepSettings::pairs).collect();
        if all.is_empty() {
            all.push(Vec::new());
        }
        for (key, values) in &self.grid.0 {
            let values = values.as_array().map_or(&[][..], Vec::as_slice);
            let mut longer = Vec::with_capacity(all.len() * values.len());
            for before in &all {
                longer.extend(values.iter().map(|value| [before.as_slice(), &[(key.as_str(), value)]].concat()));
            }
            all = longer;
        }
        all
    }
}

/// Advice about keys that no sweep can set.
const PLAYED: &str = "a sweep sets keys of cluster, workload, tenants, services, environment, loaning and forecaster; \
                      policies are listed in evaluate.policies";

/// The experiments of a file: one for each combination of the settings of its sweep, or the experiment itself.
///
/// # Errors
/// The first key or value that does not fit, in the file or under a combination.
pub fn points(document: &Document) -> Result<Vec<SweepPoint>, ReadError> {
    let experiment: Experiment = reader::of_document(document)?;
    let Some(sweep) = experiment.sweep.clone().filter(|sweep| !sweep.grid.is_empty() || !sweep.points.is_empty())
    else {
        return Ok(vec![SweepPoint { name: String::new(), experiment: Experiment { sweep: None, ..experiment } }]);
    };
    let point = |settings: Vec<(&str, &Value)>| {
        let name = name(&settings);
        let under = |error: ReadError| error.with_help(format!("this is the file with {name} of [sweep]"));
        let sets = settings.iter().map(|(key, value)| Ok(format!("{key}={}", toml(value)?)));
        let sets = sets.collect::<Result<Vec<_>, ReadError>>()?;
        let document = document.with(&sets).map_err(under)?;
        let experiment: Experiment = reader::of_document(&document).map_err(under)?;
        Ok(SweepPoint { name: name.clone(), experiment: Experiment { sweep: None, ..experiment } })
    };
    sweep.settings().into_iter().map(point).collect()
}

/// Value as TOML in one line.
fn toml(value: &Value) -> Result<String, ReadError> {
    let value = toml::Value::try_from(value).map_err(|error| ReadError::new(error.to_string()))?;
    Ok(value.to_string())
}

/// Settings in words, with the last part of each key where that tells the keys apart.
fn name(settings: &[(&str, &Value)]) -> String {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let brief = |key: &str| {
        let same = settings.iter().filter(|(other, _)| last(other) == last(key)).count();
        if same > 1 { key.to_owned() } else { last(key) }
    };
    let value = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    settings.iter().map(|(key, of)| format!("{}={}", brief(key), value(of))).collect::<Vec<_>>().join(" ")
}
