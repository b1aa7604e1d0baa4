//! The accounting of Slurm with a record for each run of a job.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::fmt::Write as _;
use std::fs;

use goodput_datasets::import::Imported;
use goodput_datasets::import_file;
use goodput_env::time::SimTime;

use crate::shared::fixtures::{counts, fixture, imported, refused, secs};

#[test]
fn runs_of_a_job_that_was_put_back_are_one_job() {
    let trace = imported(&fixture("sacct.txt"));
    let jobs: Vec<_> = trace
        .jobs
        .iter()
        .map(|job| (job.line, job.job_id.as_str(), job.gpus, job.submit, job.duration.unwrap(), job.limit))
        .collect();
    let minutes = |minutes: i64| Some(secs(60 * minutes));
    assert_eq!(
        jobs,
        [
            (2, "1001", 4, secs(0), secs(3600), minutes(120)),
            (4, "1003", 1, secs(20), secs(60), minutes(60)),
            (7, "1005_1", 2, secs(40), secs(900), minutes(30)),
            (8, "1005_2", 2, secs(40), secs(910), minutes(30)),
            (11, "1007", 16, secs(60), secs(7200), None),
            // Submitted once, and run for 500, 1500 and 4000 s, each time with a limit of four hours.
            (3, "1002", 8, secs(10), secs(6000), Some(secs(2000 + 4 * 3600))),
            (13, "1009", 2, secs(80), secs(700), minutes(60)),
            // 1000 s on four accelerators, and 600 s on two. Of the hour of the limit, 2600 s were left at the resize.
            (15, "1010", 2, secs(90), secs(2600), Some(secs(2000 + 2600))),
            (17, "1011", 1, secs(120), secs(300), minutes(60)),
        ]
    );
    assert_eq!(trace.jobs[4].tenant.as_deref(), Some("eve"), "the user, where there is no account");
    assert_eq!(counts(&trace), [9, 3, 6]);
    let said = [
        (3, "3 runs, put back after PREEMPTED, NODE_FAIL: their run times are added up to 6000 s"),
        (13, "2 runs, put back after REQUEUED: their run times are added up to 700 s"),
        (15, "2 runs, put back after RESIZING: their run times are added up to 2600 s, as if all held 2 accelerators"),
    ];
    assert_eq!(trace.report.repaired.examples, said.map(|(line, what)| (line, what.to_owned())));
    let said = [
        (6, "AllocTRES is ``, expected accelerators as gres/gpu=4"),
        (9, "AllocTRES is `billing=4,cpu=4,mem=1G,node=1`, expected accelerators as gres/gpu=4"),
        (12, "State is `RUNNING`, expected a job that has ended"),
        (18, "JobID is `1001.batch`, expected a job, not a step of one; give sacct --allocations"),
        (20, "State is `PENDING`, expected a job that has ended"),
        (21, "job `1003` is also on line 4"),
    ];
    assert_eq!(refused(&trace), said.map(|(line, what)| (line, what.to_owned())));
}

#[test]
fn the_order_of_the_records_does_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sacct.txt");
    let text = fs::read_to_string(fixture("sacct.txt")).unwrap();
    let (header, records) = text.split_once('\n').unwrap();
    let backwards: Vec<&str> = records.lines().rev().collect();
    fs::write(&path, format!("{header}\n{}\n", backwards.join("\n"))).unwrap();
    let named = |jobs: &[goodput_datasets::jobs::JobRow]| {
        let mut jobs: Vec<_> =
            jobs.iter().map(|job| (job.job_id.clone(), job.gpus, job.submit, job.duration, job.limit)).collect();
        jobs.sort();
        jobs
    };
    let mut expected = named(&imported(&fixture("sacct.txt")).jobs);
    // Of two jobs with one number, the first of the file is kept.
    let again = expected.iter_mut().find(|job| job.0 == "1003").unwrap();
    (again.2, again.3) = (secs(86_400), Some(secs(90)));
    assert_eq!(named(&imported(&path).jobs), expected);
}

#[test]
fn without_states_a_repeated_name_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sacct.txt");
    let record = |second: u32, secs: u32| format!("7|2026-10-01T08:00:{second:02}|{secs}|gres/gpu=1\n");
    fs::write(&path, format!("JobID|Submit|ElapsedRaw|AllocTRES\n{}{}", record(1, 60), record(2, 70))).unwrap();
    let trace = imported(&path);
    assert_eq!((counts(&trace), trace.jobs[0].duration), ([1, 0, 1], Some(secs(60))));
    assert_eq!(refused(&trace), [(3, "job `7` is also on line 2".to_owned())]);
}

