//! Replicas of language models: the costs of a step of each configuration that was measured.
//!
//! `goodput data fit-llm FILE -o datasets/catalog/llm-replicas.toml` makes the table. It holds fitted figures only,
//! never rows of the measurements.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use goodput_env::model::serving::llm::StepCosts;
use serde::{Deserialize, Serialize};

use super::configuration::Configuration;
use crate::catalog;
use crate::error::DataError;

/// A configuration with the costs of its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaEntry {
    /// Name by which a replay asks for it.
    pub name: String,
    /// Rows of measurements behind the figures.
    pub rows: u32,
    /// Tokens of which keys and values fit into memory beside the weights: an estimate from the sizes.
    pub kv_tokens: u64,
    /// Configuration that was measured.
    pub configuration: Configuration,
    /// Costs of a step.
    pub step: StepCosts,
}

/// All fitted replicas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaCatalog {
    /// Citations of the measurements, by key.
    pub sources: BTreeMap<String, String>,
    /// Replicas by name.
    #[serde(rename = "replica")]
    pub replicas: Vec<ReplicaEntry>,
}

impl ReplicaCatalog {
    /// The shipped replicas.
    pub fn shipped() -> &'static Self {
        static SHIPPED: OnceLock<ReplicaCatalog> = OnceLock::new();
        SHIPPED.get_or_init(|| {
            let parsed = toml::from_str(include_str!("../../catalog/llm-replicas.toml"));
            parsed.expect("the shipped replicas are valid: a test reads them")
        })
    }

    /// Replica by its name.
    pub fn replica(&self, name: &str) -> Option<&ReplicaEntry> {
        self.replicas.iter().find(|replica| replica.name == name)
    }

    /// The catalog as a file, a line for the costs of each replica.
    pub fn to_toml(&self) -> String {
        let mut text = String::from(
            "# Costs of a step of replicas of language models, milliseconds, as `goodput data fit-llm` fits them.\n\n[sources]\n",
        );
        for (key, citation) in &self.sources {
            let _ = writeln!(text, "{key} = {citation:?}");
        }
        for replica in &self.replicas {
            let Configuration { system, backend, model, precision, tensor, data, expert } = &replica.configuration;
            let StepCosts { fixed_ms, experts_ms, expert_share, sequence_ms, context_ms, prompt_ms, pair_ms } =
                replica.step;
            let _ = write!(
                text,
                "\n[[replica]]\nname = {:?}\nrows = {}\nkv_tokens = {}\nconfiguration = {{ system = {system:?}, \
                 backend = {backend:?}, model = {model:?}, precision = {:?}, tensor = {tensor}, data = {data}, \
                 expert = {expert} }}\nstep = {{ fixed_ms = {fixed_ms:?}, experts_ms = {experts_ms:?}, \
                 expert_share = {expert_share:?}, sequence_ms = {sequence_ms:?}, context_ms = {context_ms:?}, \
                 prompt_ms = {prompt_ms:?}, pair_ms = {pair_ms:?} }}\n",
                replica.name,
                replica.rows,
                replica.kv_tokens,
                precision.name(),
            );
        }
        text
    }
}

/// Reads the costs of a step from a file with a key for each.
///
/// # Errors
/// Where the file cannot be read, or is no TOML of that shape.
pub fn read_costs(path: &Path) -> Result<StepCosts, DataError> {
    let text = fs::read_to_string(path).map_err(DataError::read(path))?;
    toml::from_str(&text).map_err(|error| catalog::fault(path, &text, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::model::serving::llm::BatchTime;

    #[test]
    fn shipped_replicas_have_steps_and_names_of_their_own() {
        let catalog = ReplicaCatalog::shipped();
        for replica in &catalog.replicas {
            assert!(BatchTime::new(&replica.step, 8192).is_ok(), "{}", replica.name);
            assert_eq!(replica.name, replica.configuration.to_string());
            assert_eq!(catalog.replica(&replica.name), Some(replica));
        }
        assert_eq!(&toml::from_str::<ReplicaCatalog>(&catalog.to_toml()).unwrap(), catalog);
    }
}
