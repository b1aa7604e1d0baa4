//! Tables of requests: the traces of Azure (`TIMESTAMP,ContextTokens,GeneratedTokens`) and of BurstGPT
//! (`Timestamp,Request tokens,Response tokens`), and tables of one's own with the columns `arrival_secs`, `input` and
//! `output`.
//!
//! A row of BurstGPT without an answer is a request that failed. Such a row is refused, because a request without
//! tokens to answer asks nothing of a replica.

use std::path::Path;

use super::{Rows, checked};
use crate::csv_rows::{CsvRow, CsvRows, header_has};
use crate::error::{DataError, RowProblem};
use crate::import::dates;

const AZURE: &[&str] = &["TIMESTAMP", "ContextTokens", "GeneratedTokens"];
const BURST_GPT: &[&str] = &["Timestamp", "Request tokens", "Response tokens"];
const OWN: &[&str] = &["arrival_secs", "input", "output"];

/// Time of the arrival of a row, seconds from any start.
type Arrival = fn(&CsvRow<'_, '_>) -> Result<f64, RowProblem>;

/// Columns of a table and the form of its times, where the first line is of a known format.
fn format(first: &[u8]) -> Option<(&'static [&'static str], Arrival)> {
    let formats: [(&[&str], Arrival); 3] = [(AZURE, date), (BURST_GPT, secs), (OWN, secs)];
    formats.into_iter().find(|(columns, _)| header_has(first, columns))
}

/// Whether the first line is of one of the formats.
pub(super) fn recognises(first: &[u8]) -> bool {
    format(first).is_some()
}

/// Rows of the text.
///
/// # Errors
/// Where a column is missing.
pub(super) fn rows(path: &Path, text: &[u8]) -> Result<Rows, DataError> {
    let (columns, arrival) = format(text).unwrap_or((OWN, secs));
    let mut table = CsvRows::new(path, text, columns)?;
    let mut rows = Vec::new();
    while let Some(row) = table.next(columns) {
        rows.push(match row {
            Ok(row) => {
                let parsed = || checked(arrival(&row)?, row.count(1)?, row.count(2)?);
                (row.line, parsed())
            }
            Err((line, problem)) => (line, Err(problem)),
        });
    }
    Ok(rows)
}

fn secs(row: &CsvRow<'_, '_>) -> Result<f64, RowProblem> {
    row.at_least(0, 0.0, "seconds of at least 0")
}

/// Seconds since 1970 of a date with decimals of a second.
fn date(row: &CsvRow<'_, '_>) -> Result<f64, RowProblem> {
    let text = row.bytes(0);
    let (whole, decimals) = text.split_at(text.len().min(19));
    let decimals = std::str::from_utf8(decimals).ok().map(|decimals| format!("0{decimals}"));
    let part = decimals.and_then(|decimals| decimals.parse::<f64>().ok());
    let seconds = dates::seconds(whole).zip(part).map(|(whole, part)| whole as f64 + part);
    seconds.ok_or_else(|| row.problem(0, "a date such as 2023-11-16 18:17:03.97"))
}
