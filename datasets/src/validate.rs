//! Validation of a workload, for `goodput data validate`.

use std::collections::BTreeMap;
use std::fmt;

use goodput_env::time::SimTime;

use crate::catalog::Catalog;
use crate::error::RowProblem;
use crate::import::{Imported, Notes};
use crate::jobs::{self, JobRow};

/// Longest duration that is taken for real without a remark.
const YEAR: SimTime = SimTime::from_secs(365 * 86_400);

/// Verdict on a file: a file with an error does not run, a file with remarks does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadVerdict {
    /// Number of jobs looked at, refused rows not included.
    pub jobs: usize,
    /// Rows that keep the file from running.
    pub errors: Notes<RowProblem>,
    /// Rows that are probably not meant so.
    pub remarks: Notes<Remark>,
}

/// Something unusual about a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// The importer changed it.
    Repaired(String),
    /// Asks for more accelerators than the cluster has: it would wait for ever.
    TooLarge {
        /// Accelerators asked for at least.
        gpus: u32,
        /// Accelerators of the cluster.
        cluster: u32,
    },
    /// Submitted before the row above; rows are sorted when run.
    Unsorted,
    /// Lasts longer than a year.
    Long {
        /// Duration of the job.
        duration: SimTime,
    },
    /// Asks for a batch outside the limits of its application.
    Batch {
        /// Asked for, samples.
        batch_size: u32,
        /// Smallest total, samples.
        init: u32,
        /// Largest total, samples.
        max: u32,
    },
}

impl WorkloadVerdict {
    /// Whether the file runs.
    pub fn passes(&self) -> bool {
        self.errors.count == 0
    }
}

impl Remark {
    fn kind(&self) -> &'static str {
        match self {
            Self::Repaired(_) => "repaired",
            Self::TooLarge { .. } => "too large for the cluster",
            Self::Unsorted => "not in order of submission",
            Self::Long { .. } => "long",
            Self::Batch { .. } => "batch size",
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repaired(what) => f.write_str(what),
            Self::TooLarge { gpus, cluster } => write!(f, "needs {gpus} accelerators, the cluster has {cluster}"),
            Self::Unsorted => f.write_str("submitted before the row above"),
            Self::Long { duration } => write!(f, "lasts {:.0} days", duration.as_secs_f64() / 86_400.0),
            Self::Batch { batch_size, init, max } => write!(f, "batch size {batch_size} is outside {init}..={max}"),
        }
    }
}

/// Looks at every row over the applications of `catalog` and a cluster of `cluster_gpus`, where one
/// is given.
pub fn validate(imported: &Imported, catalog: &Catalog, cluster_gpus: Option<u32>) -> WorkloadVerdict {
    let mut verdict = WorkloadVerdict {
        jobs: imported.jobs.len(),
        errors: imported.report.refused.clone(),
        ..WorkloadVerdict::default()
    };
    for (line, what) in &imported.report.repaired.examples {
        verdict.remarks.add("repaired", *line, Remark::Repaired(what.clone()));
    }
    verdict.remarks.raise("repaired", imported.report.repaired.count);
    let mut before = SimTime::ZERO;
    for job in &imported.jobs {
        if let Err(problem) = jobs::check(job, catalog) {
            verdict.errors.add(problem.kind(), job.line, problem);
        }
        let remarks = [sorted(job, before), large(job, catalog, cluster_gpus), long(job), batch(job, catalog)];
        for remark in remarks.into_iter().flatten() {
            verdict.remarks.add(remark.kind(), job.line, remark);
        }
        before = job.submit;
    }
    verdict
}

/// Whether a row is a job over the applications of `catalog`.
pub fn can_run(job: &JobRow, catalog: &Catalog) -> bool {
    jobs::check(job, catalog).is_ok()
}

/// Applications that jobs name and the catalog does not have, with the number of jobs of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownApplications(BTreeMap<String, u64>);

impl UnknownApplications {
    /// Counts a job in.
    pub fn see(&mut self, job: &JobRow, catalog: &Catalog) {
        let unknown = job.application.as_deref().filter(|name| catalog.index(name).is_none());
        if let Some(name) = unknown {
            match self.0.get_mut(name) {
                Some(count) => *count += 1,
                None => _ = self.0.insert(name.to_owned(), 1),
            }
        }
    }

    /// Whether every job names an application of the catalog, or none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Shows the most frequent ones first.
impl fmt::Display for UnknownApplications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        let mut names: Vec<(&String, &u64)> = self.0.iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let shown: Vec<String> = names.iter().take(SHOWN).map(|(name, count)| format!("{name} ({count})")).collect();
        f.write_str(&shown.join(", "))?;
        match names.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

fn sorted(job: &JobRow, before: SimTime) -> Option<Remark> {
    (job.submit < before).then_some(Remark::Unsorted)
}

fn large(job: &JobRow, catalog: &Catalog, cluster_gpus: Option<u32>) -> Option<Remark> {
    let elastic = job.application.as_deref().is_some_and(|name| catalog.index(name).is_some());
    let least = job.gpu_min.unwrap_or(if elastic { 1 } else { job.gpus });
    let cluster = cluster_gpus.filter(|&cluster| least > cluster)?;
    Some(Remark::TooLarge { gpus: least, cluster })
}

fn long(job: &JobRow) -> Option<Remark> {
    let duration = job.duration.filter(|&duration| duration > YEAR)?;
    Some(Remark::Long { duration })
}

fn batch(job: &JobRow, catalog: &Catalog) -> Option<Remark> {
    let limits = catalog.get(job.application.as_deref()?)?.limits;
    let batch_size = job.batch_size.filter(|batch| !(limits.init..=limits.max).contains(batch))?;
    Some(Remark::Batch { batch_size, init: limits.init, max: limits.max })
}
