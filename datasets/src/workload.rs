//! Reader of workloads in any format.

use std::path::{Path, PathBuf};

use goodput_env::job::Workload;

use crate::catalog::Catalog;
use crate::csv_rows::{excerpt, first_line};
use crate::error::{DataError, RowProblem};
use crate::import::column_map::ColumnMap;
use crate::import::{self, ImportReport, Imported, RowFormat, TraceSource};
use crate::jobs::{JobRow, into_workload};
use crate::requests;
use crate::scaling::ScalingAssumption;
use crate::store::{self, DataProvenance, Table};

/// A workload ready to simulate.
#[derive(Clone, Debug)]
pub struct LoadedWorkload {
    /// Jobs in order of submission over the catalog's applications.
    pub workload: Workload,
    /// Names of tenants, indexed by the jobs' `tenant`.
    pub tenants: Vec<String>,
}

/// Reads the jobs of a canonical Parquet file or of a published trace, recognised by content, also where gzip or xz has
/// compressed it; refused rows are in the report.
///
/// # Errors
/// Where the file cannot be read, is of no known format, lacks a column or has no rows.
pub fn read_jobs(path: &Path) -> Result<Imported, DataError> {
    read_source(&TraceSource::at(path)?)
}

fn read_source(source: &TraceSource<'_>) -> Result<Imported, DataError> {
    let head = source.head()?;
    match RowFormat::of(&head) {
        Some(rows) => rows.read(source),
        None if import::deepboot::recognises(&head) => import::deepboot::parse(source.path(), &source.plain()?),
        None => Err(unknown(source.path(), &head)),
    }
}

fn unknown(path: &Path, head: &[u8]) -> DataError {
    let path = path.to_owned();
    match first_line(head) {
        [] => DataError::Empty { path },
        line if import::gavel::recognises(line) => DataError::Incomplete {
            path,
            what: "a trace of Gavel counts its jobs in steps, and their speed stands in another file".to_owned(),
            remedy: "give the file of speeds, such as simulation_throughputs.json, by --throughputs",
        },
        line => DataError::Format { path, found: excerpt(line) },
    }
}

/// As [`read_jobs`] from the bytes of a file; `path` is for messages.
///
/// # Example
/// ```
/// use std::path::{Path, PathBuf};
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
    read_source(&TraceSource::Bytes(path, bytes.into()))
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
    let (table, imported) = imported_table(&TraceSource::at(path)?)?;
    Ok((table, imported.report))
}

/// Settings of an import beside the file.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Columns of a csv file by name of the column of the job table, in place of a format that is recognised.
    pub map: Option<ColumnMap>,
    /// Speeds of a trace of Gavel.
    pub throughputs: Option<PathBuf>,
    /// Behaviour that jobs of applications beyond the shipped catalog are assumed to have.
    pub scaling: Option<ScalingAssumption>,
}

/// As [`import_table`], into a Parquet file; `each` is shown every job that is written. A file of one job a row is read
/// and written some rows at a time, so its size is not bound by memory.
///
/// # Errors
/// As [`read_jobs`], and where `out` cannot be written.
pub fn import_file(path: &Path, out: &Path, each: impl FnMut(&JobRow)) -> Result<ImportReport, DataError> {
    import_with(path, &ImportOptions::default(), out, each)
}

/// As [`import_file`], with options.
///
/// # Errors
/// As [`import_file`].
pub fn import_with(
    path: &Path,
    options: &ImportOptions,
    out: &Path,
    mut each: impl FnMut(&JobRow),
) -> Result<ImportReport, DataError> {
    let source = TraceSource::at(path)?;
    let rows = match (&options.map, &options.throughputs) {
        (Some(map), _) => Some(RowFormat::mapped(map.clone())),
        (None, Some(throughputs)) => Some(RowFormat::of_steps(&source, throughputs)?),
        (None, None) => RowFormat::of(&source.head()?),
    };
    if let Some(rows) = rows {
        return import::import_rows(&source, &rows, options.scaling.as_ref(), out, each);
    }
    let mut imported = read_source(&source)?;
    if let Some(scaling) = &options.scaling {
        imported.jobs.iter_mut().for_each(|job| _ = scaling.assume(job, Catalog::shipped()));
    }
    let (mut table, imported) = table_of(&source, imported)?;
    if let Some(scaling) = &options.scaling {
        let provenance = DataProvenance::of(&table).assuming(scaling.describe(Catalog::shipped()));
        table = provenance.on(table);
    }
    imported.jobs.iter().for_each(&mut each);
    table.write_parquet(out)?;
    Ok(imported.report)
}

/// The assumption that the jobs of a table in Parquet rest on; `None` where there is none, and for other files.
///
/// # Errors
/// Where the file cannot be read.
pub fn assumption_of(path: &Path) -> Result<Option<String>, DataError> {
    let source = TraceSource::at(path)?;
    if !matches!(source, TraceSource::File(_)) || !source.head()?.starts_with(b"PAR1") {
        return Ok(None);
    }
    let metadata = store::metadata_of(path)?;
    Ok(metadata.get("goodput.assumption").cloned())
}

fn imported_table(source: &TraceSource<'_>) -> Result<(Table, Imported), DataError> {
    table_of(source, read_source(source)?)
}

/// The job table of what was read from a source, with its provenance.
fn table_of(source: &TraceSource<'_>, mut imported: Imported) -> Result<(Table, Imported), DataError> {
    let path = source.path();
    let digest = store::provenance::sha256_of(source.text()?).map_err(DataError::read(path))?;
    for request in &imported.requests {
        imported.report.refuse(request.line, RowProblem::Request);
        imported.report.kept -= 1;
    }
    let format = imported.format;
    let provenance = DataProvenance::imported(path, digest, format.name(), format.licence(), &imported.report);
    Ok((provenance.on(store::jobs::table(&imported.jobs)), imported))
}
