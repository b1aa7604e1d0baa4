//! Importers of public traces of which a job is more than a row, or more than a run time: fixtures of twenty rows in
//! `traces/`, and the real files where their licence is known.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::fs;
use std::io::Write as _;
use std::path::Path;

use goodput_datasets::import::{gavel, gavel_throughputs};
use goodput_datasets::jobs::JobRow;
use goodput_datasets::scaling::ScalingAssumption;
use goodput_datasets::{
    Catalog, ImportOptions, assumption_of, import_file, import_table, import_with, read_jobs, read_workload,
};
use goodput_env::time::SimTime;

use crate::shared::fixtures::{counts, fixture, imported, refused, secs};
use crate::shared::shared;

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
        [6, 7, 8, 12, 13, 18, 19],
        "no accelerators, waiting, running, waiting, none, a server, a service"
    );
    assert_eq!(refused(&trace)[2].1, "finishedAt is ``, expected a time: the job still runs");
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

#[test]
fn attempts_of_philly_are_added_up_on_the_clock_of_the_pacific_coast() {
    let trace = imported(&fixture("philly_job_log.json"));
    assert_eq!((trace.report.kept, trace.report.repaired.count, trace.report.refused.count), (11, 2, 9));
    let [first, again, clock_change, ..] = &trace.jobs[..] else { panic!() };
    let two_days = 74 + (2 * 24 * 3600 + 5 * 3600 + 39 * 60 + 42);
    assert_eq!((first.gpus, first.duration, first.submit), (8, Some(secs(two_days)), secs(0)));
    assert_eq!(first.tenant.as_deref(), Some("ee9e8c"));
    assert_eq!(trace.origin_unix_secs, Some(1_507_363_899));
    assert_eq!((again.line, again.duration), (4, Some(secs(3600))));
    assert_eq!((clock_change.gpus, clock_change.duration), (8, Some(secs(5 * 3600))), "the night has an hour more");
    let what = "2 attempts: the run times of 1 with both times are added up";
    assert_eq!(trace.report.repaired.examples[1], (4, what.to_owned()));
    let lines: Vec<u64> = refused(&trace).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 5, 7, 8, 9, 10, 11, 20]);
}

#[test]
fn tables_of_pai_are_joined_and_instances_become_accelerators() {
    let trace = imported(&fixture("pai/pai_task_table.csv"));
    let job = |line: u64| trace.jobs.iter().find(|job| job.line == line).unwrap();
    let part = job(1).share.map(|share| (share.compute_percent, share.memory_mib));
    assert_eq!((job(1).gpus, part, job(1).duration, job(1).submit), (1, Some((50, 0)), Some(secs(1000)), secs(0)));
    assert_eq!((job(2).gpus, job(2).share, job(2).duration, job(2).submit), (4, None, Some(secs(2010)), secs(100)));
    assert_eq!((job(3).gpus, job(3).share, job(9).gpus), (3, None, 8));
    assert_eq!((job(8).gpus, job(8).tenant.as_deref(), job(8).duration), (1, Some("u3"), Some(secs(105))));
    let repaired: Vec<&(u64, String)> = trace.report.repaired.examples.iter().collect();
    assert_eq!(repaired[0], &(3, "5 instances hold 250 % of an accelerator: 3 whole ones".to_owned()));
    assert_eq!(repaired.len(), 2);
    let lines: Vec<u64> = refused(&trace).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 5, 6, 7, 19, 20]);
    let half = read_jobs(&fixture("pai/pai_job_table.csv")).unwrap_err();
    assert!(half.to_string().contains("does not tell their accelerators") && half.remedy().contains("into one folder"));
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixture("pai/pai_task_table.csv"), directory.path().join("pai_task_table.csv")).unwrap();
    let error = read_jobs(&directory.path().join("pai_task_table.csv")).unwrap_err().to_string();
    assert!(error.ends_with("pai_job_table.csv is not beside the table of tasks"), "{error}");
}

#[test]
fn the_log_of_supercloud_counts_both_kinds_of_accelerators() {
    let trace = imported(&fixture("supercloud.csv"));
    let [first, second, third, ..] = &trace.jobs[..] else { panic!() };
    assert_eq!((first.job_id.as_str(), first.gpus, first.duration), ("4074251073298", 2, Some(secs(3600))));
    assert_eq!((first.submit, first.limit, first.tenant.as_deref()), (secs(0), None, Some("11")));
    assert_eq!((second.gpus, second.limit), (1, Some(secs(86_400))), "nothing was allocated: the request counts");
    assert_eq!((third.gpus, third.limit), (4, None));
    let lines: Vec<u64> = refused(&trace).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [5, 6, 7, 8, 9]);
    assert_eq!(trace.report.kept, 15);
}

