//! Samples of service that the public Tiresias simulator takes its Gittins index from
//! (`simulator/yarn-gput1000.csv`): one column `duration`, GPU-seconds of whole jobs, in any order.

use std::fs;
use std::path::Path;

use crate::csv_rows::CsvRows;
use crate::error::DataError;

pub(super) const COLUMNS: &[&str] = &["duration"];

/// Reads samples, GPU-seconds in the order of the file.
///
/// # Errors
/// Where the file cannot be read, lacks the column, has no row, or a row is not a number above 0.
pub fn read(path: &Path) -> Result<Vec<f64>, DataError> {
    parse(path, &fs::read(path).map_err(DataError::read(path))?)
}

/// As [`read`] from the bytes of a file; `path` is for messages.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &[u8]) -> Result<Vec<f64>, DataError> {
    let mut rows = CsvRows::new(path, text, COLUMNS)?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next(COLUMNS) {
        let sample =
            row.and_then(|row| row.at_least(0, 0.001, "GPU-seconds above 0").map_err(|problem| (row.line, problem)));
        let at = |(line, problem)| DataError::Row { path: path.to_owned(), line, problem };
        samples.push(sample.map_err(at)?);
    }
    if samples.is_empty() { Err(DataError::Empty { path: path.to_owned() }) } else { Ok(samples) }
}
