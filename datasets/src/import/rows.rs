//! Formats of which every job is a piece of the file by itself, so that a file of any size is read in little memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use goodput_env::time::SimTime;

use super::column_map::ColumnMap;
use super::pieces::Pieces;
use super::source::TraceSource;
use super::step_rows::StepRows;
use super::{Imported, WorkloadFormat};
use crate::csv_rows::{CsvRow, CsvRows};
use crate::error::{DataError, RowProblem};
use crate::jobs::{JobRow, Names};
use crate::store;

/// Row of a file: a job, or the line and what keeps it from being one.
pub(crate) type Row = Result<ReadRow, (u64, RowProblem)>;

/// Gets the rows of a file one after the other.
pub(crate) type Each<'a> = &'a mut dyn FnMut(Row) -> Result<(), DataError>;

/// A job of a file, and what was changed to make it one.
#[derive(Clone, Debug)]
pub(crate) struct ReadRow {
    pub(crate) job: JobRow,
    pub(crate) repairs: Vec<Repair>,
}

/// A change of a row.
#[derive(Clone, Debug)]
pub(crate) struct Repair {
    /// Kind of change, for counts.
    pub(crate) kind: &'static str,
    /// Findings of an import, and what was done about them.
    pub(crate) what: String,
}

impl From<JobRow> for ReadRow {
    fn from(job: JobRow) -> Self {
        Self { job, repairs: Vec::new() }
    }
}

/// A format of which every job is a piece of the file.
#[derive(Clone, Debug)]
pub(crate) struct RowFormat {
    /// Format of workloads, which has the name and the licence.
    pub(crate) format: WorkloadFormat,
    pub(crate) clock: Clock,
    pub(crate) body: Body,
}

/// Clock of the times of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Time since the start of the trace.
    Start,
    /// Time since any moment; submission counts from the earliest job that is kept.
    Earliest,
    /// Time since 1970, on the trace's own clock; submission counts from the earliest job that is kept.
    Unix,
}

/// Function that reads a trace from its start, as often as it has to.
type ReadTrace = fn(&TraceSource<'_>, Each<'_>) -> Result<(), DataError>;

/// Gets the rows of a table one after the other: a row, or its line and what is wrong with it.
pub(crate) type See<'a> = &'a mut dyn FnMut(Result<CsvRow<'_, '_>, (u64, RowProblem)>) -> Result<(), DataError>;

/// Form of a file.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// The job table.
    Parquet,
    /// A table with a header.
    Csv(Csv),
    /// A table with a header of any columns.
    Mapped(Arc<ColumnMap>),
    /// Lines without a header. A line that is blank or a comment is no row.
    Lines(fn(u64, &[u8]) -> Option<Row>),
    /// Lines without a header of jobs that are counted in steps, over measured speeds.
    Steps(Arc<StepRows>),
    /// A table with a header, of which several rows may be one job, and the function that joins them.
    Joined(Csv, ReadTrace),
    /// Any other text, by a function that reads it.
    Text(ReadTrace),
}

/// A table with a header. A row is a job, where no other row is joined to it ([`Body::Joined`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Csv {
    /// Columns that are read.
    pub(crate) columns: &'static [&'static str],
    /// Number of columns that must be there; they come first.
    pub(crate) required: usize,
    /// Byte between two fields.
    pub(crate) delimiter: u8,
    /// Makes a job from the values of the columns in one row.
    pub(crate) job: fn(&CsvRow<'_, '_>) -> Result<ReadRow, RowProblem>,
}

impl RowFormat {
    /// A table of which a map names the columns.
    pub(crate) fn mapped(map: ColumnMap) -> Self {
        Self { format: WorkloadFormat::JobCsv, clock: map.clock(), body: Body::Mapped(Arc::new(map)) }
    }

