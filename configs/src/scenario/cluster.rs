//! Machines of a run: `[[cluster.groups]]`.

use goodput_env::cluster::{Cluster, Pool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;

/// The machines: `[[cluster.groups]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    /// Groups of equal nodes.
    pub groups: Vec<NodeGroup>,
}

/// Group of equal nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// Type of accelerator: a name under which the catalog has speeds, or `gpu` for the catalog's
    /// first.
    #[serde(default = "any_accelerator")]
    pub accelerator: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Accelerators per node.
    pub gpus_per_node: u32,
    /// Pool of the nodes; absent: shared by training and services.
    #[serde(default, skip_serializing_if = "is_shared")]
    pub pool: Pool,
}

fn is_shared(pool: &Pool) -> bool {
    *pool == Pool::Shared
}

fn any_accelerator() -> String {
    "gpu".into()
}

impl ClusterConfig {
    /// Builds the cluster.
    ///
    /// # Errors
    /// [`SetupError::Value`] for empty groups.
    pub fn build(&self) -> Result<Cluster, SetupError> {
        let value = |key, value: String, expected: &str| SetupError::Value { key, value, expected: expected.into() };
        if self.groups.is_empty() {
            return Err(value("cluster.groups", "empty".into(), "at least one group of nodes"));
        }
        let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
        for group in &self.groups {
            if group.nodes == 0 || group.nodes > 1_000_000 {
                return Err(value("cluster.groups.nodes", group.nodes.to_string(), "1 to 1000000"));
            }
            if group.gpus_per_node == 0 || group.gpus_per_node > 1024 {
                return Err(value("cluster.groups.gpus_per_node", group.gpus_per_node.to_string(), "1 to 1024"));
            }
            cluster.add_to(group.pool, &group.accelerator, group.nodes, group.gpus_per_node);
        }
        Ok(cluster)
    }
}
