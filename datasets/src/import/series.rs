//! Load series to forecast, from tables of rates and from logs of requests.
//!
//! - A table of rates has a column of times (seconds, or dates) and columns of values:
//!   ServeGen-like rate tables, fleet and request counts by interval.
//! - A log has one row a request, and becomes requests per second, or with a column named the sum
//!   of that column per second (tokens, seconds of work): Azure's LLM inference traces
//!   (`TIMESTAMP,ContextTokens,GeneratedTokens`), BurstGPT (`Timestamp,...` in seconds) and the
//!   requests of Alibaba's GenAI trace (`lora_request_trace.csv`: `gmt_create,predict_type,...`).
//! - Samples have one row a container and moment, as the other tables of Alibaba's GenAI trace do
//!   (`timestamp_anon,value,container_ip`; `qps.csv` has a type of requests besides). Each
//!   container counts with the mean of its samples in a step, and the load is the sum over
//!   containers, as their description asks (alibaba/clusterdata, cluster-trace-v2026-GenAI).
//!
//! Several rows of a table in one step count with their mean, so a longer step is one way to
//! resample. A table without times has a row a step, if the length of a step is given. A step
//! without a row is a gap, not a zero, in a table and among samples; in a log it is a zero, because
//! no request came. A gap is also a value that is empty or no number by name (`NaN`, `NULL`,
//! `None`). Where a collector writes zeros when it is silent, say that zeros are gaps.

use std::collections::BTreeMap;
use std::path::Path;

use goodput_forecast::Series;

use super::ImportReport;
use super::dates::seconds;
use crate::csv_rows::{CsvRow, CsvRows, first_line};
use crate::error::{DataError, RowProblem};

/// Options for reading a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesOptions {
    /// The column of values; where it is `None`, the first after that of times, `value` of samples,
    /// and of a log the number of rows.
    pub column: Option<String>,
    /// Seconds of a step: of a log and of samples 600 where it is `None`, of a table the distance
    /// of the first two rows.
    pub step_secs: Option<f64>,
    /// Whether zeros are gaps.
    pub zeros_are_gaps: bool,
}

/// Columns of times, in order of preference.
pub(super) const TIMES: [&str; 10] =
    ["t_s", "timestamp", "t", "date", "ds", "time", "TIMESTAMP", "Timestamp", "gmt_create", "timestamp_anon"];
/// Number of the first names in [`TIMES`] that are of no particular trace.
const USUAL_TIMES: usize = 6;
/// Columns that only logs of requests have.
const LOGS: [&str; 4] = ["ContextTokens", "Request tokens", "Log Type", "predict_status"];
/// Columns that only samples of containers have, and one that may tell apart what a container does.
const CONTAINER: &str = "container_ip";
const KIND: &str = "request_type";
/// Names of the columns in messages.
const NAMES: &[&str] = &["time", "value", "container", "type"];
/// Longest series, steps: a century of ten minutes.
const MOST_STEPS: f64 = 6e6;
/// Step of logs and samples, seconds.
const USUAL_STEP_SECS: f64 = 600.0;

/// Kind of file, by what a row is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Table,
    Log,
    Samples,
}

/// Source of the times of rows.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum RowTimes {
    /// Column of times.
    Column,
    /// Rows of a table without times, which are a known distance apart.
    Spaced { step_secs: f64 },
}

/// Source of the values of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowValues {
    /// Column of values.
    Column,
    /// Rows that are counted: each stands for one request.
    One,
}

/// Row of a file: its time, its value (`NaN` for a gap), and its source.
pub(super) struct TimedValue {
    pub at: f64,
    pub value: f64,
    pub source: usize,
}

/// Reads the bytes of a table, a log or samples.
///
/// # Errors
/// Where a column is missing, fewer than two rows are usable, or times are not a series.
pub fn parse(path: &Path, text: &[u8], options: &SeriesOptions) -> Result<(Series, ImportReport), DataError> {
    read(path, text, options, |_, _| Ok(None))
}

