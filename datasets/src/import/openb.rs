//! Nodes and pods of Alibaba's GPU-sharing cluster (`openb`, clusterdata, cluster-trace-gpu-v2023):
//! requests for parts of accelerators, and the machines.
//!
//! These are not jobs of the job table: most share an accelerator, some use none, and what matters
//! is how they fit. So the two files have row types of their own. Derived lists drop the columns
//! after `gpu_milli`; those are optional here. A pod that needs no accelerator and yet says
//! `gpu_milli` or `gpu_spec` is kept without them, and that is a repair.

use std::path::Path;

use super::ImportReport;
use crate::csv_rows::{CsvRow, CsvRows, header_has};
use crate::error::{DataError, RowProblem};

/// Columns of a list of nodes.
pub const NODE_COLUMNS: &[&str] = &["sn", "cpu_milli", "memory_mib", "gpu", "model"];

/// Columns of a list of pods.
pub const POD_COLUMNS: &[&str] = &["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"];

/// Columns of a full list of pods.
const SPEC_COLUMNS: &[&str] = &["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"];

/// Node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Line in the file, from 1.
    pub line: u64,
    /// Name of the node.
    pub name: String,
    /// Thousandths of processor cores.
    pub cpu_milli: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Number of accelerators.
    pub gpus: u32,
    /// Type of all accelerators of the node; `None` without accelerators.
    pub model: Option<String>,
}

/// Pod that asks for resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRow {
    /// Line in the file, from 1.
    pub line: u64,
    /// Name of the pod.
    pub name: String,
    /// Thousandths of processor cores.
    pub cpu_milli: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Number of accelerators.
    pub gpus: u32,
    /// Requested thousandths of each accelerator: below 1000 only for a single one; 0 without
    /// accelerators.
    pub gpu_milli: u32,
    /// Types that will do, as written (`V100M16|V100M32`); empty: any.
    pub models: Vec<String>,
}

/// The rows kept and what happened to each, or why the file is of no use.
pub type OpenbRows<T> = Result<(Vec<T>, ImportReport), DataError>;

/// Reads the bytes of a list of nodes; `path` is for messages.
///
/// # Errors
/// Where the header lacks a column, or there is no row at all.
pub fn nodes(path: &Path, text: &[u8]) -> OpenbRows<NodeRow> {
    read(path, text, NODE_COLUMNS, node)
}

/// Reads the bytes of a list of pods; `path` is for messages.
///
/// # Errors
/// Where the header lacks a column, or there is no row at all.
pub fn pods(path: &Path, text: &[u8]) -> OpenbRows<PodRow> {
    match header_has(text, SPEC_COLUMNS) {
        true => read(path, text, SPEC_COLUMNS, |row, report| pod(row, &text_of(row, 5).unwrap_or_default(), report)),
        false => read(path, text, POD_COLUMNS, |row, report| pod(row, "", report)),
    }
}

/// Rows of one file by `parse`, which reports its own repairs.
fn read<T>(
    path: &Path,
    text: &[u8],
    columns: &'static [&'static str],
    mut parse: impl FnMut(&CsvRow<'_, '_>, &mut ImportReport) -> Result<T, RowProblem>,
) -> OpenbRows<T> {
    let mut rows = CsvRows::new(path, text, columns)?;
    let (mut out, mut report) = (Vec::new(), ImportReport::default());
    while let Some(row) = rows.next(columns) {
        let parsed = row.and_then(|row| parse(&row, &mut report).map_err(|problem| (row.line, problem)));
        match parsed {
            Ok(row) => out.push(row),
            Err((line, problem)) => report.refuse(line, problem),
        }
    }
    // A file of which every row was refused is not empty, and its report says why.
    if out.is_empty() && report.refused.count == 0 {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    report.kept = out.len() as u64;
    Ok((out, report))
}

fn node(row: &CsvRow<'_, '_>, report: &mut ImportReport) -> Result<NodeRow, RowProblem> {
    let gpus = number(row, 3, 1024)?;
    let model = text_of(row, 4).filter(|model| !model.is_empty());
    if gpus > 0 && model.is_none() {
        return Err(row.problem(4, "the model of the accelerators"));
    }
    let parsed = NodeRow {
        line: row.line,
        name: row.text(0)?.to_owned(),
        cpu_milli: number(row, 1, MOST)?,
        memory_mib: number(row, 2, MOST)?,
        gpus,
        model: model.clone().filter(|_| gpus > 0),
    };
    if let Some(model) = model.filter(|_| gpus == 0) {
        report.repair("model", row.line, format!("a node without accelerators has model {model}: ignored"));
    }
    Ok(parsed)
}

/// Pod of a row. `models` are the types that will do, as written; empty: any.
fn pod(row: &CsvRow<'_, '_>, models: &str, report: &mut ImportReport) -> Result<PodRow, RowProblem> {
    let (gpus, gpu_milli) = (number(row, 3, 1024)?, number(row, 4, 1000)?);
    let pod = PodRow {
        line: row.line,
        name: row.text(0)?.to_owned(),
        cpu_milli: number(row, 1, MOST)?,
        memory_mib: number(row, 2, MOST)?,
        gpus,
        gpu_milli: if gpus == 0 { 0 } else { gpu_milli },
        models: models.split('|').filter(|name| !name.is_empty() && gpus > 0).map(str::to_owned).collect(),
    };
    match (gpus, gpu_milli) {
        (0, 1..) => {
            report.repair("gpu_milli", row.line, format!("num_gpu is 0 with gpu_milli {gpu_milli}: taken as 0"));
        }
        (0, 0) if !models.is_empty() => {
            report.repair("gpu_spec", row.line, format!("num_gpu is 0 with gpu_spec {models}: ignored"));
        }
        (1.., 0) => return Err(row.problem(4, "1 to 1000 where num_gpu is above 0")),
        (2.., 1..1000) => return Err(row.problem(4, "1000: only a single accelerator can be shared")),
        _ => {}
    }
    Ok(pod)
}

/// Bound above any machine: a million cores, or a pebibyte.
const MOST: u32 = 1_000_000_000;

fn number(row: &CsvRow<'_, '_>, column: usize, most: u32) -> Result<u32, RowProblem> {
    let value = std::str::from_utf8(row.bytes(column)).ok().and_then(|text| text.parse().ok());
    let expected = match most {
        1000 => "a whole number from 0 to 1000",
        1024 => "a whole number from 0 to 1024",
        _ => "a whole number from 0 to 1000000000",
    };
    value.filter(|&value: &u32| value <= most).ok_or_else(|| row.problem(column, expected))
}

fn text_of(row: &CsvRow<'_, '_>, column: usize) -> Option<String> {
    std::str::from_utf8(row.bytes(column)).ok().map(str::to_owned)
}
