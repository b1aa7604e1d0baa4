//! Reader of workloads in any format.

use std::fs;
use std::io::Read;
use std::path::Path;

use goodput_env::job::Workload;

use crate::catalog::Catalog;
use crate::csv_rows::{excerpt, first_line, header_has};
use crate::error::{DataError, RowProblem};
use crate::import::{self, ImportReport, Imported};
use crate::jobs::into_workload;
use crate::requests;
use crate::store::{self, DataProvenance, Table};

/// A workload ready to simulate.
#[derive(Clone, Debug)]
pub struct LoadedWorkload {
    /// Jobs in order of submission over the catalog's applications.
    pub workload: Workload,
    /// Names of tenants, indexed by the jobs' `tenant`.
    pub tenants: Vec<String>,
}

/// Reads the jobs of a canonical Parquet file or of a published trace, recognised by content;
/// refused rows are in the report.
///
/// # Errors
/// Where the file cannot be read, is of no known format, lacks a column or has no rows.
pub fn read_jobs(path: &Path) -> Result<Imported, DataError> {
    parse_jobs(path, read_plain(path)?)
}

/// Bytes of a file, which may be compressed by gzip.
fn read_plain(path: &Path) -> Result<Vec<u8>, DataError> {
    let bytes = fs::read(path).map_err(DataError::read(path))?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).map_err(DataError::read(path))?;
    Ok(plain)
}

/// As [`read_jobs`] from the bytes of a file; `path` is for messages.
///
/// # Example
/// ```
/// use std::path::Path;
///
/// use goodput_datasets::workload::parse_jobs;
///
/// let table = "job_id,submit_secs,duration_secs,gpus\ntrain,0,3600,4\neval,95,-1,1\n";
/// let imported = parse_jobs(Path::new("jobs.csv"), table.into())?;
/// assert_eq!(imported.jobs[0].job_id, "train");
/// assert_eq!(imported.jobs[0].gpus, 4);
///
/// // The row with the negative duration is left out, and the report names its line.
/// assert_eq!(imported.jobs.len(), 1);
/// assert_eq!(imported.report.refused.examples[0].0, 3);
/// # Ok::<(), goodput_datasets::DataError>(())
/// ```
///
/// # Errors
/// As [`read_jobs`].
pub fn parse_jobs(path: &Path, bytes: Vec<u8>) -> Result<Imported, DataError> {
    if bytes.starts_with(b"PAR1") {
        return store::jobs::from_bytes(path, bytes);
    }
    let has = |columns: &[&str]| columns.iter().filter(|column| header_has(&bytes, &[column])).count();
    // Most of a format's columns make it that format, so that a missing one is named rather than
    // the whole header.
    if has(import::job_csv::COLUMNS) >= 3 {
        import::job_csv::parse(path, &bytes)
    } else if has(import::pollux::COLUMNS) >= 3 && has(&[import::deepboot::OWN_COLUMN]) == 1 {
        import::deepboot::parse(path, &bytes)
    } else if has(import::pollux::COLUMNS) >= 3 {
        import::pollux::parse(path, &bytes)
    } else if has(import::philly::COLUMNS) >= 3 {
        import::philly::parse(path, &bytes)
    } else if has(import::tiresias::COLUMNS) >= 3 {
        import::tiresias::parse(path, &bytes)
    } else if has(import::openb_jobs::COLUMNS) >= 5 {
        import::openb_jobs::parse(path, &bytes)
    } else if import::swf::recognises(&bytes) {
        import::swf::parse(path, &bytes)
    } else if first_line(&bytes).is_empty() {
        Err(DataError::Empty { path: path.to_owned() })
    } else {
        Err(DataError::Format { path: path.to_owned(), found: excerpt(first_line(&bytes)) })
    }
}

/// Reads a workload over the applications of `catalog`. Strict: a refused row is an error.
///
/// # Errors
/// As [`read_jobs`], and at the first row that is refused or cannot be simulated.
pub fn read_workload(path: &Path, catalog: &Catalog) -> Result<LoadedWorkload, DataError> {
    let imported = read_jobs(path)?;
    let at = |(line, problem)| DataError::Row { path: path.to_owned(), line, problem };
    if let Some(first) = imported.report.refused.examples.into_iter().min_by_key(|(line, _)| *line) {
        return Err(at(first));
    }
    let (mut workload, tenants) = into_workload(imported.jobs, catalog).map_err(at)?;
    requests::add(&mut workload, &imported.requests);
    Ok(LoadedWorkload { workload, tenants })
}

/// Imports a file of any format into the job table with its provenance; refused rows are left out
/// and in the report, inference requests among them.
///
/// # Errors
/// As [`read_jobs`].
pub fn import_table(path: &Path) -> Result<(Table, ImportReport), DataError> {
    let bytes = read_plain(path)?;
    let mut imported = parse_jobs(path, bytes.clone())?;
    for request in &imported.requests {
        imported.report.refuse(request.line, RowProblem::Request);
        imported.report.kept -= 1;
    }
    let format = imported.format;
    let provenance = DataProvenance::imported(path, &bytes, format.name(), format.licence(), &imported.report);
    Ok((provenance.on(store::jobs::table(&imported.jobs)), imported.report))
}