#[test]
fn a_run_after_the_end_of_a_job_is_another_job() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sacct.txt");
    let mut text = String::from("JobID|Submit|ElapsedRaw|AllocTRES|State\n");
    for (second, state) in [(1, "NODE_FAIL"), (2, "COMPLETED"), (3, "PREEMPTED"), (4, "FAILED")] {
        writeln!(text, "7|2026-10-01T08:00:{second:02}|{}|gres/gpu=1|{state}", 100 * second).unwrap();
    }
    fs::write(&path, text).unwrap();
    let trace = imported(&path);
    assert_eq!((counts(&trace), trace.jobs[0].duration), ([1, 1, 2], Some(secs(300))));
    let lines: Vec<u64> = refused(&trace).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 5]);
}

/// The import of the runs of one job: run time, accelerators and state of each, with a limit of an hour.
fn of_runs(runs: &[(u32, u32, &str)]) -> Imported {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sacct.txt");
    let mut text = String::from("JobID|Submit|ElapsedRaw|AllocTRES|TimelimitRaw|State\n");
    for (hour, (secs, gpus, state)) in runs.iter().enumerate() {
        writeln!(text, "7|2026-10-01T{hour:02}:00:00|{secs}|gres/gpu={gpus}|60|{state}").unwrap();
    }
    fs::write(&path, text).unwrap();
    imported(&path)
}

#[test]
fn a_limit_begins_anew_with_a_requeue_and_not_with_a_resize() {
    let limit = |runs: &[(u32, u32, &str)]| of_runs(runs).jobs[0].limit;
    let resized = [(100, 1, "NODE_FAIL"), (200, 1, "RESIZING"), (300, 1, "RESIZING"), (50, 1, "COMPLETED")];
    assert_eq!(limit(&resized), Some(secs(600 + 3600 - 500)), "500 s of the hour had gone");
    assert_eq!(limit(&resized[1..]), Some(secs(3600)), "one limit for all runs");
    let requeued = [(200, 1, "RESIZING"), (300, 1, "PREEMPTED"), (50, 1, "COMPLETED")];
    assert_eq!(limit(&requeued), Some(secs(500 + 3600)));
    let over = [(4000, 1, "RESIZING"), (50, 1, "TIMEOUT")];
    assert_eq!(limit(&over), Some(secs(4000)), "nothing was left");
}

#[test]
fn a_job_without_its_last_run_is_reported() {
    let said = |runs: &[(u32, u32, &str)]| of_runs(runs).report.repaired.examples;
    for state in ["REQUEUED", "RESIZING"] {
        let missing = format!("the last run ended in {state}, and the listing has no later one");
        assert_eq!(said(&[(100, 1, state)]), [(2, missing.clone())]);
        let both = format!("2 runs, put back after NODE_FAIL: their run times are added up to 150 s; {missing}");
        assert_eq!(said(&[(50, 1, "NODE_FAIL"), (100, 1, state)]), [(2, both)]);
    }
    // A job that may not be put back ends in these.
    assert!(said(&[(100, 1, "NODE_FAIL")]).is_empty() && said(&[(100, 1, "PREEMPTED")]).is_empty());
}

#[test]
fn run_times_are_told_in_whole_seconds() {
    let trace = of_runs(&[(1000, 4, "REQUEUED"), (600, 3, "COMPLETED")]);
    let what = "2 runs, put back after REQUEUED: their run times are added up to 1933 s, as if all held 3 accelerators";
    assert_eq!(trace.report.repaired.examples, [(2, what.to_owned())]);
    assert_eq!(trace.jobs[0].duration, Some(SimTime::from_secs_f64(4000.0 / 3.0 + 600.0)));
}

#[test]
fn a_long_listing_has_the_jobs_of_its_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("sacct.txt"), directory.path().join("out.parquet"));
    let mut text = String::from("JobID|Submit|ElapsedRaw|AllocTRES|State\n");
    for job in 0..30_000 {
        let state = if job % 100 == 0 { "PREEMPTED" } else { "COMPLETED" };
        writeln!(text, "{job}|2026-10-01T08:00:00|100|gres/gpu=1|{state}").unwrap();
    }
    for job in (0..30_000).step_by(100) {
        writeln!(text, "{job}|2026-10-02T08:00:00|100|gres/gpu=1|COMPLETED").unwrap();
    }
    fs::write(&path, text).unwrap();
    let mut total = SimTime::ZERO;
    let report = import_file(&path, &out, |job| total += job.duration.unwrap()).unwrap();
    assert_eq!((report.kept, report.repaired.count, report.refused.count), (30_000, 300, 0));
    assert_eq!(total, secs(30_300 * 100));
}
