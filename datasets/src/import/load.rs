//! Load series: any table with a column of times and one of values.
//!
//! Times are seconds (`t_s`), or dates as `2014-07-01 00:30:00`; rows must be in order and a step apart, the step being that of the first two rows.
//! Rows that are missing are filled with the last value and reported; so are gaps within a series. A row that is out of order or no number is refused.

use std::path::Path;

use goodput_env::service::RateSeries;
use goodput_env::time::SimTime;

use super::ImportReport;
use super::philly::seconds;
use crate::csv_rows::{CsvRows, Row};
use crate::error::{DataError, RowProblem};

/// Columns of times, in order of preference.
const TIMES: [&str; 4] = ["t_s", "timestamp", "t", "date"];

/// Names of the columns in messages.
const NAMES: &[&str] = &["time", "value"];

/// Longest gap that is filled, steps: a week of 10 minutes.
const LONGEST_GAP: i64 = 1008;

/// A series as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Time between values.
    pub step: SimTime,
    /// Values.
    pub values: Vec<f64>,
}

impl Load {
    /// As requests per second: each value times `scale`.
    ///
    /// # Errors
    /// Where a rate is negative or too high.
    pub fn rates(&self, scale: f64) -> Result<RateSeries, goodput_env::service::ServiceError> {
        RateSeries::new(self.step, &self.values.iter().map(|value| value * scale).collect::<Vec<_>>())
    }
}

/// Reads the bytes of a table; `column` is the one of values, the first after that of times where it is `None`.
///
/// # Errors
/// Where a column is missing or fewer than two rows are usable.
pub fn parse(path: &Path, text: &[u8], column: Option<&str>) -> Result<(Load, ImportReport), DataError> {
    let header = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let header = String::from_utf8_lossy(header);
    let names: Vec<&str> = header.trim().trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
    let missing = |column: &str| DataError::MissingColumn {
        path: path.to_owned(),
        column: column.to_owned(),
        found: names.join(", "),
    };
    let time = TIMES.into_iter().find(|name| names.contains(name)).ok_or_else(|| missing("t_s"))?;
    let value = match column {
        Some(column) => column,
        None => names.iter().copied().find(|name| !TIMES.contains(name)).ok_or_else(|| missing("value"))?,
    };
    let mut rows = CsvRows::new(path, text, &[time, value])?;
    let mut report = ImportReport::default();
    let (mut first, mut step, mut values) = (0.0, 0.0, Vec::new());
    while let Some(row) = rows.next(NAMES) {
        let entry = row.and_then(|row| {
            let entry = entry(&row).and_then(|(at, value)| {
                let place = place(at, first, step, &values, &row)?;
                Ok((at, value, place))
            });
            entry.map(|entry| (row.line, entry)).map_err(|problem| (row.line, problem))
        });
        match entry {
            Ok((line, (at, value, place))) => {
                match values.len() {
                    0 => first = at,
                    1 => step = at - first,
                    _ => {}
                }
                let gap = place - values.len() as i64;
                if gap > 0 {
                    let last = values.last().copied().unwrap_or(value);
                    values.extend(std::iter::repeat_n(last, gap as usize));
                    report.repair(
                        "gap",
                        line,
                        format!("{gap} steps before it are missing, the last value stands for them"),
                    );
                }
                values.push(value);
                report.kept += 1;
            }
            Err((line, problem)) => report.refuse(line, problem),
        }
    }
    if values.len() < 2 {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    Ok((Load { step: SimTime::from_secs_f64(step), values }, report))
}

fn entry(row: &Row<'_, '_>) -> Result<(f64, f64), RowProblem> {
    let date = || seconds(row.bytes(0)).map(|secs| secs as f64);
    let time = row.float(0, "a time in seconds, or as 2014-07-01 00:30:00").or_else(|problem| date().ok_or(problem))?;
    Ok((time, row.at_least(1, 0.0, "a number of at least 0")?))
}

/// The position of a row in the series.
fn place(at: f64, first: f64, step: f64, values: &[f64], row: &Row<'_, '_>) -> Result<i64, RowProblem> {
    match values.len() {
        0 => Ok(0),
        1 if at > first => Ok(1),
        1 => Err(row.problem(0, "a time after the row before")),
        known => {
            let place = ((at - first) / step).round();
            // Sampling jitter of a tenth of a step is none of ours.
            let near = ((at - first) / step - place).abs() <= 0.1;
            let next = known as i64..=known as i64 + LONGEST_GAP;
            if near && next.contains(&(place as i64)) {
                Ok(place as i64)
            } else {
                Err(row.problem(0, "a whole number of steps after the row before"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_and_bad_rows_are_refused_with_their_lines() {
        let text = b"timestamp,value\n2014-07-01 00:00:00,10\n2014-07-01 00:30:00,8\n2014-07-01 02:00:00,6\nyesterday,5\n2014-07-01 02:30:00,-1\n2014-07-01 01:00:00,7\n";
        let (load, report) = parse(Path::new("x.csv"), text, None).unwrap();
        assert_eq!((load.step, load.values), (SimTime::from_secs(1800), vec![10.0, 8.0, 8.0, 8.0, 6.0]));
        assert_eq!((report.kept, report.repaired.count, report.refused.count), (3, 1, 3));
        let lines: Vec<u64> = report.refused.examples.iter().map(|(line, _)| *line).collect();
        assert_eq!((lines, report.repaired.examples[0].0), (vec![5, 6, 7], 4));
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = b"t_s,a,b\n0,1,2\n600,3,4\n";
        let values = |column| parse(Path::new("x.csv"), text, column).map(|(load, _)| load.values);
        assert_eq!(values(None).unwrap(), [1.0, 3.0]);
        assert_eq!(values(Some("b")).unwrap(), [2.0, 4.0]);
        assert!(values(Some("c")).unwrap_err().to_string().contains("column `c` is missing"));
    }
}
