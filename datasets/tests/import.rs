//! Importers against the real files, and against files with one thing wrong.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::fs;
use std::path::Path;

use crate::shared::{profiles, shared};
use goodput_datasets::catalog::Catalog;
use goodput_datasets::import::pollux_profiles::{self, placements, run};
use goodput_datasets::import::{philly, pollux, step_times};
use goodput_datasets::{DataError, read_jobs, read_workload};
use goodput_env::job::{Elasticity, Work};
use goodput_env::time::SimTime;

fn csv(name: &str, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    (dir, path)
}

/// The message of a strict read, without the directory.
fn refusal(text: &str) -> String {
    let (dir, path) = csv("w.csv", text);
    let error = read_workload(&path, Catalog::shipped()).unwrap_err();
    assert!(!error.remedy().is_empty());
    error.to_string().replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn all_pollux_workloads_load_with_every_row() {
    let mut files = 0;
    for (folder, jobs) in [("workloads", 160), ("workloads-realistic", 160), ("workloads-0.5", 80)] {
        for entry in fs::read_dir(shared(&format!("data/pollux/{folder}"))).unwrap() {
            let loaded = read_workload(&entry.unwrap().path(), Catalog::shipped()).unwrap();
            assert_eq!(loaded.workload.jobs.len(), jobs);
            files += 1;
        }
    }
    assert_eq!(files, 12);
}

#[test]
fn a_pollux_job_is_elastic_and_keeps_its_request() {
    let loaded = read_workload(&shared("data/pollux/workloads/workload-1.csv"), Catalog::shipped()).unwrap();
    let first = &loaded.workload.jobs[0];
    assert_eq!(first.request.name, "cifar10-0");
    assert_eq!(first.request.submit, SimTime::from_secs(107));
    assert_eq!((first.request.gpus, first.request.batch_size), (6, Some(2048)));
    assert_eq!(first.request.elasticity, Elasticity::Elastic { min: 1, max: 64 });
    assert_eq!(loaded.workload.application_name(goodput_env::job::JobId(0)), "cifar10");
    let ncf = &loaded.workload.jobs[2].request;
    assert_eq!((ncf.gpus, ncf.elasticity), (1, Elasticity::Rigid));
    assert_eq!(loaded.tenants, ["default"]);
}

#[test]
fn philly_keeps_every_row_and_counts_from_its_earliest() {
    let imported = read_jobs(&shared("data/philly/philly.csv")).unwrap();
    assert_eq!((imported.report.kept, imported.report.repaired.count, imported.report.refused.count), (82_247, 0, 0));
    assert_eq!(imported.jobs.iter().map(|job| job.submit).min(), Some(SimTime::ZERO));
    // 2017-09-04 10:30:41 on the trace's own clock.
    assert_eq!(imported.origin_unix_secs, Some(1_504_521_041));
    let first = &imported.jobs[0];
    assert_eq!((first.job_id.as_str(), first.tenant.as_deref()), ("philly-2", Some("11cb48")));
    assert_eq!(first.submit, SimTime::from_secs(1_507_532_515 - 1_504_521_041), "2017-10-09 07:01:55");
    let gpu_secs: f64 = imported.jobs.iter().map(|job| job.duration.unwrap().as_secs_f64() * f64::from(job.gpus)).sum();
    assert_eq!(gpu_secs, 3_521_082_502.0, "the sum of the gpu_time column");

    let loaded = read_workload(&shared("data/philly/philly.csv"), Catalog::shipped()).unwrap();
    assert_eq!(loaded.tenants.len(), 15);
    assert!(loaded.workload.jobs.is_sorted_by_key(|job| job.request.submit));
    assert!(loaded.workload.jobs.iter().all(|job| job.request.elasticity == Elasticity::Rigid));
    assert!(matches!(loaded.workload.jobs[0].work, Work::Fixed { .. }));
}

#[test]
fn importing_is_lenient_and_says_what_it_left_out() {
    let text = "name,time,application,num_replicas,batch_size\na,1,cifar10,1,128\na,2,cifar10,1,128\nb,-3,cifar10,1,128\nc,nan,cifar10,1,128\n\nd,4,cifar10,0,128\ne,5,cifar10\nf,6,cifar10,2,128\n";
    let imported = pollux::parse(Path::new("w"), text.as_bytes()).unwrap();
    assert_eq!(imported.jobs.iter().map(|job| job.job_id.as_str()).collect::<Vec<_>>(), ["a", "f"]);
    assert_eq!(imported.report.kept, 2);
    let lines: Vec<u64> = imported.report.refused.examples.iter().map(|example| example.0).collect();
    assert_eq!(lines, [3, 4, 5, 7, 8]);
    assert_eq!(
        imported.report.to_string(),
        "2 rows kept, 0 repaired, 5 refused\n  refused for duplicate job: 1\n  refused for num_replicas: 1\n  refused for number of fields: 1\n  refused for time: 2\n  line 3: job `a` is also on line 2\n  line 4: time is `-3`, expected a time in seconds of at least 0\n  line 5: time is `nan`, expected a time in seconds of at least 0\n  line 7: num_replicas is `0`, expected a whole number of at least 1\n  line 8: the row has 3 fields, the header 5"
    );
}

#[test]
fn counts_are_exact_where_examples_are_few() {
    let rows = "x,-1,cifar10,1,128\n".repeat(1000);
    let text = format!("name,time,application,num_replicas,batch_size\n{rows}");
    let imported = pollux::parse(Path::new("w"), text.as_bytes()).unwrap();
    assert_eq!((imported.report.refused.count, imported.report.refused.examples.len()), (1000, 5));
}

#[test]
fn running_is_strict_and_names_the_line() {
    const HEADER: &str = "name,time,application,num_replicas,batch_size\n";
    let with = |rows: &str| refusal(&format!("{HEADER}{rows}"));
    assert_eq!(with("a,1,cifar10,1,128\na,2,cifar10,1,128\n"), "w.csv:3: job `a` is also on line 2");
    assert_eq!(with("a,-1,cifar10,1,128\n"), "w.csv:2: time is `-1`, expected a time in seconds of at least 0");
    assert_eq!(with("a,NaN,cifar10,1,128\n"), "w.csv:2: time is `NaN`, expected a time in seconds of at least 0");
    assert_eq!(
        with("a,1,resnet,1,128\n"),
        format!("w.csv:2: application `resnet` is not in the catalog ({})", Catalog::shipped().names().join(", "))
    );
    assert_eq!(with("a,1,cifar10,0,128\n"), "w.csv:2: num_replicas is `0`, expected a whole number of at least 1");
    assert_eq!(with("a,1,cifar10,1\n"), "w.csv:2: the row has 4 fields, the header 5");
    assert_eq!(with(""), "w.csv: no rows");
    assert_eq!(refusal(""), "w.csv: no rows");
    assert_eq!(
        refusal("name,time,application,batch_size\n"),
        "w.csv:1: column `num_replicas` is missing; found name, time, application, batch_size"
    );
    assert_eq!(refusal("hello\n1\n"), "w.csv:1: the header `hello` is of no known format");
    let philly = "timestamp,duration,num_gpus,gpu_time,cluster\n";
    assert_eq!(
        refusal(&format!("{philly}2017-13-01 00:00:00,1,1,1,a\n")),
        "w.csv:2: timestamp is `2017-13-01 00:00:00`, expected a time as 2017-10-09 07:01:55"
    );
    assert_eq!(
        refusal(&format!("{philly}2017-10-01 00:00:00,0,1,0,a\n")),
        "w.csv:2: duration is `0`, expected a duration in seconds above 0"
    );
}

#[test]
fn philly_reports_gpu_time_that_does_not_add_up() {
    let text =
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,10,2,30,a\n2017-10-01 00:00:05,10,2,20,a\n";
    let imported = philly::parse(Path::new("p"), text.as_bytes()).unwrap();
    assert_eq!((imported.report.kept, imported.report.repaired.count), (2, 1));
    assert_eq!(imported.jobs[1].submit, SimTime::from_secs(5));
}

#[test]
fn profiles_have_the_published_constants() {
    let json = crate::shared::json("reference/pollux/fitted_params.json");
    let catalog = pollux_profiles::catalog(&profiles(), None).unwrap();
    assert_eq!(catalog.names(), ["bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"]);
    for application in &catalog.applications {
        let expected = &json[&application.name];
        let number = |key: &str| expected[key].as_u64().unwrap() as u32;
        let limits = application.limits;
        assert_eq!(
            [limits.init, limits.max, limits.min_local, limits.max_local, application.epochs.len() as u32],
            ["init_batch_size", "max_batch_size", "min_local_bsz", "max_local_bsz", "max_epochs"].map(number),
            "{}",
            application.name
        );
        let target = expected["progress_target"].as_f64().unwrap();
        assert!(
            (application.total_work() / target - 1.0).abs() < 1e-12,
            "{}: {}",
            application.name,
            application.total_work()
        );
        assert!(application.epochs.is_sorted());
        assert!(!application.measured.is_empty() && application.iterations.is_some());
    }
    let replicas: Vec<u32> = catalog.applications.iter().map(|application| application.max_replicas).collect();
    assert_eq!(replicas, [64, 64, 64, 64, 1, 64]);
    let fixed: Vec<Option<u32>> = catalog.applications.iter().map(|application| application.fixed_batch).collect();
    assert_eq!(fixed, [None, None, None, None, Some(32_768), None]);
}

#[test]
fn exact_step_times_survive_the_thinning() {
    let path = shared("reference/pollux/interpolated_step_times.parquet");
    let thinned = pollux_profiles::catalog(&profiles(), Some(&path)).unwrap();
    let table = goodput_datasets::store::Table::read_parquet(&path).unwrap();
    use goodput_datasets::store::Values::{Float64, Int64, TextChoice};
    let column = |name: &str| table.column(name).unwrap();
    let (TextChoice(names), Int64(nodes), Int64(replicas), Int64(local), Float64(step), Float64(sync)) = (
        column("application"),
        column("num_nodes"),
        column("num_replicas"),
        column("local_bsz"),
        column("step_time_s"),
        column("sync_time_s"),
    ) else {
        panic!("other columns than expected");
    };
    assert_eq!(names.len(), 499_200);
    let mut checked = 0;
    for row in 0..names.len() {
        let application = thinned.get(names.get(row).unwrap()).unwrap();
        let (nodes, replicas, local) =
            (nodes[row].unwrap() as u32, replicas[row].unwrap() as u32, local[row].unwrap() as u32);
        if local > application.limits.max_local || local * replicas > application.limits.max {
            continue;
        }
        // Replicas spread over so many nodes; beyond four nodes only the counts matter.
        let shape: Vec<u32> = (0..nodes).map(|node| (replicas + node) / nodes).collect();
        let time = application.measured["t4"].step_time(&shape, local).unwrap();
        let (step, sync) = (step[row].unwrap(), sync[row].unwrap());
        assert!(
            (time.step_secs / step - 1.0).abs() < 1e-11,
            "{} {shape:?} {local}: {} {step}",
            application.name,
            time.step_secs
        );
        assert!((time.sync_secs - sync).abs() < 1e-11 * step);
        checked += 1;
    }
    assert!(checked > 100_000, "{checked}");
}

#[test]
fn thinned_step_times_load_as_the_full_ones_do() {
    let path = shared("reference/pollux/interpolated_step_times.parquet");
    let largest = |name: &str| if name == "bert" { 384 } else { 0 };
    let rows = step_times::read(&path, largest).unwrap();
    assert!(rows["bert"].len() < 3_000 && rows["cifar10"].is_empty(), "{}", rows["bert"].len());
    let dir = tempfile::tempdir().unwrap();
    let thin = dir.path().join("thin.parquet");
    step_times::table(&rows).write_parquet(&thin).unwrap();
    let again = step_times::read(&thin, largest).unwrap();
    assert_eq!(again["bert"], rows["bert"]);
}

#[test]
fn a_profile_with_a_hole_names_file_and_line() {
    let header = "progress,iteration,metric,grad_sqr,grad_var\n";
    let epochs = |skip: usize| -> String {
        (1..10).filter(|&epoch| epoch != skip).map(|epoch| format!("{},{},1,1,1\n", epoch * 100, epoch * 50)).collect()
    };
    let parse = |text: &str| run(Path::new("validation-64.csv"), text.as_bytes(), 64);
    assert!(parse(&format!("{header}{}", epochs(0))).is_ok());
    let error = parse(&format!("{header}{}", epochs(4))).unwrap_err();
    assert!(error.to_string().starts_with("validation-64.csv:5: the profile has a hole"), "{error}");
    let error = parse(&format!("{header}100,50,1,1,1\n200,100,1,NaN,1\n")).unwrap_err();
    assert_eq!(error.to_string(), "validation-64.csv:3: grad_sqr is `NaN`, expected a finite number");
    let error = parse(&format!("{header}100,50,1,1,1\n90,100,1,1,1\n")).unwrap_err();
    assert_eq!(error.to_string(), "validation-64.csv:3: progress is `90`, expected more than in the row before");

    let grid =
        "placement,local_bsz,step_time,sync_time\n1,32,0.1,0\n1,64,0.2,0\n1,128,0.4,0\n2,32,0.1,0.01\n2,128,0.4,0.1\n";
    let error = placements(Path::new("placements.csv"), grid.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "placements.csv:6: the profile has a hole: replicas per node [2] lack local batch size 64, which other placements have"
    );
}

#[test]
fn a_missing_or_short_run_is_a_hole() {
    let copy = || {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("bert");
        fs::create_dir(&target).unwrap();
        for entry in fs::read_dir(profiles().join("bert")).unwrap() {
            let entry = entry.unwrap();
            fs::write(target.join(entry.file_name()), fs::read(entry.path()).unwrap()).unwrap();
        }
        dir
    };
    let intact = copy();
    assert_eq!(pollux_profiles::read(intact.path()).unwrap().len(), 1);

    let missing = copy();
    fs::remove_file(missing.path().join("bert/validation-48.csv")).unwrap();
    let error = pollux_profiles::read(missing.path()).unwrap_err();
    assert!(error.to_string().contains("batch sizes 24 and 96 are further apart"), "{error}");

    let short = copy();
    let file = short.path().join("bert/validation-48.csv");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.lines().take(2).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let error = pollux_profiles::read(short.path()).unwrap_err();
    assert!(
        error.to_string().contains("validation-48.csv:2: the profile has a hole: 1 epochs, but 2 at other"),
        "{error}"
    );

    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(pollux_profiles::read(empty.path()), Err(DataError::NoProfiles { .. })));
    assert!(matches!(pollux_profiles::read(&empty.path().join("absent")), Err(DataError::Read { .. })));
}

#[test]
fn step_times_that_are_not_parquet_are_refused() {
    let (_dir, path) = csv("s.parquet", "PAR1 no");
    assert!(matches!(step_times::read(&path, |_| u32::MAX), Err(DataError::Parquet { .. })));
    let (_dir, path) = csv("s.parquet", "");
    assert!(step_times::read(&path, |_| u32::MAX).is_err());
}