#[test]
fn traces_of_shockwave_have_the_durations_of_their_first_batch_sizes() {
    let trace = imported(&fixture("shockwave.trace"));
    assert_eq!(counts(&trace), [18, 17, 2]);
    let first = &trace.jobs[0];
    assert_eq!((first.gpus, first.duration, first.batch_size), (1, Some(secs(1418)), Some(10)));
    assert_eq!(first.application.as_deref(), Some("LM (batch size 10)"));
    let what = "mode gns is not kept: the duration is that of all steps at the first batch size";
    assert_eq!(trace.report.repaired.examples[0], (1, what.to_owned()));
    let problems = [
        (17, "duration is `0`, expected a duration in seconds above 0"),
        (20, "scale_factor is `0`, expected accelerators, at least 1"),
    ];
    assert_eq!(refused(&trace), problems.map(|(line, what)| (line, what.to_owned())));
    for (name, jobs, changing) in [("120_0.2_5_100_40_25", 120, 116), ("900_0.2_5_100_5_15", 900, 867)] {
        let trace = imported(&shared(&format!("data/shockwave/{name}.trace")));
        assert_eq!(counts(&trace), [jobs, changing, 0]);
    }
}

/// Imports a trace over speeds.
fn over_speeds(trace: &Path, speeds: &Path) -> ([u64; 3], Vec<JobRow>) {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.parquet");
    let options = ImportOptions { throughputs: Some(speeds.to_owned()), ..ImportOptions::default() };
    let report = import_with(trace, &options, &out, |_| {}).unwrap();
    ([report.kept, report.repaired.count, report.refused.count], read_jobs(&out).unwrap().jobs)
}

#[test]
fn changes_of_the_batch_size_of_shockwave_count_over_speeds() {
    let dir = shared("data/shockwave");
    let trace = dir.join("120_0.2_5_100_40_25.trace");
    let (counts, jobs) = over_speeds(&trace, &dir.join("tacc_throughputs.json.gz"));
    assert_eq!(counts, [120, 0, 0]);
    let stated = imported(&trace).jobs;
    let ratio = |at: usize| jobs[at].duration.unwrap().as_secs_f64() / stated[at].duration.unwrap().as_secs_f64();
    // The second job has 143,450 steps of 1,563 an epoch. After ten epochs it leaves a batch size of 32 for 256, with
    // 196 steps an epoch. It is then fastest on a P100.
    let measured = gavel::read_speeds(&dir.join("tacc_throughputs.json.gz")).unwrap();
    let speed = |name: &str| {
        let class = measured.iter().find(|class| class.name == name && class.gpus == 1).unwrap();
        class.steps_per_sec["p100"]
    };
    let epochs = 143_450.0 / 1563.0;
    let [small, large] = ["ResNet-18 (batch size 32)", "ResNet-18 (batch size 256)"].map(speed);
    let expected = (10.0 * 1563.0 / small + (epochs - 10.0) * 196.0 / large) / 3338.0;
    assert!((ratio(1) - expected).abs() < 1e-3, "{} {expected}", ratio(1));
    // The trace has the durations on a V100. On the fastest type, a larger batch size may be slower than the first one.
    assert!((0..120).all(|at| (0.1..1.2).contains(&ratio(at))), "{:?}", (0..120).map(ratio).collect::<Vec<_>>());
    assert_eq!((jobs[1].batch_size, jobs[1].application.as_deref()), (Some(32), Some("ResNet-18 (batch size 32)")));
}

#[test]
fn the_first_line_of_a_trace_over_speeds_may_be_faulty() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.trace");
    let row = |steps: &str, mode: &str| {
        format!("LM (batch size 10)\tpython3\tlm\t--steps\t1\t{steps}\t1\t{mode}\t1\t-1\t10\t0\n")
    };
    // An epoch of this model has 5,968 steps.
    let rows = [row("100", "pollux"), row("100", "static"), row("5968000001", "gns"), row("1e15", "static")];
    fs::write(&path, format!("\n{}", rows.concat())).unwrap();
    let options = ImportOptions { throughputs: Some(fixture("gavel_throughputs.json")), ..ImportOptions::default() };
    let report = import_with(&path, &options, &directory.path().join("out.parquet"), |_| {}).unwrap();
    assert_eq!((report.kept, report.repaired.count), (1, 0));
    let problems: Vec<_> = report.refused.examples.iter().map(|(line, what)| (*line, what.to_string())).collect();
    let expected = [
        (2, "mode is `pollux`, expected static, accordion or gns"),
        (4, "total_steps is `5968000001`, expected steps of at most a million epochs"),
        (5, "total_steps is `1e15`, expected steps of at most a million epochs"),
    ];
    assert_eq!(problems, expected.map(|(line, what)| (line, what.to_owned())));
}

