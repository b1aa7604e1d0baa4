//! Workloads of the Sia artifact (SOSP'23): those of Pollux's (see [`super::pollux`]) with an
//! optional column `category`.
//!
//! - `adaptive`, also where the column is absent: size and batch size are the scheduler's.
//! - `scale-gpus`: the batch size is the job's, and it uses any number of accelerators up to those
//!   it asks for.
//! - `rigid`: both are the job's.
//!
//! A job with a batch size of its own trains a variant of its application with that total fixed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use goodput_env::application::Application;
use goodput_env::job::{Work, Workload};

use super::pollux;
use crate::catalog::Catalog;
use crate::csv_rows::{CsvRows, header_has};
use crate::error::{DataError, RowProblem};
use crate::jobs::{JobRow, into_workload};

/// Columns of a workload, the optional one last.
pub const COLUMNS: &[&str] = &["name", "time", "application", "num_replicas", "batch_size", "category"];

const CATEGORY: &[&str] = &["name", "category"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Category {
    Adaptive,
    ScaleGpus,
    Rigid,
}

/// Reads a workload over the applications of `catalog`. Strict: a row that cannot be used is an
/// error.
///
/// # Errors
/// Where the file cannot be read, a column is missing, or at the first bad row.
pub fn read(path: &Path, catalog: &Catalog) -> Result<Workload, DataError> {
    let text = fs::read(path).map_err(DataError::read(path))?;
    parse(path, &text, catalog)
}

/// As [`read`] from the bytes of a file; `path` is for messages.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &[u8], catalog: &Catalog) -> Result<Workload, DataError> {
    let at = |(line, problem)| DataError::Row { path: path.to_owned(), line, problem };
    let imported = pollux::parse(path, text)?;
    if let Some(first) = imported.report.refused.examples.into_iter().min_by_key(|(line, _)| *line) {
        return Err(at(first));
    }
    let categories = categories(path, text)?;
    let category = |name: &str| categories.get(name).copied().unwrap_or(Category::Adaptive);
    let sized = |row: JobRow| match category(&row.job_id) {
        Category::Adaptive => row,
        Category::ScaleGpus => JobRow { gpu_min: Some(1), gpu_max: Some(row.gpus), ..row },
        Category::Rigid => JobRow { gpu_min: Some(row.gpus), gpu_max: Some(row.gpus), ..row },
    };
    let rows = imported.jobs.into_iter().map(sized).collect();
    let (mut workload, _) = into_workload(rows, catalog).map_err(at)?;
    fix_batches(&mut workload, |name| category(name) != Category::Adaptive);
    Ok(workload)
}

fn categories(path: &Path, text: &[u8]) -> Result<BTreeMap<String, Category>, DataError> {
    let mut categories = BTreeMap::new();
    if !header_has(text, &["category"]) {
        return Ok(categories);
    }
    let at = |(line, problem)| DataError::Row { path: path.to_owned(), line, problem };
    let mut rows = CsvRows::new(path, text, CATEGORY)?;
    while let Some(row) = rows.next(CATEGORY) {
        let row = row.map_err(at)?;
        let read = || -> Result<(String, Category), RowProblem> {
            let category = match row.text(1)? {
                "adaptive" => Category::Adaptive,
                "scale-gpus" => Category::ScaleGpus,
                "rigid" => Category::Rigid,
                _ => return Err(row.problem(1, "adaptive, scale-gpus or rigid")),
            };
            Ok((row.text(0)?.to_owned(), category))
        };
        let (name, category) = read().map_err(|problem| at((row.line, problem)))?;
        categories.insert(name, category);
    }
    Ok(categories)
}

/// Gives jobs that keep their batch size a variant of their application in which it is fixed, one
/// for each size.
fn fix_batches(workload: &mut Workload, keeps: impl Fn(&str) -> bool) {
    let mut variants: BTreeMap<(u16, u32), u16> = BTreeMap::new();
    let applications = &mut workload.applications;
    for job in workload.jobs.iter_mut().filter(|job| keeps(&job.request.name)) {
        let (Work::Application { index, .. }, Some(batch)) = (job.work, job.request.batch_size) else { continue };
        let index = *variants.entry((index, batch)).or_insert_with(|| {
            let application: &Application = &applications[usize::from(index)];
            let variant = Application { fixed_batch: Some(batch), ..application.clone() };
            applications.push(Arc::new(variant));
            (applications.len() - 1) as u16
        });
        job.work = Work::application(index);
    }
}
