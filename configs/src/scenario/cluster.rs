//! Machines of a run: `[[cluster.groups]]`.

use goodput_datasets::Accelerators;
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
    /// Type of accelerator: a name under which the catalog has speeds, in upper or lower case, or `gpu` for the
    /// catalog's first.
    #[serde(default = "any_accelerator")]
    pub accelerator: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Accelerators per node.
    pub gpus_per_node: u32,
    /// Device memory of one accelerator, MiB, for jobs that ask for a part; absent: that of the type, as
    /// `goodput list accelerators` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
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
    /// Builds the cluster, with what the shipped catalog says of the power and price of its types.
    ///
    /// # Errors
    /// [`SetupError::Value`] for empty groups.
    pub fn build(&self) -> Result<Cluster, SetupError> {
        let value = |key, value: String, expected: &str| SetupError::Value { key, value, expected: expected.into() };
        if self.groups.is_empty() {
            return Err(value("cluster.groups", "empty".into(), "at least one group of nodes"));
        }
        let accelerators = Accelerators::shipped();
        let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
        for group in &self.groups {
            if group.nodes == 0 || group.nodes > 1_000_000 {
                return Err(value("cluster.groups.nodes", group.nodes.to_string(), "1 to 1000000"));
            }
            if group.gpus_per_node == 0 || group.gpus_per_node > 1024 {
                return Err(value("cluster.groups.gpus_per_node", group.gpus_per_node.to_string(), "1 to 1024"));
            }
            cluster.add_to(group.pool, accelerators.canonical(&group.accelerator), group.nodes, group.gpus_per_node);
        }
        accelerators.describe(&mut cluster);
        for group in &self.groups {
            let Some(memory) = group.memory_mib else { continue };
            let name = accelerators.canonical(&group.accelerator);
            let kind = cluster.types.iter_mut().find(|kind| kind.name == name);
            let Some(kind) = kind else { continue };
            if memory == 0 {
                return Err(value("cluster.groups.memory_mib", "0".into(), "at least 1"));
            }
            if kind.memory_mib.is_some_and(|known| known != memory) {
                let expected = "one value for all groups of an accelerator type; give the other type a name of its own";
                return Err(value("cluster.groups.memory_mib", memory.to_string(), expected));
            }
            kind.memory_mib = Some(memory);
        }
        Ok(cluster)
    }
}
