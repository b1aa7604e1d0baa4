//! Inference models as shipped with the product: speed of a replica by accelerator type, with
//! sources.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use goodput_env::service::{ServingPoint, ServingProfile};
use serde::Deserialize;

/// Provenance of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Latency and concurrency are read from a log.
    Measured,
    /// Computed from measured numbers.
    Derived,
    /// Throughput is measured, the concurrency is assumed.
    Assumed,
}

/// Speed on one accelerator type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileEntry {
    /// Name of the type.
    pub accelerator: String,
    /// Requests at once and the milliseconds each takes then.
    pub points: Vec<(u32, f64)>,
    /// Provenance of the speed.
    pub kind: Basis,
    /// Source of the speed, by its key.
    pub source: String,
    /// Figures from which the speed is derived.
    pub note: String,
}

/// An inference model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServingModel {
    /// Name of the model.
    pub name: String,
    /// Accelerator type that lends its speed to a type called `gpu`.
    pub reference: String,
    /// Time from the decision to start a replica until it answers, seconds.
    pub cold_start_secs: f64,
    /// Source of the figures, by its key.
    pub cold_start_source: String,
    /// Speeds by accelerator type.
    pub profiles: Vec<ProfileEntry>,
}

/// All shipped inference models.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServingCatalog {
    /// Citations of the sources, by key.
    pub sources: BTreeMap<String, String>,
    /// Models by name.
    #[serde(rename = "model")]
    pub models: Vec<ServingModel>,
}

impl ServingCatalog {
    /// The shipped models.
    pub fn shipped() -> &'static Self {
        static SHIPPED: OnceLock<ServingCatalog> = OnceLock::new();
        SHIPPED.get_or_init(|| {
            let parsed = toml::from_str(include_str!("../catalog/serving.toml"));
            parsed.expect("the shipped models are valid: a test reads them")
        })
    }

    /// Model by its name.
    pub fn model(&self, name: &str) -> Option<&ServingModel> {
        self.models.iter().find(|model| model.name == name)
    }

    /// Names of all models.
    pub fn names(&self) -> Vec<&str> {
        self.models.iter().map(|model| model.name.as_str()).collect()
    }
}

impl ServingModel {
    /// Profiles by name of accelerator type. Types with points that make no profile are left out; a
    /// test finds none among the shipped models.
    pub fn by_type(&self) -> BTreeMap<String, ServingProfile> {
        let profile = |entry: &ProfileEntry| Some((entry.accelerator.clone(), profile(&entry.points).ok()?));
        self.profiles.iter().filter_map(profile).collect()
    }
}

/// A profile from points of requests at once and milliseconds.
///
/// # Errors
/// As [`ServingProfile::new`].
pub fn profile(points: &[(u32, f64)]) -> Result<ServingProfile, goodput_env::service::ServiceError> {
    let point = |&(concurrency, millis): &(u32, f64)| ServingPoint { concurrency, latency_secs: millis / 1e3 };
    ServingProfile::new(points.iter().map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerators::Accelerators;

    #[test]
    fn shipped_profiles_are_sound_and_cited() {
        let catalog = ServingCatalog::shipped();
        let known = Accelerators::shipped();
        for model in &catalog.models {
            assert_eq!(model.by_type().len(), model.profiles.len(), "{}", model.name);
            assert!(
                model.by_type().contains_key(&model.reference)
                    && catalog.sources.contains_key(&model.cold_start_source)
            );
            for entry in &model.profiles {
                assert!(catalog.sources.contains_key(&entry.source));
                assert!(known.get(&entry.accelerator).is_some(), "{}", entry.accelerator);
            }
        }
        // Offline throughput as published, samples per second of one device.
        let resnet = catalog.model("resnet-50").unwrap().by_type();
        for (kind, published) in [("t4", 5622.0), ("tpu-v3", 8179.0), ("a100-pcie", 31_063.5), ("vck5000", 6257.4)] {
            assert!((resnet[kind].throughput() / published - 1.0).abs() < 1e-3, "{kind}");
        }
        let bert = catalog.model("bert-base").unwrap().by_type();
        assert!((25.0..26.0).contains(&bert["v100"].throughput()));
    }
}
