//! What a policy was trained on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a policy was trained on and how it is to be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// SHA-256, in hexadecimal, of the observation schema.
    pub schema_hash: String,
    /// What the policy may know, by the name of its information level.
    pub information: String,
    /// How actions become plans: options of the decoder, as the environment wrote them.
    pub decoder: serde_json::Value,
    /// Where the policy comes from.
    pub provenance: Provenance,
    /// Smallest and greatest value met in training, by name; outside them the policy extrapolates.
    pub bounds: BTreeMap<String, [f64; 2]>,
    /// Accelerator types that it tells apart, in the order of its verbs; empty where it tells none apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
}

/// Where a policy comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The command line that trained it.
    pub argv: Vec<String>,
    /// Master seed.
    pub seed: u64,
    /// Decisions it learned from.
    pub steps: u64,
    /// SHA-256, in hexadecimal, of the resolved configuration.
    pub config_sha256: String,
}
