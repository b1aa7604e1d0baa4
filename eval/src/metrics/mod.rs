//! Metrics of a finished run: one table, each with its unit, its direction and its definition.
//!
//! A metric is a function of a finished run; [`measure`] evaluates all of them. Metrics over
//! completion times count completed jobs only, so a run that was cut off must be read together with
//! `unfinished_jobs`.

mod cards;
mod deadlines;
mod expenses;
mod fairness;
mod isolated;
mod levels;
mod reliability;
mod rental;
pub mod requests;
mod run_facts;
mod services;
mod table;
mod tenants;
mod usage;
mod waiting;

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use cards::CardFacts;
pub use deadlines::{DeadlineFacts, deadline_facts};
pub use expenses::Expenses;
pub use fairness::{finish_time_fairness, jain_index};
pub use isolated::{IsolatedReference, isolated_secs, jobs_in_system};
pub use levels::{Level, LevelRow, levels};
pub use reliability::Reliability;
pub use rental::RentalFacts;
pub use run_facts::RunFacts;
pub use services::{SloClass, latency_over_slo, slo_classes};
pub use table::METRICS;
pub use tenants::{STARVATION, TenantFacts, envy_pairs, isolation_index, starves, tenant_facts, wait_secs};
pub use usage::{productive_gpu_millis, reference_gpu_secs};
pub use waiting::{bounded_slowdown, jct_secs, queueing_delay_secs};

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Smaller is better.
    Lower,
    /// Larger is better.
    Higher,
}

/// Format of a metric's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricUnit {
    /// Time in seconds.
    Secs,
    /// A share of one, shown in percent.
    Share,
    /// Ratio without a unit.
    Ratio,
    /// Number of events or things.
    Count,
    /// A count per job.
    PerJob,
    /// Accelerator time, hours.
    GpuHours,
    /// Time of nodes, hours.
    NodeHours,
    /// Energy in kilowatt-hours.
    KilowattHours,
    /// Money, US dollars.
    Dollars,
}

impl std::fmt::Display for MetricUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Secs => "s",
            Self::Share => "share",
            Self::Ratio => "ratio",
            Self::Count => "count",
            Self::PerJob => "per job",
            Self::GpuHours => "GPU h",
            Self::NodeHours => "node h",
            Self::KilowattHours => "kWh",
            Self::Dollars => "$",
        })
    }
}

/// A metric of a run.
pub struct Metric {
    /// Stable name, with its unit, as in `summary.json`.
    pub key: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: MetricUnit,
    /// Direction in which the metric improves.
    pub better: Better,
    /// Definition of the metric, in one sentence.
    pub description: &'static str,
    of: fn(&RunFacts<'_>) -> Option<f64>,
}

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.key)
    }
}

/// Headline metric, by which policies are ranked: mean job completion time.
pub const HEADLINE: &str = "jct_mean_secs";

/// The metric called `key`.
pub fn metric(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

/// The values of all [`METRICS`] on one run, in their order; `None` where a metric is undefined, as
/// for no completed job.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures(Vec<Option<f64>>);

impl Measures {
    /// The value of the metric called `key`.
    pub fn get(&self, key: &str) -> Option<f64> {
        let index = METRICS.iter().position(|metric| metric.key == key)?;
        self.0.get(index).copied().flatten()
    }

    /// Metrics with their values, in the order of [`METRICS`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static Metric, Option<f64>)> + '_ {
        METRICS.iter().zip(self.0.iter().copied())
    }
}

/// A map from the keys of the defined metrics to their values; a value that is not finite is a text.
impl Serialize for Measures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let defined = self.iter().filter_map(|(metric, value)| Some((metric.key, value?)));
        serializer.collect_map(defined.map(|(key, value)| match value.is_finite() {
            true => (key, StoredNumber::Finite(value)),
            false => (key, StoredNumber::Other(value.to_string())),
        }))
    }
}

impl<'de> Deserialize<'de> for Measures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = BTreeMap::<String, StoredNumber>::deserialize(deserializer)?;
        let value = |metric: &Metric| match stored.get(metric.key) {
            None => Ok(None),
            Some(StoredNumber::Finite(value)) => Ok(Some(*value)),
            Some(StoredNumber::Other(text)) => text.parse().map(Some).map_err(D::Error::custom),
        };
        METRICS.iter().map(value).collect::<Result<_, _>>().map(Self)
    }
}

/// Number as JSON can hold it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredNumber {
    Finite(f64),
    Other(String),
}

/// Evaluates every metric on a run.
pub fn measure(run: &RunFacts<'_>) -> Measures {
    Measures(METRICS.iter().map(|metric| (metric.of)(run)).collect())
}

#[cfg(test)]
mod tests {
    use super::{METRICS, Measures};

    #[test]
    fn measures_survive_json_to_the_last_bit() {
        let value = |at: usize| match at % 4 {
            0 => None,
            1 => Some(0.1 + at as f64 / 3.0),
            2 => Some(f64::INFINITY),
            _ => Some(1e-300),
        };
        let measures = Measures((0..METRICS.len()).map(value).collect());
        let json = serde_json::to_string(&measures).expect("numbers and texts");
        assert_eq!(serde_json::from_str::<Measures>(&json).expect("what was written"), measures);
    }

    #[test]
    fn keys_are_unique_and_described() {
        let mut keys: Vec<_> = METRICS.iter().map(|metric| metric.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), METRICS.len());
        assert!(METRICS.iter().all(|metric| !metric.description.ends_with('.') && metric.description.len() > 10));
    }
}
