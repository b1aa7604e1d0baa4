//! Traces of requests to language models, a file for each format.
//!
//! - [`mooncake`]: arrival, lengths and hashes of blocks, a JSON object a line.
//! - [`vllm_bench`]: a run of a server with the times of each request, a JSON object a line.
//! - [`table`]: a table with a header; the traces of Azure and BurstGPT, and tables of one's own.

mod mooncake;
mod table;
mod vllm_bench;

use std::path::Path;

use goodput_env::model::serving::llm::LlmRequest;
use goodput_env::model::serving::llm::request::SECOND_PS;

use super::ImportReport;
use super::source::TraceSource;
use crate::csv_rows::{excerpt, first_line, without_mark};
use crate::error::{DataError, RowProblem};
use crate::llm::{LlmTrace, MeasuredTimes};

/// Most tokens of a prompt or an answer.
const MOST_TOKENS: u32 = 1 << 24;
/// Longest time from the first arrival to the last one, seconds: 64 bits of picoseconds end at 1.8e7 seconds.
const MOST_SECS: f64 = 1e7;

/// A row of a trace.
#[derive(Clone, Debug, PartialEq)]
struct LlmRequestRow {
    /// Seconds from any start.
    arrival_secs: f64,
    input: u32,
    output: u32,
    blocks: Vec<u64>,
    measured: Option<MeasuredTimes>,
}

/// Rows with their lines in the file.
type Rows = Vec<(u64, Result<LlmRequestRow, RowProblem>)>;

/// Reads a trace, which gzip or xz may have compressed, in the format that its first line tells.
///
/// # Errors
/// Where the file cannot be read, is of no known format, or has no row.
pub fn read(path: &Path) -> Result<(LlmTrace, ImportReport), DataError> {
    let text = TraceSource::at(path)?.plain()?;
    let first = first_line(&text);
    let rows = if mooncake::recognises(first) {
        mooncake::rows(&text)
    } else if vllm_bench::recognises(first) {
        vllm_bench::rows(&text)
    } else if table::recognises(first) {
        table::rows(path, &text)?
    } else {
        return Err(DataError::Format { path: path.to_owned(), found: excerpt(first) });
    };
    let arrivals = rows.iter().filter_map(|(_, row)| Some(row.as_ref().ok()?.arrival_secs));
    let start = arrivals.fold(f64::INFINITY, f64::min);
    let mut report = ImportReport::default();
    let mut kept = Vec::with_capacity(rows.len());
    for (line, row) in rows {
        match row.and_then(|row| not_late(row, start)) {
            Ok(row) => kept.push(row),
            Err(problem) => report.refuse(line, problem),
        }
    }
    report.kept = kept.len() as u64;
    if kept.is_empty() {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    Ok((trace(kept), report))
}

/// A trace of rows, which are brought into order of arrival.
fn trace(mut rows: Vec<LlmRequestRow>) -> LlmTrace {
    rows.sort_by(|a, b| a.arrival_secs.total_cmp(&b.arrival_secs));
    let start = rows.first().map_or(0.0, |row| row.arrival_secs);
    let request = |row: &LlmRequestRow| LlmRequest {
        arrival_ps: ((row.arrival_secs - start) * 1e9).round() as u64 * (SECOND_PS / 1_000_000_000),
        input: row.input,
        cached: 0,
        output: row.output,
    };
    let requests = rows.iter().map(request).collect();
    let measured = rows.iter().filter_map(|row| row.measured).collect();
    let blocks: Vec<Vec<u64>> = rows.into_iter().map(|row| row.blocks).collect();
    let blocks = if blocks.iter().all(Vec::is_empty) { Vec::new() } else { blocks };
    LlmTrace { requests, blocks, block_tokens: mooncake::BLOCK_TOKENS, measured }
}

/// Rows of a text with a JSON object a line.
fn objects<T: serde::de::DeserializeOwned>(text: &[u8], row: impl Fn(T) -> Result<LlmRequestRow, RowProblem>) -> Rows {
    let split = without_mark(text).split(|&byte| byte == b'\n');
    let lines = (1..).zip(split).filter(|(_, line)| !line.trim_ascii().is_empty());
    let parse = |(number, line): (u64, &[u8])| {
        let object = serde_json::from_slice(line).map_err(|_| RowProblem::Value {
            column: "the line",
            value: excerpt(line),
            expected: "a JSON object with the keys of the first line",
        });
        (number, object.and_then(&row))
    };
    lines.map(parse).collect()
}

/// The row, where it arrives soon enough after the first one at `start` seconds.
fn not_late(row: LlmRequestRow, start: f64) -> Result<LlmRequestRow, RowProblem> {
    if row.arrival_secs - start <= MOST_SECS {
        return Ok(row);
    }
    let (column, value) = ("the time of arrival", row.arrival_secs.to_string());
    Err(RowProblem::Value { column, value, expected: "at most 1e7 seconds after the first row" })
}

/// A row with these values, where they are possible.
fn checked(arrival_secs: f64, input: u32, output: u32) -> Result<LlmRequestRow, RowProblem> {
    let wrong = |column, value: String, expected| Err(RowProblem::Value { column, value, expected });
    if !(0.0..1e10).contains(&arrival_secs) {
        return wrong("the time of arrival", arrival_secs.to_string(), "seconds of at least 0 and below 1e10");
    }
    for (column, value) in [("the length of the prompt", input), ("the length of the answer", output)] {
        if !(1..=MOST_TOKENS).contains(&value) {
            return wrong(column, value.to_string(), "1 to 16777216 tokens");
        }
    }
    Ok(LlmRequestRow { arrival_secs, input, output, blocks: Vec::new(), measured: None })
}
