//! Load of a service: a series as [`super::series`] reads it, without gaps and in order, because
//! requests cannot be left out of a simulation.
//!
//! Rows of a table must be in order and a step apart, the step being that of the first two rows.
//! Rows that are missing are filled with the last value and reported. A row that is out of order,
//! negative or no number is refused. A log of requests becomes requests per second.

use std::path::Path;

use goodput_env::service::RateSeries;
use goodput_env::time::SimTime;

use super::ImportReport;
use super::series::{self, SeriesOptions};
use crate::csv_rows::CsvRow;
use crate::error::{DataError, RowProblem};

/// Longest gap that is filled, steps: a week of 10 minutes.
const LONGEST_GAP: i64 = 1008;

/// A series as read.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSeries {
    /// Time between values.
    pub step: SimTime,
    /// Values, one for each step.
    pub values: Vec<f64>,
}

impl LoadSeries {
    /// As requests per second: each value times `scale`.
    ///
    /// # Errors
    /// Where a rate is negative or too high.
    pub fn rates(&self, scale: f64) -> Result<RateSeries, goodput_env::service::ServiceError> {
        RateSeries::new(self.step, &self.values.iter().map(|value| value * scale).collect::<Vec<_>>())
    }
}

/// Reads the bytes of a table or a log; `column` is the one of values, the first after that of
/// times where it is `None`.
///
/// # Errors
/// Where a column is missing or fewer than two rows are usable.
pub fn parse(path: &Path, text: &[u8], column: Option<&str>) -> Result<(LoadSeries, ImportReport), DataError> {
    let options = SeriesOptions { column: column.map(str::to_owned), ..SeriesOptions::default() };
    let mut rows = InOrder::default();
    let (series, report) = series::read(path, text, &options, |row, entry| rows.check(row, entry))?;
    let mut last = 0.0;
    let filled = series.iter().map(|value| {
        last = value.unwrap_or(last);
        last
    });
    Ok((LoadSeries { values: filled.collect(), step: SimTime::from_millis(series.step_millis()) }, report))
}

/// Position in a series that is read in order.
#[derive(Debug, Default)]
struct InOrder {
    first: f64,
    step: f64,
    /// Steps so far, filled ones included.
    known: i64,
}

impl InOrder {
    fn check(&mut self, row: &CsvRow<'_, '_>, (at, value): (f64, f64)) -> Result<Option<String>, RowProblem> {
        if !(0.0..1e12).contains(&value) {
            return Err(row.problem(1, "a number of at least 0"));
        }
        let place = match self.known {
            0 => 0,
            1 if at > self.first => 1,
            1 => return Err(row.problem(0, "a time after the row before")),
            known => {
                let place = ((at - self.first) / self.step).round();
                // Sampling jitter of up to a tenth of a step is accepted.
                let near = ((at - self.first) / self.step - place).abs() <= 0.1;
                if !near || !(known..=known + LONGEST_GAP).contains(&(place as i64)) {
                    return Err(row.problem(0, "a whole number of steps after the row before"));
                }
                place as i64
            }
        };
        match self.known {
            0 => self.first = at,
            1 => self.step = at - self.first,
            _ => {}
        }
        let gap = place - self.known;
        self.known = place + 1;
        Ok((gap > 0).then(|| format!("{gap} steps before it are missing, the last value stands for them")))
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
