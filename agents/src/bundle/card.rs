//! Model card of a policy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Model card: the training of a policy, and its use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// SHA-256, in hexadecimal, of the observation schema.
    pub schema_hash: String,
    /// Information level of the policy, by name.
    pub information: String,
    /// Translation of actions into plans: options of the decoder, as the environment wrote them.
    pub decoder: serde_json::Value,
    /// Provenance of the policy.
    pub provenance: Provenance,
    /// Smallest and greatest value met in training, by name; outside them the policy extrapolates.
    pub bounds: BTreeMap<String, [f64; 2]>,
    /// Accelerator types that it tells apart, in the order of its verbs; empty where it tells none
    /// apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
}

/// Provenance of a trained model: command, seed, budget, configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The command line that trained it.
    pub argv: Vec<String>,
    /// Master seed of the training run.
    pub seed: u64,
    /// Amount of experience: a number of decisions for a net, of episodes for parameters that were searched.
    pub steps: u64,
    /// SHA-256, in hexadecimal, of the resolved configuration.
    pub config_sha256: String,
}