/// Reads a series as [`parse`] does, with a check of each row of a table. `check` sees the row, its
/// time and its value; it refuses the row, or returns a note of the repair that the row needs.
pub(super) fn read(
    path: &Path,
    text: &[u8],
    options: &SeriesOptions,
    mut check: impl FnMut(&CsvRow<'_, '_>, (f64, f64)) -> Result<Option<String>, RowProblem>,
) -> Result<(Series, ImportReport), DataError> {
    let header = String::from_utf8_lossy(first_line(text)).into_owned();
    let names: Vec<&str> = header.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let missing =
        |column: &str| DataError::MissingColumn { path: path.into(), column: column.into(), found: names.join(", ") };
    let untimed = || {
        // Names that one public trace alone uses would be no advice.
        let known = TIMES[..USUAL_TIMES].join(", ");
        DataError::NoTimes { path: path.into(), known, found: names.join(", ") }
    };
    let shape = match () {
        () if LOGS.iter().any(|name| names.contains(name)) => Shape::Log,
        () if names.contains(&CONTAINER) => Shape::Samples,
        () => Shape::Table,
    };
    let time = TIMES.into_iter().find(|name| names.contains(name));
    // Without times the rows of a table are a step apart, if it is known how long that is.
    let times = match (shape, time, options.step_secs) {
        (Shape::Table, None, Some(step_secs)) => RowTimes::Spaced { step_secs },
        _ => RowTimes::Column,
    };
    let time = if times == RowTimes::Column { Some(time.ok_or_else(untimed)?) } else { None };
    // The rows of a log are counted unless a column is named.
    let row_values = if shape == Shape::Log && options.column.is_none() { RowValues::One } else { RowValues::Column };
    let value = match &options.column {
        Some(column) => column.as_str(),
        None if row_values == RowValues::One => time.unwrap_or_default(),
        None if shape == Shape::Samples => "value",
        None => names.iter().copied().find(|name| !TIMES.contains(name)).ok_or_else(|| missing("value"))?,
    };
    let mut wanted = vec![time.unwrap_or(value), value];
    if shape == Shape::Samples {
        wanted.push(CONTAINER);
        wanted.extend(names.contains(&KIND).then_some(KIND));
    }
    let mut rows = CsvRows::new(path, text, &wanted)?;
    let mut report = ImportReport::default();
    let mut sources: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut entries: Vec<TimedValue> = Vec::new();
    while let Some(row) = rows.next(NAMES) {
        let read = row.and_then(|row| {
            let refused = |problem| (row.line, problem);
            let at = times.of(&row, entries.len()).map_err(refused)?;
            let value = row_values.of(&row).map_err(refused)?;
            let repair = if shape == Shape::Table { check(&row, (at, value)).map_err(refused)? } else { None };
            let name = (2..wanted.len()).map(|column| row.bytes(column)).collect::<Vec<_>>().join(&b',');
            let fresh = sources.len();
            Ok((row.line, TimedValue { at, value, source: *sources.entry(name).or_insert(fresh) }, repair))
        });
        match read {
            Ok((line, entry, repair)) => {
                repair.into_iter().for_each(|what| report.repair("gap", line, what));
                entries.push(entry);
                report.kept += 1;
            }
            Err((line, problem)) => report.refuse(line, problem),
        }
    }
    Ok((laid_out(path, shape, &entries, options)?, report))
}

/// Series of rows: each row in its step.
///
/// # Errors
/// Where fewer than two rows are usable, or times are not a series.
pub(super) fn laid_out(
    path: &Path,
    shape: Shape,
    entries: &[TimedValue],
    options: &SeriesOptions,
) -> Result<Series, DataError> {
    let empty = || DataError::Empty { path: path.into() };
    let Some(first) = entries.iter().map(|entry| entry.at).min_by(f64::total_cmp) else { return Err(empty()) };
    let distance = entries.get(1).map_or(0.0, |second| second.at - entries[0].at);
    let step = options.step_secs.unwrap_or(if shape == Shape::Table { distance } else { USUAL_STEP_SECS });
    let last = entries.iter().map(|entry| entry.at).fold(first, f64::max);
    if step.is_nan() || step < 1e-3 || (last - first) / step > MOST_STEPS {
        return Err(empty());
    }
    // Times a little early or late belong to the nearest step of a table; a request, a sample or
    // one of several rows belongs to the step it came in.
    let nearest = shape == Shape::Table && step < 1.5 * distance;
    let place = |at: f64| {
        let steps = (at - first) / step;
        (if nearest { steps.round() } else { steps }) as usize
    };
    let steps = place(last) + 1;
    let mut values = match shape {
        Shape::Table | Shape::Samples => summed_means(steps, entries.iter().map(|entry| (place(entry.at), entry))),
        Shape::Log => {
            let mut values = vec![0.0; steps];
            let measured = entries.iter().filter(|entry| !entry.value.is_nan());
            // Divided by the step, sums per step become rates per second.
            measured.for_each(|entry| values[place(entry.at)] += entry.value / step);
            values
        }
    };
    if !nearest {
        // The last step was cut off when the recording ended.
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
    Series::new(start, (step * 1000.0).round() as i64, values.into()).map_err(|_| empty())
}

/// For each step the sum over sources of the mean of their values; a gap where no source has one.
fn summed_means<'a>(steps: usize, entries: impl Iterator<Item = (usize, &'a TimedValue)>) -> Vec<f64> {
    let mut means: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
    for (place, entry) in entries.filter(|(_, entry)| !entry.value.is_nan()) {
        let (sum, count) = means.entry((place, entry.source)).or_default();
        (*sum, *count) = (*sum + entry.value, *count + 1.0);
    }
    let mut values = vec![f64::NAN; steps];
    for ((place, _), (sum, count)) in means {
        let before = if values[place].is_nan() { 0.0 } else { values[place] };
        values[place] = before + sum / count;
    }
    values
}

