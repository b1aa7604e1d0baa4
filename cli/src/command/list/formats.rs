//! Formats of files that the program reads.

use goodput_datasets::import::FORMATS;

use crate::output::Rows;

/// Rows of `goodput list formats`.
pub fn formats() -> Rows {
    let mut rows = Rows::new(&["format", "reads", "columns", "origin"]);
    for format in FORMATS {
        rows.push(vec![
            format.name.into(),
            format.reads.into(),
            format.columns.join(", ").into(),
            format.origin.into(),
        ]);
    }
    rows
}
