//! Formats of one job a row.

use std::path::Path;

use bytes::Bytes;
use parquet::file::reader::ChunkReader;

use super::pieces::Pieces;
use super::{Imported, WorkloadFormat, deepboot, job_csv, openb_jobs, philly, pollux, tiresias};
use crate::csv_rows::{CsvRow, CsvRows, header_has};
use crate::error::{DataError, RowProblem};
use crate::jobs::{JobRow, Names};
use crate::store;

/// Row of a file: a job, or the line and what keeps it from being one.
pub(crate) type Row = Result<JobRow, (u64, RowProblem)>;

/// A format of which every row is a job by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowFormat {
    /// The job table.
    Parquet,
    /// A table of comma-separated values.
    Csv(CsvFormat),
}

/// A format of comma-separated values of which every row is a job by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CsvFormat {
    pub(crate) format: WorkloadFormat,
    /// Columns that are read.
    pub(crate) columns: &'static [&'static str],
    /// Number of columns that must be there; they come first.
    pub(crate) required: usize,
    /// Makes a job from the values of the columns.
    pub(crate) job: fn(&CsvRow<'_, '_>) -> Result<JobRow, RowProblem>,
}

impl RowFormat {
    /// The format of a file, by the header that begins it; `None` where it is another one.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        if text.starts_with(b"PAR1") {
            return Some(Self::Parquet);
        }
        let has = |columns: &[&str], least: usize| {
            columns.iter().filter(|column| header_has(text, &[column])).count() >= least
        };
        // Most of a format's columns make it that format, so that a missing one is named rather than the whole header.
        let csv = if has(job_csv::COLUMNS, 3) {
            Some(job_csv::rows(text))
        } else if has(pollux::COLUMNS, 3) {
            (!has(&[deepboot::OWN_COLUMN], 1)).then_some(pollux::ROWS)
        } else if has(philly::COLUMNS, 3) {
            None
        } else if has(tiresias::COLUMNS, 3) {
            Some(tiresias::ROWS)
        } else {
            has(openb_jobs::COLUMNS, 5).then_some(openb_jobs::ROWS)
        };
        csv.map(Self::Csv)
    }

    /// Format of workloads, which has the name and the licence.
    pub(crate) fn workload(self) -> WorkloadFormat {
        match self {
            Self::Parquet => WorkloadFormat::Jobs,
            Self::Csv(csv) => csv.format,
        }
    }

    /// Shows each row of a file to `each`, while some rows are in memory at a time. Names are not compared.
    pub(crate) fn each(
        self,
        path: &Path,
        source: impl ChunkReader + 'static,
        each: impl FnMut(Row) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        match self {
            Self::Parquet => store::jobs::each(path, source, each),
            Self::Csv(csv) => {
                let text = source.get_read(0).map_err(DataError::parquet(path))?;
                csv.each(path, Pieces::new(path, text), each)
            }
        }
    }

    /// Reads all rows of a file. A row that is refused, or that repeats a name, is in the report.
    pub(crate) fn read(self, path: &Path, source: impl ChunkReader + 'static) -> Result<Imported, DataError> {
        let mut imported = Imported { format: self.workload(), ..Imported::default() };
        let mut names = Names::default();
        self.each(path, source, |row| {
            let unique = |job: JobRow| match names.insert(&imported.jobs, &job) {
                Ok(()) => Ok(job),
                Err(problem) => Err((job.line, problem)),
            };
            match row.and_then(unique) {
                Ok(job) => imported.jobs.push(job),
                Err((line, problem)) => imported.report.refuse(line, problem),
            }
            Ok(())
        })?;
        imported.finish(path)
    }
}

impl CsvFormat {
    /// Reads all rows of a text, as [`RowFormat::read`] does.
    pub(crate) fn read(self, path: &Path, text: &[u8]) -> Result<Imported, DataError> {
        RowFormat::Csv(self).read(path, Bytes::copy_from_slice(text))
    }

    fn each(
        self,
        path: &Path,
        mut pieces: Pieces<'_, impl std::io::Read>,
        mut each: impl FnMut(Row) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut header = None;
        while let Some(piece) = pieces.next()? {
            let mut rows = match header {
                None => CsvRows::begin(path, piece, self.columns, self.required, b',')?,
                Some(header) => CsvRows::below(header, piece),
            };
            while let Some(row) = rows.next(self.columns) {
                each(row.and_then(|row| (self.job)(&row).map_err(|problem| (row.line, problem))))?;
            }
            header = Some(rows.into_header());
        }
        Ok(())
    }
}