impl RowTimes {
    /// Time of a row, seconds. `before` counts the rows that were read before it.
    pub(super) fn of(self, row: &CsvRow<'_, '_>, before: usize) -> Result<f64, RowProblem> {
        let date = || {
            let text = row.bytes(0);
            if text.len() == 10 {
                return seconds(&[text, b" 00:00:00"].concat()).map(|whole| whole as f64);
            }
            if let Some(whole) = seconds(text) {
                return Some(whole as f64);
            }
            // Fractions of a second, as `2023-11-16 18:15:46.6805900`, after the whole ones.
            let whole = seconds(text.get(..19)?)? as f64;
            let fraction = std::str::from_utf8(text.get(19..)?).ok()?;
            if fraction.is_empty() {
                Some(whole)
            } else {
                fraction.parse::<f64>().ok().map(|fraction| whole + fraction)
            }
        };
        match self {
            Self::Spaced { step_secs } => Ok(before as f64 * step_secs),
            Self::Column => {
                row.float(0, "a time in seconds, or as 2014-07-01 00:30:00").or_else(|problem| date().ok_or(problem))
            }
        }
    }
}

impl RowValues {
    /// Value of a row; NaN for a gap.
    fn of(self, row: &CsvRow<'_, '_>) -> Result<f64, RowProblem> {
        match self {
            Self::One => Ok(1.0),
            Self::Column => value_at(row, 1),
        }
    }
}

/// Value in a column of a row; NaN for a gap.
pub(super) fn value_at(row: &CsvRow<'_, '_>, column: usize) -> Result<f64, RowProblem> {
    if [&b""[..], b"nan", b"null", b"none"].contains(&&*row.bytes(column).to_ascii_lowercase()) {
        return Ok(f64::NAN);
    }
    row.float(column, "a number, or nothing for a gap")
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
    fn names_of_times_are_in_the_message_where_none_is_found() {
        let error = parse(Path::new("x.csv"), b"when,y\n0,1\n1,2\n", &SeriesOptions::default()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("timestamp, t, date, ds, time; found when, y"), "{said}");
        let (values, step, _) = read("ds,y\n0,1\n60,2\n120,3\n", &SeriesOptions::default());
        assert_eq!((values.len(), step), (3, 60_000));
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
        let options = SeriesOptions { column: Some("Request tokens".into()), ..options };
        assert_eq!(read(burst, &options).0, [Some((472.0 + 1087.0) / 50.0), Some(0.0)], "tokens per second");
    }

    #[test]
    fn the_tables_of_alibabas_genai_trace_are_logs_and_samples() {
        // Rows of lora_request_trace.csv.
        let log = "gmt_create,predict_type,predict_status,exec_time_seconds,groupId,prompt_length,negative_prompt_length,num_images_per_prompt,num_inference_steps,checkpoint_model_version_id,num_lora\n\
            2024-11-15 18:16:14,TXT_2_IMG,SUCCEED,43.0,G0001,93.0,,1.0,40.0,M0001,0\n\
            2024-11-15 18:17:06,TXT_2_IMG,SUCCEED,36.0,G0001,93.0,,8.0,40.0,M0001,0\n\
            2024-11-15 18:28:07,IMG_2_IMG,SUCCEED,54.0,G0001,177.0,,8.0,40.0,M0001,0\n\
            2024-11-15 18:37:21,INPAINTING,SUCCEED,31.0,G0001,105.0,,8.0,40.0,M0001,0\n";
        assert_eq!(read(log, &SeriesOptions::default()).0, [Some(2.0 / 600.0), Some(1.0 / 600.0)]);
        let busy = SeriesOptions { column: Some("exec_time_seconds".into()), ..SeriesOptions::default() };
        assert_eq!(read(log, &busy).0, [Some(79.0 / 600.0), Some(54.0 / 600.0)], "executors that are busy");
        // qps.csv: the mean of a container's samples in a step, summed over containers and types;
        // no sample is a gap.
        let samples = "timestamp_anon,value,container_ip,request_type\n100.5,1.0,a,Generative Requests\n120.5,3.0,a,Generative Requests\n130.0,5.0,b,Generative Requests\n\
            140.0,0.5,None,API Requests\n280.0,4.0,a,Generative Requests\n350.0,9.0,a,Generative Requests\n";
        let options = SeriesOptions { step_secs: Some(60.0), ..SeriesOptions::default() };
        assert_eq!(read(samples, &options).0, [Some(7.5), None, Some(4.0), None]);
    }

    #[test]
    fn a_longer_step_takes_means_and_rows_may_be_numbered() {
        let text = "t_s,a\n0,1\n57,3\n114,\n171,8\n228,10\n285,nan\n342,5\n";
        let options = SeriesOptions { step_secs: Some(114.0), ..SeriesOptions::default() };
        assert_eq!(read(text, &options).0, [Some(2.0), Some(8.0), Some(10.0)]);
        let options = SeriesOptions { step_secs: Some(1800.0), ..SeriesOptions::default() };
        let (values, step, _) = read("Y\n22262\n21756\n\n22247\n", &options);
        assert_eq!((values, step), (vec![Some(22262.0), Some(21756.0), Some(22247.0)], 1_800_000));
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in ["", "a,b\n1,2\n", "t_s,v\n", "t_s,v\n1,1\n1,2\n", "t_s,v\n0,1\n0.001,2\n1e12,3\n"] {
            assert!(parse(Path::new("x.csv"), text.as_bytes(), &SeriesOptions::default()).is_err(), "{text:?}");
        }
    }
}
