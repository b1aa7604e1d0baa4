//! Importers, one file for each public format. Each takes the bytes of a file and gives rows of the
//! job table with a report; profiles of applications become a catalog, load of services a series.

pub mod batch_schedules;
pub mod column_map;
pub mod covariates;
pub(crate) mod dates;
pub mod deepboot;
pub mod elasticflow;
mod elements;
mod formats;
pub mod gavel;
pub mod gavel_throughputs;
pub mod helios;
pub mod job_csv;
mod job_parts;
pub mod kubernetes;
pub mod kueue;
pub mod llm_requests;
pub mod load;
pub mod openb;
pub mod openb_jobs;
pub mod pai;
pub mod panel;
pub mod philly;
pub mod philly_log;
mod pieces;
pub mod pollux;
pub mod pollux_profiles;
mod recognise;
mod requeues;
mod rows;
pub mod sacct;
pub mod series;
pub mod shockwave;
pub mod sia_profiles;
pub mod sia_workloads;
pub mod silicon;
mod source;
pub mod staged_jobs;
mod step_rows;
pub mod step_times;
mod stream;
pub mod supercloud;
pub mod swf;
pub mod tiresias;
pub mod tiresias_cluster;
pub mod tiresias_samples;

pub use formats::{FORMATS, FileFormat};
pub(crate) use rows::{Body, Clock, Csv, ReadRow, Repair, Row, RowFormat};
pub(crate) use source::TraceSource;
pub(crate) use stream::import_rows;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;
use crate::requests::RequestRow;

/// Examples kept for each kind of problem; counts are exact.
const MOST_EXAMPLES: usize = 5;

/// A format of workloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkloadFormat {
    /// Our own job table as Parquet.
    #[default]
    Jobs,
    /// Job table as csv, a trace of one's own.
    JobCsv,
    /// A workload of the Pollux artifact.
    Pollux,
    /// A workload of DeepBoot: Pollux's jobs and inference requests.
    DeepBoot,
    /// The Philly trace as the Pollux artifact extracted it.
    Philly,
    /// A trace of the Tiresias simulator.
    Tiresias,
    /// A full list of pods of Alibaba's GPU-sharing cluster.
    Openb,
    /// A trace of the Parallel Workloads Archive.
    Swf,
    /// Accounting of Slurm.
    Sacct,
    /// A log of the Helios or Acme clusters.
    Helios,
    /// A trace of ElasticFlow.
    ElasticFlow,
    /// The published job log of Philly.
    PhillyLog,
    /// Tables of Alibaba's PAI.
    Pai,
    /// The scheduler log of the MIT Supercloud.
    Supercloud,
    /// A trace of Shockwave.
    Shockwave,
    /// A trace of Gavel.
    Gavel,
    /// Jobs and pods of Kubernetes.
    Kubernetes,
    /// Workloads of Kueue.
    Kueue,
}

impl WorkloadFormat {
    /// Name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::JobCsv => "job-csv",
            Self::Pollux => "pollux",
            Self::DeepBoot => "deepboot",
            Self::Philly => "philly",
            Self::Tiresias => "tiresias",
            Self::Openb => "openb-jobs",
            Self::Swf => "swf",
            Self::Sacct => "sacct",
            Self::Helios => "helios",
            Self::ElasticFlow => "elasticflow",
            Self::PhillyLog => "philly-log",
            Self::Pai => "pai",
            Self::Supercloud => "supercloud",
            Self::Shockwave => "shockwave",
            Self::Gavel => "gavel",
            Self::Kubernetes => "kubernetes",
            Self::Kueue => "kueue",
        }
    }

    /// Licence of the published files in it; empty where that is up to the file.
    pub fn licence(self) -> &'static str {
        match self {
            Self::Pollux => "Apache-2.0",
            Self::Philly | Self::PhillyLog => "CC-BY-4.0",
            Self::ElasticFlow | Self::Shockwave | Self::Gavel => "MIT",
            Self::Jobs
            | Self::JobCsv
            | Self::DeepBoot
            | Self::Tiresias
            | Self::Openb
            | Self::Swf
            | Self::Sacct
            | Self::Helios
            | Self::Pai
            | Self::Supercloud
            | Self::Kubernetes
            | Self::Kueue => "",
        }
    }
}

