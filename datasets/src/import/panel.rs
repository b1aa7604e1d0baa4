//! Panels: many series in one table.
//!
//! A long table has a row for each series and moment, as Nixtla's libraries have it: `unique_id`, a
//! column of times (`ds`) and a column of values (`y`). A wide table has a row for each moment and a
//! column for each series. Both may be csv or Parquet. A table of one series is a panel of one, without
//! a name.
//!
//! Whole numbers in the column of times are seconds; numbers of steps are read so too, and then a step
//! is a second long.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use goodput_forecast::Series;

use super::ImportReport;
use super::series::{self, RowTimes, SeriesOptions, Shape, TIMES, TimedValue};
use crate::csv_rows::{CsvRow, CsvRows, first_line};
use crate::error::{DataError, RowProblem};
use crate::store::Table;

/// Column that names the series of a row in a long table.
pub const UNIQUE_ID: &str = "unique_id";
/// Names of the columns in messages.
const NAMES: &[&str] = &["time", "value", "unique_id"];
const WIDE_NAMES: &[&str] = &["time", "value"];
/// Names that a message lists.
const MOST_NAMES: usize = 8;

/// Series of one file.
#[derive(Clone, Debug)]
pub struct SeriesPanel {
    /// The series, in the order in which the file has them.
    pub series: Vec<PanelSeries>,
    /// Report of the rows.
    pub report: ImportReport,
    /// Whether times are dates, not numbers.
    pub dated: bool,
}

impl SeriesPanel {
    /// The panel, where every row of it was read.
    ///
    /// # Errors
    /// The first row that was refused, with its line.
    pub fn strict(self, path: &Path) -> Result<Self, DataError> {
        match self.report.refused.examples.iter().min_by_key(|(line, _)| *line) {
            Some((line, problem)) => Err(DataError::Row { path: path.into(), line: *line, problem: problem.clone() }),
            None => Ok(self),
        }
    }

    /// The one series of the panel.
    ///
    /// # Errors
    /// A panel of several series.
    pub fn only(self, path: &Path) -> Result<Series, DataError> {
        let found = self.series.len();
        match <[PanelSeries; 1]>::try_from(self.series) {
            Ok([only]) => Ok(only.series),
            Err(_) => Err(DataError::ManySeries { path: path.into(), found }),
        }
    }
}

/// Series of a panel.
#[derive(Clone, Debug)]
pub struct PanelSeries {
    /// Name of the series; `None` in a table of one series.
    pub id: Option<String>,
    /// Values by time.
    pub series: Series,
}

/// Rows of a panel by series.
#[derive(Default)]
struct PanelRows {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
    entries: Vec<Vec<TimedValue>>,
    report: ImportReport,
}

/// Reads the bytes of a table, csv or Parquet. `ids` names the series of a panel that are kept, by
/// value of `unique_id` or by column; a name that ends in `*` is every name that begins so.
///
/// # Errors
/// Where a column or a series is missing, or times are not a series.
pub fn parse(path: &Path, bytes: &[u8], options: &SeriesOptions, ids: &[String]) -> Result<SeriesPanel, DataError> {
    let text = csv_of(path, bytes)?;
    let header = String::from_utf8_lossy(first_line(&text)).into_owned();
    let names: Vec<&str> = header.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let time = TIMES.into_iter().find(|name| names.contains(name));
    let dated = is_dated(path, &text, time);
    let rows = match time {
        Some(time) if names.contains(&UNIQUE_ID) => long(path, &text, &names, time, options, ids)?,
        Some(time) if !ids.is_empty() => wide(path, &text, &names, time, ids)?,
        _ => {
            let (series, report) = series::parse(path, &text, options)?;
            return Ok(SeriesPanel { series: vec![PanelSeries { id: None, series }], report, dated });
        }
    };
    let PanelRows { names, entries, report, .. } = rows;
    let series = names.into_iter().zip(entries).map(|(id, entries)| {
        let series = series::laid_out(path, Shape::Table, &entries, options)
            .map_err(|_| DataError::NotASeries { path: path.into(), id: id.clone() })?;
        Ok(PanelSeries { id: Some(id), series })
    });
    Ok(SeriesPanel { series: series.collect::<Result<_, DataError>>()?, report, dated })
}

