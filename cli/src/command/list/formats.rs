//! Formats of files that the program reads.

use goodput_console::Listing;
use goodput_datasets::import::FORMATS;

/// Listing of `goodput list formats`.
pub fn formats() -> Listing {
    let mut rows = Listing::new(&["format", "reads", "columns", "origin"]).brief(&["format", "reads"]);
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
