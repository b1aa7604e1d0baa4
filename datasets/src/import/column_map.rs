//! A csv with any columns, by a map from the job table to them: `gpus=n_gpu,submit=created:date,duration=run:minutes`.
//!
//! A name of the job table goes without its unit: `submit` is `submit_secs`. A column of times may have a unit behind a
//! colon: `secs` (which is meant without one), `millis`, `minutes`, `hours`, `days`, `unix` for seconds since 1970, or
//! `date` for `2026-10-01 08:30:00`, with an offset or without. `start` and `end` stand for a duration: its begin and
//! its end. Columns of the file that have names of the job table need no map. Without a `job_id`, a job is called after
//! its line. Where a submission is a date or `unix`, it counts from the earliest one.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::dates::seconds;
use super::pieces::Pieces;
use super::rows::Each;
use super::{Clock, ReadRow, job_csv};
use crate::csv_rows::{CsvRow, CsvRows, excerpt};
use crate::error::{DataError, RowProblem};

/// Names that stand for a duration.
const SPAN: [&str; 2] = ["start", "end"];

/// Columns of a file by name of the column of the job table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnMap {
    /// One for each column of [`job_csv::ALL_COLUMNS`].
    columns: Vec<Option<MappedColumn>>,
    /// Begin and end of the run time.
    span: [Option<MappedColumn>; 2],
}

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MappedColumn {
    name: String,
    unit: Unit,
}

/// Unit of a column of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// As the job table has it.
    Same,
    Millis,
    Minutes,
    Hours,
    Days,
    Unix,
    Date,
}

/// A map that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// An entry that is not `NAME=COLUMN`.
    #[error("`{0}`: expected NAME=COLUMN or NAME=COLUMN:UNIT")]
    Entry(String),
    /// A name that the job table does not have.
    #[error(
        "`{0}` is no column of the job table; `goodput data schema` lists them, and `start` and `end` give a duration"
    )]
    Name(String),
    /// A unit that is not known, or one of a column that holds no times.
    #[error("`{0}`: expected secs, millis, minutes, hours, days, unix or date, of a column of times")]
    Unit(String),
    /// One of `start` and `end` without the other.
    #[error("`start` and `end` give a duration together: one of them is missing")]
    Half,
}

impl FromStr for ColumnMap {
    type Err = MapError;

    fn from_str(text: &str) -> Result<Self, MapError> {
        let mut map = Self { columns: vec![None; job_csv::ALL_COLUMNS.len()], ..Self::default() };
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, column) = entry.split_once('=').ok_or_else(|| MapError::Entry(entry.to_owned()))?;
            let (name, column) = (name.trim(), column.trim());
            let is = |known: &&str| *known == name || known.strip_suffix("_secs") == Some(name);
            let at = job_csv::ALL_COLUMNS.iter().position(is);
            let span = SPAN.iter().position(|known| *known == name);
            let timed = span.is_some() || at.is_some_and(|at| job_csv::ALL_COLUMNS[at].ends_with("_secs"));
            let column = MappedColumn::parse(column, timed).ok_or_else(|| MapError::Unit(entry.to_owned()))?;
            match (at, span) {
                (Some(at), _) => map.columns[at] = Some(column),
                (None, Some(at)) => map.span[at] = Some(column),
                (None, None) => return Err(MapError::Name(name.to_owned())),
            }
        }
        if map.span[0].is_some() != map.span[1].is_some() {
            return Err(MapError::Half);
        }
        Ok(map)
    }
}

impl MappedColumn {
    /// The column in `NAME` or `NAME:UNIT`; `None` where the unit is none. A colon of a name that is not `timed` is its
    /// own.
    fn parse(text: &str, timed: bool) -> Option<Self> {
        let (name, unit) = match text.rsplit_once(':') {
            Some((name, unit)) if timed => (name, unit),
            _ => (text, "secs"),
        };
        let unit = match unit {
            "secs" => Unit::Same,
            "millis" => Unit::Millis,
            "minutes" => Unit::Minutes,
            "hours" => Unit::Hours,
            "days" => Unit::Days,
            "unix" => Unit::Unix,
            "date" => Unit::Date,
            _ => return None,
        };
        Some(Self { name: name.to_owned(), unit })
    }
}

impl Unit {
    /// The value in seconds; `None` where it is none.
    fn secs(self, value: &[u8]) -> Option<f64> {
        let number = || std::str::from_utf8(value).ok()?.parse::<f64>().ok().filter(|value| value.is_finite());
        Some(match self {
            Self::Same | Self::Unix => number()?,
            Self::Millis => number()? / 1000.0,
            Self::Minutes => number()? * 60.0,
            Self::Hours => number()? * 3600.0,
            Self::Days => number()? * 86_400.0,
            Self::Date => seconds(value)? as f64,
        })
    }

