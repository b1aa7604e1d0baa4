//! Importers of public traces: fixtures of twenty rows in `traces/`, and the real files where their licence is known.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use goodput_datasets::import::Imported;
use goodput_datasets::store::Table;
use goodput_datasets::{Catalog, import_file, import_table, read_jobs, read_workload};
use goodput_env::time::SimTime;

use crate::shared::shared;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name)
}

/// Reads a file at once and in pieces. The tables are equal, and so are the reports.
fn imported(path: &Path) -> Imported {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.parquet");
    let report = import_file(path, &out, |_| {}).unwrap();
    let (table, at_once) = import_table(path).unwrap();
    assert_eq!(report, at_once);
    assert!(Table::read_parquet(&out).unwrap() == table, "the tables are equal, metadata included");
    read_jobs(path).unwrap()
}

/// Lines of the rows that were refused, with the reason.
fn refused(imported: &Imported) -> Vec<(u64, String)> {
    imported.report.refused.examples.iter().map(|(line, problem)| (*line, problem.to_string())).collect()
}

const fn secs(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}

#[test]
fn elasticflow_has_deadlines_on_the_clock_of_submission() {
    let trace = imported(&fixture("elasticflow.csv"));
    assert_eq!((trace.report.kept, trace.report.refused.count), (19, 1));
    let problem = "deadline is `2099999`, expected a time in seconds after submission_time, or nothing";
    assert_eq!(refused(&trace), [(20, problem.to_owned())]);
    let first = &trace.jobs[0];
    assert_eq!((first.gpus, first.batch_size, first.duration), (64, Some(256), Some(secs(2429))));
    assert_eq!((first.submit, first.deadline), (secs(0), Some(secs(1_933_904 - 1_932_025))));
    assert_eq!(first.application.as_deref(), Some("elasticflow-resnet50"));
    assert_eq!(trace.jobs[18].deadline, None);
    assert!(trace.jobs.iter().all(|job| Catalog::shipped().get(job.application.as_deref().unwrap()).is_none()));
}

#[test]
fn clusters_of_elasticflow_are_read_whole_and_compressed() {
    let jobs = |name: &str| imported(&shared(&format!("data/elasticflow/{name}.csv.xz"))).report;
    for (name, rows) in [("195job", 195), ("cluster01", 1595), ("cluster02", 5778), ("cluster04", 15_802)] {
        let report = jobs(name);
        assert_eq!((name, report.kept, report.refused.count), (name, rows, 0));
    }
    let loaded = read_workload(&shared("data/elasticflow/cluster01.csv.xz"), Catalog::shipped()).unwrap();
    assert!(loaded.workload.jobs.iter().all(|job| job.request.deadline.is_some()));
}

#[test]
fn a_compressed_trace_is_its_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.csv.gz");
    let text = fs::read(fixture("elasticflow.csv")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    gzip.finish().unwrap();
    assert_eq!(imported(&path).jobs, imported(&fixture("elasticflow.csv")).jobs);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = read_jobs(&path).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot read {}: ", path.display())), "{error}");
}