#[test]
fn traces_of_gavel_count_steps() {
    let error = read_jobs(&fixture("gavel.trace")).unwrap_err();
    assert!(error.remedy().contains("--throughputs"));
    let speeds = fixture("gavel_throughputs.json");
    let (counts, jobs) = over_speeds(&fixture("gavel.trace"), &speeds);
    assert_eq!(counts, [18, 0, 2]);
    let classes = gavel_throughputs::parse(&speeds, &fs::read(&speeds).unwrap()).unwrap();
    let class = classes.iter().find(|class| class.name == "Transformer (batch size 128)" && class.gpus == 1).unwrap();
    assert_eq!(jobs[0].duration, Some(SimTime::from_secs_f64(20_776.0 / class.steps_per_sec["v100"])));
    assert_eq!((jobs[0].batch_size, jobs[0].job_id.as_str()), (Some(128), "gavel-1"));
    let (counts, _) =
        over_speeds(&shared("data/gavel/medium_test.trace"), &shared("data/gavel/simulation_throughputs.json"));
    assert_eq!(counts, [20, 0, 0]);
}

#[test]
fn any_columns_become_jobs_by_a_map() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let text = "who,n_gpu,created,began,ended,max_hours,priority\n\
        ann,4,2026-10-01T08:30:10+02:00,2026-10-01 06:31:00,2026-10-01 07:31:00,2,7\n\
        bob,1,2026-10-01 06:30:00,2026-10-01 06:31:00,2026-10-01 06:30:00,,\n\
        bob,2,2026-10-01 06:30:00,2026-10-01 06:31:00,2026-10-01 06:41:00,,\n";
    fs::write(at("own.csv"), text).unwrap();
    let map = "gpus=n_gpu,submit=created:date,start=began:date,end=ended:date,tenant=who,limit=max_hours:hours";
    let options = ImportOptions { map: Some(map.parse().unwrap()), ..ImportOptions::default() };
    let report = import_with(&at("own.csv"), &options, &at("own.parquet"), |_| {}).unwrap();
    assert_eq!((report.kept, report.refused.count, report.refused.examples[0].0), (2, 1, 3));
    let jobs = read_jobs(&at("own.parquet")).unwrap().jobs;
    let [first, second] = &jobs[..] else { panic!() };
    assert_eq!((first.job_id.as_str(), first.submit, first.duration), ("row-2", secs(10), Some(secs(3600))));
    assert_eq!((first.gpus, first.limit, first.priority), (4, Some(secs(7200)), Some(7)));
    assert_eq!((second.submit, second.tenant.as_deref(), second.limit), (secs(0), Some("bob"), None));
    let options = ImportOptions { map: Some("gpus=cards".parse().unwrap()), ..ImportOptions::default() };
    let error = import_with(&at("own.csv"), &options, &at("own.parquet"), |_| {}).unwrap_err().to_string();
    assert!(error.contains("column `cards` is missing"), "{error}");
}

#[test]
fn an_assumption_about_scaling_is_in_the_metadata() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.parquet");
    let scaling = ScalingAssumption::read("mixture", Catalog::shipped()).unwrap();
    let options = ImportOptions { scaling: Some(scaling), ..ImportOptions::default() };
    import_with(&fixture("elasticflow.csv"), &options, &out, |_| {}).unwrap();
    let stated = assumption_of(&out).unwrap().unwrap();
    assert!(stated.starts_with("unknown applications scale as one of bert, "), "{stated}");
    let loaded = read_workload(&out, Catalog::shipped()).unwrap();
    let elastic = loaded.workload.jobs.iter().filter(|job| job.request.min_gpus() < job.request.max_gpus()).count();
    assert!(elastic > 10, "{elastic} of {}", loaded.workload.jobs.len());
    assert!(loaded.workload.jobs.iter().filter(|job| job.request.deadline.is_some()).count() == 18);
    import_file(&fixture("elasticflow.csv"), &out, |_| {}).unwrap();
    assert_eq!(assumption_of(&out).unwrap(), None);
}