/// Result of an importer: jobs, requests and a report.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The jobs, in the order of the file.
    pub jobs: Vec<JobRow>,
    /// Inference requests, in the order of the file.
    pub requests: Vec<RequestRow>,
    /// Report of the rows.
    pub report: ImportReport,
    /// Format of the file.
    pub format: WorkloadFormat,
    /// Seconds since 1970, on the trace's own clock, of submission time 0; where the trace has
    /// dates.
    pub origin_unix_secs: Option<i64>,
}

impl Imported {
    /// Counts what was kept; a file without a single row is an error, one with only refused rows is
    /// a report.
    pub(crate) fn finish(mut self, path: &Path) -> Result<Self, DataError> {
        if self.jobs.is_empty() && self.requests.is_empty() && self.report.refused.count == 0 {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        self.report.kept = (self.jobs.len() + self.requests.len()) as u64;
        Ok(self)
    }
}

/// Report of an import: `kept + refused.count` is the number of all rows, where a job is a row; rows that are joined to
/// one job count once. Repaired rows are among the kept ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Rows kept, the repaired ones included.
    pub kept: u64,
    /// Rows kept with a change.
    pub repaired: Notes<String>,
    /// Rows left out.
    pub refused: Notes<RowProblem>,
}

/// Notes about rows: exact counts by kind and the first lines of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notes<T> {
    /// Number of rows.
    pub count: u64,
    /// Number of rows by kind.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// Line and what was found or done, the first of each kind in the order of the file.
    pub examples: Vec<(u64, T)>,
}

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Self { count: 0, by_kind: BTreeMap::new(), examples: Vec::new() }
    }
}

impl<T> Notes<T> {
    /// Adds a note about `line`.
    pub(crate) fn add(&mut self, kind: &'static str, line: u64, what: T) {
        self.count += 1;
        let count = self.by_kind.entry(kind).or_default();
        *count += 1;
        if *count <= MOST_EXAMPLES as u64 {
            self.examples.push((line, what));
        }
    }

    /// Raises the count of a kind to `count`, where the examples are only the first of them.
    pub(crate) fn raise(&mut self, kind: &'static str, count: u64) {
        if count > 0 {
            let known = self.by_kind.insert(kind, count).unwrap_or(0);
            self.count += count - known.min(count);
        }
    }
}

impl ImportReport {
    /// Counts a row that is left out.
    pub(crate) fn refuse(&mut self, line: u64, problem: RowProblem) {
        self.refused.add(problem.kind(), line, problem);
    }

    /// Counts a row; gives its job where it is kept. The number of kept rows is not counted here.
    pub(crate) fn take(&mut self, row: Row) -> Option<JobRow> {
        match row {
            Ok(ReadRow { job, repairs }) => {
                for Repair { kind, what } in repairs {
                    self.repaired.add(kind, job.line, what);
                }
                Some(job)
            }
            Err((line, problem)) => {
                self.refuse(line, problem);
                None
            }
        }
    }

    /// Counts a row that is kept with a change.
    pub(crate) fn repair(&mut self, kind: &'static str, line: u64, what: String) {
        self.repaired.add(kind, line, what);
    }
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = if self.kept == 1 { "row" } else { "rows" };
        write!(f, "{} {rows} kept, {} repaired, {} refused", self.kept, self.repaired.count, self.refused.count)?;
        lines(f, "repaired", &self.repaired)?;
        lines(f, "refused", &self.refused)
    }
}

fn lines<T: fmt::Display>(f: &mut fmt::Formatter<'_>, verb: &str, notes: &Notes<T>) -> fmt::Result {
    for (kind, count) in &notes.by_kind {
        write!(f, "\n  {verb} for {kind}: {count}")?;
    }
    for (line, what) in &notes.examples {
        write!(f, "\n  line {line}: {what}")?;
    }
    Ok(())
}
