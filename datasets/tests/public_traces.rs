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

#[test]
fn jobs_and_pods_of_kubernetes_are_joined() {
    let trace = imported(&fixture("kubernetes.json"));
    let jobs: Vec<_> = trace
        .jobs
        .iter()
        .map(|job| (job.line, job.job_id.as_str(), job.gpus, job.submit, job.duration.unwrap()))
        .collect();
    assert_eq!(
        jobs,
        [
            (1, "nlp/bert", 8, secs(0), secs(3650 - 70)),
            (4, "nlp/elastic", 8, secs(30), secs(7200)),
            (5, "vision/failed", 8, secs(90), secs(300)),
            (10, "vision/waves", 2, secs(120), secs(1200)),
            (11, "default/alone", 1, secs(500), secs(1000)),
            (14, "vision/torch", 4, secs(600), secs(1000)),
            (17, "nlp/tpu", 16, secs(700), secs(1000)),
            (20, "nlp/amd", 8, secs(900), secs(90)),
        ]
    );
    let [bert, elastic, ..] = &trace.jobs[..] else { panic!() };
    assert_eq!((bert.priority, bert.tenant.as_deref(), bert.gpu_min), (Some(100), Some("nlp"), None));
    assert_eq!((elastic.gpu_min, elastic.limit), (Some(2), Some(secs(86_400))));
    let lines: Vec<u64> = refused(&trace).iter().map(|(line, _)| *line).collect();
    assert_eq!(
        lines,
        [19, 6, 7, 8, 12, 13, 18],
        "a service, no accelerators, waiting, running, waiting, none, a server"
    );
    assert_eq!(refused(&trace)[3].1, "finishedAt is ``, expected a time: the job still runs");
}

#[test]
fn workloads_of_kueue_have_their_admission_and_their_queue() {
    let trace = imported(&fixture("kueue.json"));
    assert_eq!((trace.report.kept, trace.report.refused.count), (15, 5));
    let [first, partial, two_sets, ..] = &trace.jobs[..] else { panic!() };
    assert_eq!((first.job_id.as_str(), first.gpus, first.duration), ("research/job-1", 8, Some(secs(3600))));
    assert_eq!((first.tenant.as_deref(), first.priority), (Some("team-a"), Some(100)));
    assert_eq!((partial.gpus, partial.gpu_min, partial.gpu_max), (4, Some(2), Some(8)));
    assert_eq!((partial.submit, partial.limit), (secs(10), Some(secs(7200))));
    assert_eq!((two_sets.gpus, two_sets.gpu_min, two_sets.tenant.as_deref()), (16, None, Some("team-b")));
    let lines: Vec<u64> = refused(&trace).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 5, 6, 7, 20]);
}

#[test]
fn broken_json_is_an_error_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("list.json");
    for (text, problem) in [
        ("{\"items\": [{\"kind\": \"Job\"", "line 1, column"),
        ("{\"kind\": \"List\"}", "missing field `items`"),
        ("{\"items\": []}", "no rows"),
    ] {
        fs::write(&path, text).unwrap();
        let error = import_table(&path).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}
