//! Fixtures of twenty rows in `traces/`, and what tests look at in an import of one.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

use goodput_datasets::import::Imported;
use goodput_datasets::store::Table;
use goodput_datasets::{import_file, import_table, read_jobs};
use goodput_env::time::SimTime;

/// Path of a fixture.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name)
}

/// Reads a file at once and in pieces. The tables are equal, and so are the reports.
pub fn imported(path: &Path) -> Imported {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.parquet");
    let report = import_file(path, &out, |_| {}).unwrap();
    let (table, at_once) = import_table(path).unwrap();
    assert_eq!(report, at_once);
    assert!(Table::read_parquet(&out).unwrap() == table, "the tables are equal, metadata included");
    read_jobs(path).unwrap()
}

/// Numbers of the rows that are kept, repaired and refused.
pub fn counts(imported: &Imported) -> [u64; 3] {
    [imported.report.kept, imported.report.repaired.count, imported.report.refused.count]
}

/// Lines of the rows that were refused, ascending, with the reason.
pub fn refused(imported: &Imported) -> Vec<(u64, String)> {
    let examples = imported.report.refused.examples.iter();
    let mut refused: Vec<_> = examples.map(|(line, problem)| (*line, problem.to_string())).collect();
    refused.sort();
    refused
}

/// Time of whole seconds.
pub const fn secs(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}
