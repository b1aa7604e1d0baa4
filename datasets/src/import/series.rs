//! Load series to forecast, from tables of rates and from logs of requests.
//!
//! - A table of rates has a column of times (seconds, or dates) and columns of values: ServeGen-like rate tables, fleet and request counts by interval.
//! - A log has one row a request, and becomes requests per second: Azure's LLM inference traces (`TIMESTAMP,ContextTokens,GeneratedTokens`) and
//!   BurstGPT (`Timestamp,...` in seconds).
//!
//! A step without a row is a gap, not a zero, in a table; in a log it is a zero, because nobody asked. Where a collector writes zeros when it is silent, say that zeros are gaps.

use std::path::Path;

use goodput_forecast::Series;

use super::ImportReport;
use super::philly::seconds;
use crate::csv_rows::{CsvRows, Row, first_line};
use crate::error::{DataError, RowProblem};

/// How to read a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesOptions {
    /// The column of values; the first after that of times where it is `None`. A log has none.
    pub column: Option<String>,
    /// Seconds of a step: of a log 600 where it is `None`, of a table the distance of the first two rows.
    pub step_secs: Option<f64>,
    /// Whether zeros are gaps.
    pub zeros_are_gaps: bool,
}

/// Columns of times, in order of preference.
const TIMES: [&str; 6] = ["t_s", "timestamp", "t", "date", "TIMESTAMP", "Timestamp"];
/// Columns that only logs of requests have.
const LOGS: [&str; 3] = ["ContextTokens", "Request tokens", "Log Type"];
/// Names of the columns in messages.
const NAMES: &[&str] = &["time", "value"];
/// Longest series, steps: a century of ten minutes.
const MOST_STEPS: f64 = 6e6;
/// Step of a log, seconds.
const LOG_STEP_SECS: f64 = 600.0;

/// Reads the bytes of a table or a log.
///
/// # Errors
/// Where a column is missing, fewer than two rows are usable, or times are not a series.
pub fn parse(path: &Path, text: &[u8], options: &SeriesOptions) -> Result<(Series, ImportReport), DataError> {
    read(path, text, options, |_, _| Ok(None))
}

/// The same where `check` sees each row of a table, its time and its value, and refuses it, or says what is to be made good before it.
pub(super) fn read(
    path: &Path,
    text: &[u8],
    options: &SeriesOptions,
    mut check: impl FnMut(&Row<'_, '_>, (f64, f64)) -> Result<Option<String>, RowProblem>,
) -> Result<(Series, ImportReport), DataError> {
    let header = String::from_utf8_lossy(first_line(text)).into_owned();
    let names: Vec<&str> = header.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let missing =
        |column: &str| DataError::MissingColumn { path: path.into(), column: column.into(), found: names.join(", ") };
    let time = TIMES.into_iter().find(|name| names.contains(name)).ok_or_else(|| missing("t_s"))?;
    let is_log = LOGS.iter().any(|name| names.contains(name)) && options.column.is_none();
    let value = match &options.column {
        _ if is_log => time,
        Some(column) => column.as_str(),
        None => names.iter().copied().find(|name| !TIMES.contains(name)).ok_or_else(|| missing("value"))?,
    };
    let mut rows = CsvRows::new(path, text, &[time, value])?;
    let mut report = ImportReport::default();
    let mut entries: Vec<(f64, f64)> = Vec::new();
    while let Some(row) = rows.next(NAMES) {
        let read = row.and_then(|row| {
            let entry = entry(&row, is_log);
            let checked = entry.and_then(|entry| Ok((entry, if is_log { None } else { check(&row, entry)? })));
            checked.map(|checked| (row.line, checked)).map_err(|problem| (row.line, problem))
        });
        match read {
            Ok((line, (entry, repair))) => {
                repair.into_iter().for_each(|what| report.repair("gap", line, what));
                entries.push(entry);
                report.kept += 1;
            }
            Err((line, problem)) => report.refuse(line, problem),
        }
    }
    let empty = || DataError::Empty { path: path.into() };
    let Some(first) = entries.iter().map(|entry| entry.0).min_by(f64::total_cmp) else { return Err(empty()) };
    let distance = entries.get(1).map_or(0.0, |second| second.0 - entries[0].0);
    let step = options.step_secs.unwrap_or(if is_log { LOG_STEP_SECS } else { distance });
    let last = entries.iter().map(|entry| entry.0).fold(first, f64::max);
    if step.is_nan() || step < 1e-3 || (last - first) / step > MOST_STEPS {
        return Err(empty());
    }
    // Times a little early or late belong to the nearest step of a table; a request belongs to the step it came in.
    let place = |at: f64| if is_log { ((at - first) / step) as usize } else { ((at - first) / step).round() as usize };
    let mut values = vec![if is_log { 0.0 } else { f64::NAN }; place(last) + 1];
    for &(at, value) in &entries {
        let slot = &mut values[place(at)];
        *slot = if is_log { *slot + 1.0 / step } else { value };
    }
    if is_log {
        // The last step was cut off when the log ended.
        values.pop();
    }
    if options.zeros_are_gaps {
        for value in &mut values {
            *value = if *value == 0.0 { f64::NAN } else { *value };
        }
    }
    if values.iter().filter(|value| !value.is_nan()).count() < 2 {
        return Err(empty());
    }
    let start = (first * 1000.0).round() as i64;
    Series::new(start, (step * 1000.0).round() as i64, values.into())
        .map(|series| (series, report))
        .map_err(|_| empty())
}

