//! Import of a file of one job a row, some rows at a time: memory does not grow with the file.
//!
//! The file is read twice. The first pass makes the report that stands in the table's metadata, and the second one
//! writes the table. Names must be unique. Where each name comes after the one before it (by length, then by letters,
//! as numbers count up), all of them are. Otherwise further passes look for names of equal hash, in parts of the hashes
//! that fit in memory, and only those names are kept and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use goodput_env::time::SimTime;

use super::{ImportReport, ReadRow, Row, RowFormat, TraceSource};
use crate::catalog::Catalog;
use crate::error::{DataError, RowProblem};
use crate::jobs::{JobRow, hash};
use crate::scaling::ScalingAssumption;
use crate::store::jobs::RareColumns;
use crate::store::{DataProvenance, ROW_GROUP, TableWriter, jobs, provenance};

/// Hashes of names that are held at once.
const HASHES: u64 = 1 << 24;

/// Imports the rows of a file into a Parquet file; `each` is shown every job that is written.
///
/// # Errors
/// Where a file cannot be read or written, the header lacks a column, or there is no row.
pub(crate) fn import_rows(
    source: &TraceSource<'_>,
    rows: &RowFormat,
    scaling: Option<&ScalingAssumption>,
    out: &Path,
    mut each: impl FnMut(&JobRow),
) -> Result<ImportReport, DataError> {
    let (path, catalog) = (source.path(), Catalog::shipped());
    let trace = Trace { source, rows };
    let none = BTreeSet::new();
    let (mut rare, mut last, mut ascending) = (RareColumns::default(), String::new(), true);
    let mut pass = trace.kept(&none, |job| {
        rare.see(&job);
        ascending &= (last.len(), last.as_str()) < (job.job_id.len(), job.job_id.as_str());
        last = job.job_id;
        Ok(())
    })?;
    if pass.report.kept + pass.report.refused.count == 0 {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    let repeated = if ascending { none } else { trace.repeated(pass.report.kept.div_ceil(HASHES))? };
    if !repeated.is_empty() {
        pass = trace.kept(&repeated, |_| Ok(()))?;
    }
    let Pass { report, earliest } = pass;
    let digest = provenance::sha256_of(source.text()?).map_err(DataError::read(path))?;
    let format = rows.format;
    let provenance = DataProvenance::imported(path, digest, format.name(), format.licence(), &report);
    let provenance = match scaling {
        Some(scaling) => provenance.assuming(scaling.describe(catalog)),
        None => provenance,
    };
    let assume = |job: &mut JobRow| scaling.is_some_and(|scaling| scaling.assume(job, catalog));
    let table = |jobs: &[JobRow]| jobs::table_with(jobs, rare);
    whole(out, |out| {
        let mut writer = TableWriter::create(out, &provenance.on(table(&[])))?;
        let mut group = Vec::with_capacity(ROW_GROUP);
        trace.kept(&repeated, |mut job| {
            rows.clock.count(&mut job, earliest);
            assume(&mut job);
            each(&job);
            group.push(job);
            if group.len() == ROW_GROUP {
                writer.write(&table(&group))?;
                group.clear();
            }
            Ok(())
        })?;
        writer.write(&table(&group))?;
        writer.finish()
    })?;
    Ok(report)
}

/// Writes a file that has its name only once it is whole, so that it may replace the file that is read. What is not a
/// file, such as `/dev/stdout`, is written as it is.
fn whole(out: &Path, write: impl FnOnce(&Path) -> Result<(), DataError>) -> Result<(), DataError> {
    if out.exists() && !out.is_file() {
        return write(out);
    }
    let part = out.with_added_extension("part");
    let written = write(&part).and_then(|()| fs::rename(&part, out).map_err(DataError::write(out)));
    written.inspect_err(|_| {
        // The error that is reported is the first one.
        let _ = fs::remove_file(&part);
    })
}

/// A trace and its format.
#[derive(Clone, Copy)]
struct Trace<'a> {
    source: &'a TraceSource<'a>,
    rows: &'a RowFormat,
}

/// Findings of one pass over a trace.
struct Pass {
    report: ImportReport,
    /// First submission of a job that is kept, on the clock of the trace.
    earliest: SimTime,
}

impl Trace<'_> {
    /// One pass over the trace: `each` gets the jobs that are kept. A name with one of the `repeated` hashes is kept
    /// once.
    fn kept(
        &self,
        repeated: &BTreeSet<u64>,
        mut each: impl FnMut(JobRow) -> Result<(), DataError>,
    ) -> Result<Pass, DataError> {
        let (mut report, mut names) = (ImportReport::default(), BTreeMap::<String, u64>::new());
        let mut earliest = SimTime::NEVER;
        let mut unique = |row: ReadRow| -> Row {
            let job = &row.job;
            if repeated.is_empty() || !repeated.contains(&hash(&job.job_id)) {
                return Ok(row);
            }
            if let Some(&first) = names.get(&job.job_id) {
                return Err((job.line, RowProblem::Duplicate { name: job.job_id.clone(), first }));
            }
            names.insert(job.job_id.clone(), job.line);
            Ok(row)
        };
        self.rows.each(self.source, &mut |row| {
            let Some(job) = report.take(row.and_then(&mut unique)) else { return Ok(()) };
            report.kept += 1;
            earliest = earliest.min(job.submit);
            each(job)
        })?;
        Ok(Pass { report, earliest })
    }

    /// Hashes of more than one name, found in `parts` passes.
    fn repeated(&self, parts: u64) -> Result<BTreeSet<u64>, DataError> {
        let (none, mut repeated) = (BTreeSet::new(), BTreeSet::new());
        for part in 0..parts {
            let mut hashes = Vec::new();
            self.kept(&none, |job| {
                let hash = hash(&job.job_id);
                hashes.extend((hash % parts == part).then_some(hash));
                Ok(())
            })?;
            hashes.sort_unstable();
            repeated.extend(hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        }
        Ok(repeated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_repeated_names_are_found_in_any_number_of_passes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.csv");
        let row = |row: u32| format!("job-{},0,1,1\n", row % 97);
        let text: String = (0..100).map(row).collect();
        fs::write(&path, format!("job_id,submit_secs,duration_secs,gpus\n{text}")).unwrap();
        let rows = RowFormat::of(b"job_id,submit_secs,duration_secs,gpus").unwrap();
        let source = Trace { source: &TraceSource::File(&path), rows: &rows };
        let expected: BTreeSet<u64> = ["job-0", "job-1", "job-2"].map(hash).into();
        for parts in [1, 2, 7] {
            assert_eq!(source.repeated(parts).unwrap(), expected);
        }
    }
}