    /// Shows each row of a file to `each`, while some rows are in memory at a time. Names are not compared, and
    /// submission is on the clock of the file.
    pub(crate) fn each(&self, source: &TraceSource<'_>, each: Each<'_>) -> Result<(), DataError> {
        let path = source.path();
        match (&self.body, source) {
            (Body::Parquet, TraceSource::File(_)) => {
                store::jobs::each(path, File::open(path).map_err(DataError::read(path))?, each)
            }
            (Body::Parquet, TraceSource::Bytes(_, bytes)) => store::jobs::each(path, bytes.clone(), each),
            (Body::Csv(csv), _) => csv.each(source, each),
            (Body::Mapped(map), _) => map.each(path, Pieces::new(path, source.text()?), each),
            (Body::Lines(row), _) => Pieces::new(path, source.text()?).lines(shown(*row, each)),
            (Body::Steps(rows), _) => {
                Pieces::new(path, source.text()?).lines(shown(|line, text| rows.row(line, text), each))
            }
            (Body::Joined(_, read) | Body::Text(read), _) => read(source, each),
        }
    }

    /// Reads all rows of a file. A row that is refused, or that repeats a name, is in the report.
    pub(crate) fn read(&self, source: &TraceSource<'_>) -> Result<Imported, DataError> {
        let mut imported = Imported { format: self.format, ..Imported::default() };
        let mut names = Names::default();
        self.each(source, &mut |row| {
            let unique = |row: ReadRow| match names.insert(&imported.jobs, &row.job) {
                Ok(()) => Ok(row),
                Err(problem) => Err((row.job.line, problem)),
            };
            if let Some(job) = imported.report.take(row.and_then(unique)) {
                imported.jobs.push(job);
            }
            Ok(())
        })?;
        let earliest = imported.jobs.iter().map(|job| job.submit).min().unwrap_or_default();
        imported.jobs.iter_mut().for_each(|job| self.clock.count(job, earliest));
        imported.origin_unix_secs =
            (self.clock == Clock::Unix && !imported.jobs.is_empty()).then_some(earliest.as_millis() / 1000);
        imported.finish(source.path())
    }

    /// As [`Self::read`], of a text in memory; `path` is for messages.
    pub(crate) fn parse(&self, path: &Path, text: &[u8]) -> Result<Imported, DataError> {
        self.read(&TraceSource::Bytes(path, text.to_vec().into()))
    }
}

impl Body {
    /// The table with a header; `None` where a file has no header.
    pub(crate) fn table(&self) -> Option<Csv> {
        match self {
            Self::Csv(csv) | Self::Joined(csv, _) => Some(*csv),
            Self::Parquet | Self::Mapped(_) | Self::Lines(_) | Self::Steps(_) | Self::Text(_) => None,
        }
    }
}

impl Clock {
    /// Counts the times of a job from the start of the trace, of which `earliest` is the first submission.
    pub(crate) fn count(self, job: &mut JobRow, earliest: SimTime) {
        if self != Self::Start {
            job.submit -= earliest;
            job.deadline = job.deadline.map(|deadline| deadline - earliest);
        }
    }
}

impl Csv {
    /// Shows each row of a file to `see`, while some rows are in memory at a time.
    pub(crate) fn see(self, source: &TraceSource<'_>, see: See<'_>) -> Result<(), DataError> {
        let path = source.path();
        let mut pieces = Pieces::new(path, source.text()?);
        let mut header = None;
        while let Some(piece) = pieces.next()? {
            let mut rows = match header {
                None => CsvRows::begin(path, piece, self.columns, self.required, self.delimiter)?,
                Some(header) => CsvRows::below(header, piece),
            };
            while let Some(row) = rows.next(self.columns) {
                see(row)?;
            }
            header = Some(rows.into_header());
        }
        Ok(())
    }

    fn each(self, source: &TraceSource<'_>, each: Each<'_>) -> Result<(), DataError> {
        self.see(source, &mut |row| each(row.and_then(|row| (self.job)(&row).map_err(|problem| (row.line, problem)))))
    }
}

/// A function of lines that shows their rows to `each`.
fn shown(row: impl Fn(u64, &[u8]) -> Option<Row>, each: Each<'_>) -> impl FnMut(u64, &[u8]) -> Result<(), DataError> {
    move |number, line| row(number, line).map_or(Ok(()), &mut *each)
}