fn entry(row: &Row<'_, '_>, is_log: bool) -> Result<(f64, f64), RowProblem> {
    let date = || {
        let text = row.bytes(0);
        // Fractions of a second, as `2023-11-16 18:15:46.6805900`, after the whole ones.
        let whole = seconds(text.get(..19)?)? as f64;
        let fraction = std::str::from_utf8(text.get(19..)?).ok()?;
        if fraction.is_empty() { Some(whole) } else { fraction.parse::<f64>().ok().map(|fraction| whole + fraction) }
    };
    let time = row.float(0, "a time in seconds, or as 2014-07-01 00:30:00").or_else(|problem| date().ok_or(problem))?;
    let value = if is_log { 1.0 } else { row.float(1, "a number")? };
    Ok((time, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, options: &SeriesOptions) -> (Vec<Option<f64>>, i64, ImportReport) {
        let (series, report) = parse(Path::new("x.csv"), text.as_bytes(), options).unwrap();
        (series.iter().collect(), series.step_millis(), report)
    }

    #[test]
    fn a_missing_row_is_a_gap_and_a_bad_one_is_refused_with_its_line() {
        let text = "timestamp,value\n2014-07-01 00:00:00,10\n2014-07-01 00:30:00,8\n2014-07-01 01:30:00,6\nyesterday,5\n2014-07-01 02:00:00,0\n";
        let (values, step, report) = read(text, &SeriesOptions::default());
        assert_eq!((values, step), (vec![Some(10.0), Some(8.0), None, Some(6.0), Some(0.0)], 1_800_000));
        assert_eq!((report.kept, report.refused.count, report.refused.examples[0].0), (4, 1, 5));
        let (values, _, _) = read(text, &SeriesOptions { zeros_are_gaps: true, ..SeriesOptions::default() });
        assert_eq!(values[4], None);
    }

    #[test]
    fn a_column_is_chosen_by_name() {
        let text = "t_s,a,b\n0,1,2\n600,3,4\n";
        assert_eq!(read(text, &SeriesOptions::default()).0, [Some(1.0), Some(3.0)]);
        let options = SeriesOptions { column: Some("b".into()), ..SeriesOptions::default() };
        assert_eq!(read(text, &options).0, [Some(2.0), Some(4.0)]);
        let missing = SeriesOptions { column: Some("c".into()), ..SeriesOptions::default() };
        assert!(
            parse(Path::new("x.csv"), text.as_bytes(), &missing).unwrap_err().to_string().contains("`c` is missing")
        );
    }

    #[test]
    fn logs_of_requests_become_rates() {
        let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,374,44\n2023-11-16 18:15:50.9,396,109\n2023-11-16 18:16:07.0,9,9\n2023-11-16 18:16:20.0,9,9\n";
        let options = SeriesOptions { step_secs: Some(10.0), ..SeriesOptions::default() };
        assert_eq!(read(azure, &options).0, [Some(0.2), Some(0.0), Some(0.1)]);
        let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n118,GPT-4,417,276,693,Conversation log\n";
        let options = SeriesOptions { step_secs: Some(50.0), ..SeriesOptions::default() };
        assert_eq!(read(burst, &options).0, [Some(0.04), Some(0.0)]);
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in ["", "a,b\n1,2\n", "t_s,v\n", "t_s,v\n1,1\n1,2\n", "t_s,v\n0,1\n0.001,2\n1e12,3\n"] {
            assert!(parse(Path::new("x.csv"), text.as_bytes(), &SeriesOptions::default()).is_err(), "{text:?}");
        }
    }
}
