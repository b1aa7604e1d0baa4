//! Exports of workloads and of schedules.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::path::Path;

use goodput_datasets::Catalog;
use goodput_datasets::export::{RunChoice, RunSchedule, perfetto, swf, unscheduled};
use goodput_datasets::jobs::JobRow;
use goodput_datasets::store::{Column, Table, TextChoice};
use goodput_datasets::workload::parse_jobs;
use goodput_env::time::SimTime;

#[test]
fn a_workload_in_swf_reads_back_as_the_jobs_that_it_was() {
    let secs = SimTime::from_secs_f64;
    let job = |id: u32, submit: f64, limit: Option<f64>, tenant: &str| JobRow {
        line: 0,
        job_id: id.to_string(),
        submit: secs(submit),
        duration: Some(secs(30.125 + f64::from(id))),
        gpus: 1 + id % 8,
        limit: limit.map(secs),
        tenant: (!tenant.is_empty()).then(|| tenant.to_owned()),
        ..JobRow::default()
    };
    let jobs = vec![
        job(4, 0.5, Some(3600.0), "user-7"),
        job(9, 0.5, None, ""),
        job(2, 10.0, Some(60.0), "user-7"),
        job(11, 86_400.0, None, "user-12"),
    ];
    let mut text = Vec::new();
    swf::write(&unscheduled(&jobs, Catalog::shipped()), &mut text).unwrap();
    let back = parse_jobs(Path::new("jobs.swf"), text).unwrap();
    assert_eq!(back.report.refused.count, 0);
    let without_lines: Vec<JobRow> = back.jobs.into_iter().map(|job| JobRow { line: 0, ..job }).collect();
    assert_eq!(without_lines, jobs);
}

#[test]
fn names_that_are_no_numbers_are_numbered_and_noted() {
    let row = |name: &str, submit, tenant: &str| JobRow {
        job_id: name.to_owned(),
        submit: SimTime::from_secs(submit),
        duration: Some(SimTime::from_secs(5)),
        gpus: 2,
        tenant: Some(tenant.to_owned()),
        ..JobRow::default()
    };
    let jobs = [row("late", 9, "vision"), row("early", 3, "user-1")];
    let mut text = Vec::new();
    swf::write(&unscheduled(&jobs, Catalog::shipped()), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("; Note: user 2 is vision\n"), "{text}");
    assert!(text.contains("\n1 3 -1 5 2 -1 -1 2 -1 -1 1 1 -1"), "{text}");
    assert!(text.contains("\n2 9 -1 5 2 -1 -1 2 -1 -1 1 2 -1"), "{text}");
}

/// Tables of two runs of two jobs, as `goodput eval` writes them.
fn run_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let run = |rows: usize| {
        let policies: TextChoice = (0..rows).map(|row| if row < rows / 2 { "fifo" } else { "srtf" }).collect();
        let workloads: TextChoice = (0..rows).map(|_| "w").collect();
        vec![
            Column::new("policy", policies),
            Column::new("workload", workloads),
            Column::new("seed", vec![0_i64; rows]),
        ]
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let applications: TextChoice = ["bert", "", "bert", ""].into_iter().collect();
    let mut jobs = run(4);
    jobs.extend([
        Column::new("job_id", names(&["a", "b", "a", "b"])),
        Column::new("application", applications),
        Column::new("tenant", vec![0_i64, 1, 0, 1]),
        Column::new("submission_time", vec![0.0, 5.0, 0.0, 5.0]),
        Column::new("requested_number_of_resources", vec![2_i64, 1, 2, 1]),
        Column::new("starting_time", vec![Some(0.0), Some(20.0), Some(0.0), None]),
        Column::new("execution_time", vec![Some(20.0), Some(10.0), Some(20.0), None]),
        Column::new("gpus_mean", vec![Some(1.5), Some(1.0), Some(2.0), None]),
    ]);
    Table::new(jobs).write_parquet(&directory.path().join("jobs.parquet")).unwrap();
    let mut events = run(8);
    events.truncate(3);
    events[0] = Column::new("policy", (0..8).map(|_| "fifo").collect::<TextChoice>());
    events.extend([
        Column::new("time_secs", vec![0.0, 10.0, 20.0, 20.0, 30.0, 30.0, 30.0, 30.0]),
        Column::new("job_id", names(&["a", "a", "a", "b", "b", "b", "b", "b"])),
        Column::new("gpus", vec![2_i64, 1, 0, 1, 0, 0, 0, 0]),
    ]);
    Table::new(events).write_parquet(&directory.path().join("events.parquet")).unwrap();
    directory
}

#[test]
fn one_run_is_chosen_and_its_waits_are_in_swf() {
    let directory = run_directory();
    let error = RunSchedule::read(directory.path(), &RunChoice::default()).unwrap_err();
    assert!(error.to_string().contains("2 runs fit, expected one: fifo on w, seed 0; srtf on w, seed 0"), "{error}");
    let choice = RunChoice { policy: Some("srtf".to_owned()), ..RunChoice::default() };
    let schedule = RunSchedule::read(directory.path(), &choice).unwrap();
    assert_eq!((schedule.jobs.len(), schedule.table.rows(), schedule.changes.len()), (2, 2, 0));
    let mut text = Vec::new();
    swf::write(&schedule.jobs, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("\n1 0 0 20 2 -1 -1 2 -1 -1 1 "), "{text}");
    assert!(text.contains("\n2 5 -1 -1 1 -1 -1 1 -1 -1 -1 "), "{text}");
}