    const fn expected(self) -> &'static str {
        match self {
            Self::Date => "a date as 2026-10-01 08:30:00",
            _ => "a number",
        }
    }
}

impl fmt::Display for ColumnMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = job_csv::ALL_COLUMNS.iter().zip(&self.columns).chain(SPAN.iter().zip(&self.span));
        let shown = columns.filter_map(|(name, column)| Some(format!("{name}={}", column.as_ref()?.name)));
        f.write_str(&shown.collect::<Vec<_>>().join(","))
    }
}

impl ColumnMap {
    /// Clock of the submissions.
    pub(crate) fn clock(&self) -> Clock {
        let submit = self.columns.get(1).and_then(Option::as_ref).map(|column| column.unit);
        if matches!(submit, Some(Unit::Unix | Unit::Date)) { Clock::Unix } else { Clock::Start }
    }

    /// Shows each row of a table to `each`.
    pub(super) fn each(
        &self,
        path: &Path,
        mut pieces: Pieces<'_, impl std::io::Read>,
        each: Each<'_>,
    ) -> Result<(), DataError> {
        let mapped = self.columns.iter().zip(job_csv::ALL_COLUMNS);
        let own = mapped.map(|(column, own)| column.as_ref().map_or(*own, |column| column.name.as_str()));
        let span = self.span.iter().flatten().map(|column| column.name.as_str());
        let wanted: Vec<&str> = own.chain(span).collect();
        let mut header = None;
        while let Some(piece) = pieces.next()? {
            let mut rows = match header {
                None => self.begin(path, piece, &wanted)?,
                Some(header) => CsvRows::below(header, piece),
            };
            while let Some(row) = rows.next(job_csv::ALL_COLUMNS) {
                each(row.and_then(|row| self.job(&row).map_err(|problem| (row.line, problem))))?;
            }
            header = Some(rows.into_header());
        }
        Ok(())
    }

    /// Reads the header. Every column of the map must be there, and the accelerators and the submission.
    fn begin<'a>(&self, path: &Path, piece: &'a [u8], wanted: &[&str]) -> Result<CsvRows<'a>, DataError> {
        let mapped = self.columns.iter().chain(&self.span).flatten().map(|column| column.name.as_str());
        let needed: Vec<&str> = mapped.chain([wanted[1], wanted[3]]).collect();
        CsvRows::new(path, piece, &needed)?;
        CsvRows::begin(path, piece, wanted, 0, b',')
    }

    fn job(&self, row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
        let names = job_csv::ALL_COLUMNS;
        let mut fields: Vec<Cow<'_, [u8]>> = Vec::with_capacity(names.len());
        for (at, column) in self.columns.iter().enumerate() {
            let value = row.bytes(at);
            fields.push(match column {
                Some(MappedColumn { unit, .. }) if *unit != Unit::Same && !value.is_empty() => {
                    let secs = unit.secs(value).ok_or_else(|| problem(names[at], value, *unit))?;
                    Cow::Owned(secs.to_string().into_bytes())
                }
                _ => Cow::Borrowed(value),
            });
        }
        if let [Some(start), Some(end)] = &self.span {
            let secs = |at: usize, column: &MappedColumn| {
                let value = row.bytes(names.len() + at);
                column.unit.secs(value).ok_or_else(|| problem(SPAN[at], value, column.unit))
            };
            fields[2] = Cow::Owned((secs(1, end)? - secs(0, start)?).to_string().into_bytes());
        }
        if fields[0].is_empty() {
            fields[0] = Cow::Owned(format!("row-{}", row.line).into_bytes());
        }
        let columns: Vec<Option<usize>> = (0..names.len()).map(Some).collect();
        job_csv::job(&CsvRow::of(row.line, names, &columns, &fields))
    }
}

fn problem(column: &'static str, value: &[u8], unit: Unit) -> RowProblem {
    RowProblem::Value { column, value: excerpt(value), expected: unit.expected() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_map_names_columns_of_the_job_table_and_units_of_times() {
        let map: ColumnMap = "gpus=n_gpu, submit=created at:date,duration_secs=run:minutes".parse().unwrap();
        assert_eq!(map.to_string(), "submit_secs=created at,duration_secs=run,gpus=n_gpu");
        assert_eq!(map.clock(), Clock::Unix);
        let wrong = |text: &str| text.parse::<ColumnMap>().unwrap_err();
        assert_eq!(wrong("gpus"), MapError::Entry("gpus".to_owned()));
        assert_eq!(wrong("cards=n"), MapError::Name("cards".to_owned()));
        assert_eq!(wrong("submit=t:weeks"), MapError::Unit("submit=t:weeks".to_owned()));
        assert_eq!(wrong("start=t"), MapError::Half);
    }
}
