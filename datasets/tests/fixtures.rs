//! Fixtures of the formats of which every row is a job.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use goodput_datasets::{ImportOptions, import_with, read_jobs};
use goodput_env::time::SimTime;

use crate::shared::fixtures::{counts, fixture, imported, refused, secs};

/// Columns of a row: line, accelerators, submission and run time.
fn first(name: &str) -> (u64, u32, SimTime, SimTime) {
    let trace = imported(&fixture(name));
    let job = &trace.jobs[0];
    (job.line, job.gpus, job.submit, job.duration.unwrap())
}

fn said<const N: usize>(problems: [(u64, &str); N]) -> Vec<(u64, String)> {
    problems.map(|(line, what)| (line, what.to_owned())).to_vec()
}

#[test]
fn an_archive_of_parallel_workloads() {
    let trace = imported(&fixture("archive.swf"));
    assert_eq!(counts(&trace), [17, 0, 3]);
    let problems = [
        (10, "run is `-1`, expected a run time in seconds above 0"),
        (14, "allocated_processors is `-1`, expected a whole number of at least 1"),
        (21, "the row has 17 fields, the header 18"),
    ];
    assert_eq!(refused(&trace), said(problems));
    let [first, second, third, ..] = &trace.jobs[..] else { panic!() };
    assert_eq!((first.line, first.job_id.as_str(), first.gpus, first.duration), (6, "1", 1, Some(secs(2006))));
    assert_eq!((second.submit, second.gpus, second.limit), (secs(30), 4, Some(secs(10_800))));
    assert_eq!((third.tenant.as_deref(), third.limit), (Some("user-4"), None));
}

#[test]
fn a_log_of_helios() {
    let trace = imported(&fixture("helios.csv"));
    assert_eq!(counts(&trace), [18, 0, 2]);
    let problems = [
        (8, "gpu_num is `0`, expected a whole number of at least 1"),
        (15, "duration is `0`, expected a duration in seconds above 0"),
    ];
    assert_eq!(refused(&trace), said(problems));
    assert_eq!(first("helios.csv"), (2, 1, secs(26), secs(19_106)));
    assert_eq!(trace.origin_unix_secs, Some(1_591_728_061), "2020-06-09 18:41:01");
    let tenant = |line: u64| trace.jobs.iter().find(|job| job.line == line).unwrap().tenant.as_deref();
    assert_eq!([tenant(18), tenant(19)], [Some("vc1xx"), Some("u2")]);
}

#[test]
fn logs_of_both_clusters_of_acme() {
    let seren = imported(&fixture("acme_seren.csv"));
    assert_eq!(counts(&seren), [17, 0, 3]);
    let problems = [
        (6, "gpu_num is `0`, expected a whole number of at least 1"),
        (11, "duration is `0`, expected a duration in seconds above 0"),
        (17, "submit_time is ``, expected a time as 2020-06-09 18:41:01"),
    ];
    assert_eq!(refused(&seren), said(problems));
    assert_eq!(first("acme_seren.csv"), (2, 8, secs(0), secs(5613)));
    assert_eq!(seren.origin_unix_secs, Some(1_677_601_102), "2023-03-01 00:18:22 in Shanghai");
    let kalos = imported(&fixture("acme_kalos.csv"));
    assert_eq!(counts(&kalos), [18, 0, 2]);
    let problems = [
        (9, "duration is `-3`, expected a duration in seconds above 0"),
        (13, "gpu_num is ``, expected a whole number of at least 1"),
    ];
    assert_eq!(refused(&kalos), said(problems));
    assert_eq!(first("acme_kalos.csv"), (2, 256, secs(0), secs(57_808)));
    assert_eq!((kalos.jobs[0].job_id.as_str(), kalos.jobs[0].tenant.as_deref()), ("dlcsoipgtpr3emny", Some("uf790")));
}

#[test]
fn a_list_of_pods_of_openb() {
    let trace = imported(&fixture("openb_pods.csv"));
    assert_eq!(counts(&trace), [17, 0, 3]);
    let problems = [
        (5, "num_gpu is `0`, expected at least 1: a pod on processors only is not simulated"),
        (10, "scheduled_time is ``, expected a time: a pod that never ran has no duration"),
        (14, "gpu_milli is `500`, expected 1 to 1000, and 1000 of each of several accelerators"),
    ];
    assert_eq!(refused(&trace), said(problems));
    let [part, two, ..] = &trace.jobs[..] else { panic!() };
    assert_eq!((part.gpus, part.share.unwrap().compute_percent, part.duration), (1, 46, Some(secs(54_742))));
    assert_eq!((two.gpus, two.share, two.duration), (2, None, Some(secs(430_142 - 428_638))));
}

#[test]
fn a_table_in_the_columns_of_the_job_table() {
    let trace = imported(&fixture("jobs.csv"));
    assert_eq!(counts(&trace), [17, 0, 3]);
    let problems = [
        (9, "duration_secs is `-1`, expected a duration in seconds above 0"),
        (13, "job `job-3` is also on line 5"),
        (18, "gpus is `0`, expected a whole number of at least 1"),
    ];
    assert_eq!(refused(&trace), said(problems));
    let [_, limited, weighted, _, trained, ..] = &trace.jobs[..] else { panic!() };
    assert_eq!(
        (limited.submit, limited.limit, limited.tenant.as_deref()),
        (secs(37), Some(secs(16_810)), Some("team-1"))
    );
    assert_eq!((weighted.priority, weighted.weight_milli), (Some(10), Some(2500)));
    assert_eq!(weighted.deadline, Some(secs(52_104)));
    assert_eq!(
        (trained.application.as_deref(), trained.work_milli, trained.duration),
        (Some("cifar10"), Some(500), None)
    );
    assert_eq!((trained.batch_size, trained.gpu_min, trained.gpu_max), (Some(256), Some(1), Some(16)));
}

#[test]
fn a_table_of_own_columns_by_a_map() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("own.parquet");
    let map = "gpus=cards,submit=created:date,start=began:date,end=ended:date,tenant=who,limit=max_hours:hours";
    let options = ImportOptions { map: Some(map.parse().unwrap()), ..ImportOptions::default() };
    let report = import_with(&fixture("own.csv"), &options, &out, |_| {}).unwrap();
    assert_eq!((report.kept, report.repaired.count, report.refused.count), (18, 0, 2));
    let lines: Vec<u64> = report.refused.examples.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [8, 16], "an end before the start, and no accelerators");
    let jobs = read_jobs(&out).unwrap().jobs;
    assert_eq!((jobs[0].gpus, jobs[0].submit, jobs[0].limit), (4, secs(0), None));
    assert_eq!((jobs[1].duration, jobs[1].limit), (Some(secs(2 * 3600 + 7 * 60 + 53)), Some(secs(8 * 3600))));
}

#[test]
fn an_extract_of_philly() {
    let trace = imported(&fixture("philly.csv"));
    assert_eq!(counts(&trace), [19, 1, 1]);
    let what = "gpu_time 645729 is not duration x num_gpus = 645728: ignored";
    assert_eq!(trace.report.repaired.examples, [(7, what.to_owned())]);
    assert_eq!(refused(&trace), said([(12, "duration is `0`, expected a duration in seconds above 0")]));
    assert_eq!(first("philly.csv"), (2, 1, secs(0), secs(57_941)));
}