/// The table as csv.
pub(super) fn csv_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, DataError> {
    if !bytes.starts_with(b"PAR1") {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut text = Vec::new();
    Table::from_parquet(path, bytes.to_vec())?.write_csv(path, &mut text)?;
    Ok(Cow::Owned(text))
}

fn is_dated(path: &Path, text: &[u8], time: Option<&str>) -> bool {
    let Some(Ok(mut rows)) = time.map(|time| CsvRows::new(path, text, &[time])) else { return false };
    matches!(rows.next(NAMES), Some(Ok(row)) if row.float(0, "").is_err())
}

fn long(
    path: &Path,
    text: &[u8],
    names: &[&str],
    time: &str,
    options: &SeriesOptions,
    ids: &[String],
) -> Result<PanelRows, DataError> {
    let other = || names.iter().copied().find(|name| !TIMES.contains(name) && *name != UNIQUE_ID);
    let value = options.column.as_deref().or(names.contains(&"y").then_some("y")).or_else(other).unwrap_or("y");
    let mut table = CsvRows::new(path, text, &[time, value, UNIQUE_ID])?;
    let (mut rows, mut others) = (PanelRows::default(), Vec::new());
    while let Some(row) = table.next(NAMES) {
        let read = row.and_then(|row| {
            let of = |row: &CsvRow<'_, '_>| -> Result<_, RowProblem> {
                Ok((row.text(2)?.to_owned(), RowTimes::Column.of(row, 0)?, series::value_at(row, 1)?))
            };
            of(&row).map_err(|problem| (row.line, problem))
        });
        match read {
            Ok((id, at, value)) if ids.is_empty() || ids.iter().any(|pattern| is_named(pattern, &id)) => {
                rows.add(&id, at, value);
                rows.report.kept += 1;
            }
            Ok((id, ..)) => {
                if others.len() < MOST_NAMES && !others.contains(&id) {
                    others.push(id);
                }
            }
            Err((line, problem)) => rows.report.refuse(line, problem),
        }
    }
    let known: Vec<&str> = rows.names.iter().chain(&others).map(String::as_str).collect();
    all_named(path, ids, &known)?;
    if rows.names.is_empty() { Err(DataError::Empty { path: path.into() }) } else { Ok(rows) }
}

fn wide(path: &Path, text: &[u8], names: &[&str], time: &str, ids: &[String]) -> Result<PanelRows, DataError> {
    let columns: Vec<&str> = names.iter().copied().filter(|name| !TIMES.contains(name)).collect();
    all_named(path, ids, &columns)?;
    let kept: Vec<&str> =
        columns.into_iter().filter(|name| ids.iter().any(|pattern| is_named(pattern, name))).collect();
    let wanted: Vec<&str> = std::iter::once(time).chain(kept.iter().copied()).collect();
    let mut table = CsvRows::new(path, text, &wanted)?;
    let mut rows = PanelRows::default();
    while let Some(row) = table.next(WIDE_NAMES) {
        let read = row.and_then(|row| {
            let of = |row: &CsvRow<'_, '_>| -> Result<_, RowProblem> {
                let values =
                    (1..wanted.len()).map(|column| series::value_at(row, column)).collect::<Result<Vec<_>, _>>();
                Ok((RowTimes::Column.of(row, 0)?, values?))
            };
            of(&row).map_err(|problem| (row.line, problem))
        });
        match read {
            Ok((at, values)) => {
                kept.iter().zip(values).for_each(|(column, value)| rows.add(column, at, value));
                rows.report.kept += 1;
            }
            Err((line, problem)) => rows.report.refuse(line, problem),
        }
    }
    Ok(rows)
}

/// Whether `name` is what `pattern` names: a name that ends in `*` is every name that begins so.
pub fn is_named(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

/// An error for the first of `ids` that names nothing.
fn all_named(path: &Path, ids: &[String], known: &[&str]) -> Result<(), DataError> {
    match ids.iter().find(|id| !known.iter().any(|name| is_named(id, name))) {
        None => Ok(()),
        Some(id) => {
            let found = known.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
            Err(DataError::NoSeries { path: path.into(), id: id.clone(), found })
        }
    }
}

impl PanelRows {
    fn add(&mut self, id: &str, at: f64, value: f64) {
        let place = match self.places.get(id) {
            Some(&place) => place,
            None => {
                self.names.push(id.to_owned());
                self.entries.push(Vec::new());
                self.places.insert(id.to_owned(), self.names.len() - 1);
                self.names.len() - 1
            }
        };
        self.entries[place].push(TimedValue { at, value, source: 0 });
    }
}
