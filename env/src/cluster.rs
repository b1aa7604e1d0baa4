//! The machines: nodes of accelerators. Types are data from a configuration file; nothing in code
//! knows "v100".

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Index of a node in [`Cluster::nodes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Node at position `index`.
    #[inline]
    pub const fn at(index: usize) -> Self {
        Self(index as u32)
    }

    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The first `count` nodes, in order.
    #[inline]
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
        (0..count as u32).map(Self)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Index of an accelerator type in [`Cluster::types`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TypeId(pub u16);

impl TypeId {
    /// Type at position `index`.
    #[inline]
    pub const fn at(index: usize) -> Self {
        Self(index as u16)
    }

    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The first `count` types, in order.
    #[inline]
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
        (0..count as u16).map(Self)
    }
}

impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Kind of an accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Graphics processing unit.
    #[default]
    Gpu,
    /// Tensor processing unit.
    Tpu,
    /// Field-programmable gate array.
    Fpga,
}

/// A type of accelerator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorType {
    /// Free name, for example `t4`.
    pub name: String,
    /// Kind of device.
    #[serde(default)]
    pub kind: Kind,
    /// Device memory, MiB.
    #[serde(default)]
    pub memory_mib: Option<u32>,
    /// Greatest power of one accelerator, watts; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
    /// Price of one accelerator for an hour, dollars; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars_per_hour: Option<f64>,
}

impl AcceleratorType {
    /// GPU of this name, of which nothing else is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Gpu, memory_mib: None, watts: None, dollars_per_hour: None }
    }
}

/// Pool of a node: the work that the node is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pool {
    /// Training jobs and replicas of services side by side.
    #[default]
    Shared,
    /// Training jobs only.
    Training,
    /// Replicas of services; training jobs while the machine is lent.
    Inference,
}

/// One machine: accelerators of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Index into [`Cluster::types`].
    pub accelerator: TypeId,
    /// Number of accelerators.
    pub gpus: u32,
    /// Pool that the node belongs to.
    #[serde(default)]
    pub pool: Pool,
}

impl Node {
    /// Node for training and services alike.
    pub const fn new(accelerator: TypeId, gpus: u32) -> Self {
        Self { accelerator, gpus, pool: Pool::Shared }
    }

    /// This node, moved to `pool`.
    pub const fn of(self, pool: Pool) -> Self {
        Self { pool, ..self }
    }
}

/// Nodes of a cluster and their accelerator types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// Accelerator types in use.
    pub types: Vec<AcceleratorType>,
    /// Nodes; a [`NodeId`] indexes this.
    pub nodes: Vec<Node>,
}

/// Errors in the description of a cluster.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ClusterError {
    /// The text is no list of groups of nodes.
    #[error(
        "cluster {text:?} is not NODESxGPUS with both at least 1, for example 16x4, nor TYPE:NODESxGPUS,... as in t4:6x4,a100:2x8"
    )]
    Shape {
        /// Text of the description.
        text: String,
    },
}

impl Cluster {
    /// `nodes` equal machines with `gpus` accelerators each.
    pub fn homogeneous(nodes: u32, gpus: u32) -> Self {
        let gpu = AcceleratorType::named("gpu");
        Self { types: vec![gpu], nodes: vec![Node::new(TypeId(0), gpus); nodes as usize] }
    }

    /// Parses `16x4`: 16 nodes with 4 accelerators each, of a type called `gpu`; or groups of nodes
    /// with their types: `t4:6x4,a100:2x8`.
    ///
    /// # Errors
    /// [`ClusterError::Shape`] where the text is anything else.
    pub fn parse(text: &str) -> Result<Self, ClusterError> {
        let shape = || ClusterError::Shape { text: text.into() };
        let mut cluster = Self { types: Vec::new(), nodes: Vec::new() };
        for group in text.split(',') {
            let (name, size) = group.split_once(':').unwrap_or(("gpu", group));
            let (nodes, gpus) = size.split_once('x').ok_or_else(shape)?;
            let nodes: u32 = nodes.parse().map_err(|_| shape())?;
            let gpus: u32 = gpus.parse().map_err(|_| shape())?;
            if name.is_empty() || !(1..=1_000_000).contains(&nodes) || !(1..=1024).contains(&gpus) {
                return Err(shape());
            }
            cluster.add(name, nodes, gpus);
        }
        Ok(cluster)
    }

    /// Adds `nodes` machines for everything with `gpus` accelerators of the type called `name` each.
    pub fn add(&mut self, name: &str, nodes: u32, gpus: u32) {
        self.add_to(Pool::Shared, name, nodes, gpus);
    }

    /// Adds `nodes` machines to `pool`.
    pub fn add_to(&mut self, pool: Pool, name: &str, nodes: u32, gpus: u32) {
        let known = self.types.iter().position(|kind| kind.name == name);
        let index = known.unwrap_or_else(|| {
            self.types.push(AcceleratorType::named(name));
            self.types.len() - 1
        });
        self.nodes.extend(std::iter::repeat_n(Node::new(TypeId::at(index), gpus).of(pool), nodes as usize));
    }

    /// Indices of the nodes, ascending.
    pub fn node_ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + Clone + use<> {
        NodeId::first(self.nodes.len())
    }

    /// Accelerator type of a node.
    #[inline]
    pub fn type_of(&self, node: NodeId) -> TypeId {
        self.nodes[node.index()].accelerator
    }

    /// Indices of the accelerator types, ascending.
    pub fn type_ids(&self) -> impl DoubleEndedIterator<Item = TypeId> + ExactSizeIterator + Clone + use<> {
        TypeId::first(self.types.len())
    }

    /// Accelerators in all nodes.
    pub fn total_gpus(&self) -> u32 {
        self.nodes.iter().map(|node| node.gpus).sum()
    }

    /// Whether any machine is set aside, for training or for inference.
    pub fn has_pools(&self) -> bool {
        self.nodes.iter().any(|node| node.pool != Pool::Shared)
    }

    /// Accelerators of the largest node of type `kind`; 1 where there is none.
    pub fn gpus_per_node_of(&self, kind: TypeId) -> u32 {
        let of_kind = self.nodes.iter().filter(|node| node.accelerator == kind);
        of_kind.map(|node| node.gpus).max().unwrap_or(1).max(1)
    }

    /// Accelerators of the largest node; 1 for a cluster without any.
    pub fn gpus_per_node(&self) -> u32 {
        self.nodes.iter().map(|node| node.gpus).max().unwrap_or(1).max(1)
    }
}
