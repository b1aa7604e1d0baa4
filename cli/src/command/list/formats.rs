//! Formats of files that the program reads.

use goodput_console::Listing;
use goodput_datasets::import::FORMATS;
use goodput_datasets::store::schema::JOB_COLUMNS;

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

/// Listing of `goodput data schema`.
pub fn job_table() -> Listing {
    let mut rows = Listing::new(&["name", "type", "unit", "required", "meaning"]);
    for column in JOB_COLUMNS {
        rows.push(vec![
            column.name.into(),
            column.kind.name().into(),
            column.unit.into(),
            column.required.name().into(),
            column.meaning.into(),
        ]);
    }
    rows
}
