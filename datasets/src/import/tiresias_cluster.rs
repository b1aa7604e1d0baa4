//! Clusters of the public Tiresias simulator: one row
//! `num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node`.

use std::fs;
use std::path::Path;

use goodput_env::cluster::Cluster;

use crate::csv_rows::CsvRows;
use crate::error::{DataError, RowProblem};

pub(super) const COLUMNS: &[&str] =
    &["num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"];

/// Most accelerators of a described cluster; a hundred times the largest that was published.
const MOST_GPUS: u64 = 1_000_000;

/// Equal nodes below equal switches. Nodes are numbered switch by switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchedCluster {
    /// Number of switches.
    pub switches: u32,
    /// Nodes below each.
    pub nodes_per_switch: u32,
    /// Accelerators of a node.
    pub gpus_per_node: u32,
    /// Processor cores of a node.
    pub cpus_per_node: u32,
    /// Memory of a node, GB.
    pub memory_gb_per_node: u32,
}

impl SwitchedCluster {
    /// Cluster with the machines of the description.
    pub fn cluster(&self) -> Cluster {
        Cluster::homogeneous(self.switches * self.nodes_per_switch, self.gpus_per_node)
    }
}

/// Reads a description.
///
/// # Errors
/// Where the file cannot be read, a column is missing, or there is not exactly one usable row.
pub fn read(path: &Path) -> Result<SwitchedCluster, DataError> {
    parse(path, &fs::read(path).map_err(DataError::read(path))?)
}

/// As [`read`] from the bytes of a file; `path` is for messages.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &[u8]) -> Result<SwitchedCluster, DataError> {
    let at = |(line, problem)| DataError::Row { path: path.to_owned(), line, problem };
    let mut rows = CsvRows::new(path, text, COLUMNS)?;
    let row = rows.next(COLUMNS).ok_or_else(|| DataError::Empty { path: path.to_owned() })?.map_err(at)?;
    let count = |column| row.count(column).map_err(|problem| at((row.line, problem)));
    let found = SwitchedCluster {
        switches: count(0)?,
        nodes_per_switch: count(1)?,
        gpus_per_node: count(2)?,
        cpus_per_node: count(3)?,
        memory_gb_per_node: count(4)?,
    };
    let gpus = [found.switches, found.nodes_per_switch, found.gpus_per_node]
        .iter()
        .try_fold(1_u64, |product, &factor| product.checked_mul(factor.into()));
    if gpus.is_none_or(|gpus| gpus > MOST_GPUS) {
        return Err(at((row.line, row.problem(0, "at most a million accelerators in all"))));
    }
    match rows.next(COLUMNS) {
        None => Ok(found),
        Some(extra) => {
            let line = extra.map_or_else(|(line, _)| line, |row| row.line);
            Err(at((line, RowProblem::Extra { expected: "one cluster" })))
        }
    }
}