#[test]
fn slices_are_jobs_on_accelerators_and_in_the_queue() {
    let directory = run_directory();
    let choice = RunChoice { policy: Some("fifo".to_owned()), ..RunChoice::default() };
    let schedule = RunSchedule::read(directory.path(), &choice).unwrap();
    let mut text = Vec::new();
    perfetto::write(&schedule, &mut text).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let slices: Vec<_> = events
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            let whole = |key: &str| event[key].as_u64().unwrap();
            (
                event["name"].as_str().unwrap(),
                whole("pid"),
                whole("tid"),
                whole("ts") / 1_000_000,
                whole("dur") / 1_000_000,
            )
        })
        .collect();
    assert_eq!(
        slices,
        [("a", 1, 0, 0, 10), ("a", 1, 1, 0, 10), ("a", 1, 0, 10, 10), ("b", 1, 0, 20, 10), ("b", 2, 0, 5, 15)]
    );
    let held: Vec<i64> =
        events.iter().filter(|event| event["ph"] == "C").map(|event| event["args"]["gpus"].as_i64().unwrap()).collect();
    assert_eq!(held, [2, 1, 1, 0]);
    let restarts: Vec<u64> =
        events.iter().filter(|event| event["ph"] == "i").map(|event| event["ts"].as_u64().unwrap()).collect();
    assert_eq!(restarts, [10_000_000], "job a goes on with one accelerator");
    let first = events.iter().find(|event| event["ph"] == "X").unwrap();
    assert_eq!((&first["args"]["application"], &first["args"]["tenant"]), (&"bert".into(), &"0".into()));
}

#[test]
fn a_job_on_several_accelerators_goes_on_once() {
    let directory = run_directory();
    let choice = RunChoice { policy: Some("fifo".to_owned()), ..RunChoice::default() };
    let mut schedule = RunSchedule::read(directory.path(), &choice).unwrap();
    schedule.changes[1].gpus = 2;
    let mut text = Vec::new();
    perfetto::write(&schedule, &mut text).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let restarts = events.iter().filter(|event| event["ph"] == "i").filter_map(|event| event["tid"].as_u64());
    assert_eq!(restarts.collect::<Vec<_>>(), [0], "job a goes on with two accelerators");
}

#[test]
fn nodes_are_tracks_where_the_run_logged_placements() {
    let directory = run_directory();
    let choice = RunChoice { policy: Some("fifo".to_owned()), ..RunChoice::default() };
    let mut schedule = RunSchedule::read(directory.path(), &choice).unwrap();
    assert_eq!(schedule.changes[0].placement, None);
    let path = directory.path().join("events.parquet");
    let mut events = Table::read_parquet(&path).unwrap();
    let placements = ["0:1 2:1", "2:1", "", "2:1", "", "", "", ""];
    events.columns.push(Column::new("placement", placements.map(str::to_owned).to_vec()));
    events.write_parquet(&path).unwrap();
    schedule = RunSchedule::read(directory.path(), &choice).unwrap();
    assert_eq!(schedule.changes[0].placement, Some(vec![(0, 1), (2, 1)]));
    let mut text = Vec::new();
    perfetto::write(&schedule, &mut text).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let named = |event: &&serde_json::Value| (event["pid"].as_u64().unwrap(), event["args"]["name"].clone());
    let names: Vec<_> = of("M").iter().map(named).collect();
    assert_eq!(names[2..], [(10, "node 0".into()), (12, "node 2".into())], "nodes that jobs held");
    let slice = |event: &&serde_json::Value| {
        let whole = |key: &str| event[key].as_u64().unwrap();
        (
            event["name"].as_str().unwrap().to_owned(),
            whole("pid"),
            whole("tid"),
            whole("ts") / 1_000_000,
            whole("dur") / 1_000_000,
        )
    };
    let slices: Vec<_> = of("X").iter().map(slice).collect();
    let expected =
        [("a", 10, 0, 0, 10), ("a", 12, 0, 0, 10), ("a", 12, 0, 10, 10), ("b", 12, 0, 20, 10), ("b", 2, 0, 5, 15)];
    assert_eq!(slices, expected.map(|(job, node, lane, from, secs)| (job.to_owned(), node, lane, from, secs)));
    let restart = |event: &&serde_json::Value| (event["pid"].as_u64().unwrap(), event["args"]["job"].clone());
    assert_eq!(of("i").iter().map(restart).collect::<Vec<_>>(), [(12, "a".into())]);
    let held: Vec<i64> = of("C").iter().map(|event| event["args"]["gpus"].as_i64().unwrap()).collect();
    assert_eq!(held, [2, 1, 1, 0]);
}
