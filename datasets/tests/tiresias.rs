//! The formats of the Tiresias simulator, against its files and against files with one thing wrong.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::path::Path;

use crate::shared::shared;
use goodput_datasets::catalog::Catalog;
use goodput_datasets::import::{WorkloadFormat, tiresias_cluster, tiresias_samples};
use goodput_datasets::workload::parse_jobs;
use goodput_datasets::{read_jobs, read_workload};
use goodput_env::job::{Elasticity, JobId, Work};
use goodput_env::time::SimTime;

const HEADER: &str = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n";

#[test]
fn a_trace_keeps_every_job_with_its_model() {
    for (file, count, gpu_secs) in [("60_job.csv", 60, 26_624.0), ("gen480_job.csv", 480, 0.0)] {
        let path = shared(&format!("reference/tiresias/{file}"));
        let imported = read_jobs(&path).unwrap();
        assert_eq!(
            (imported.format, imported.report.kept, imported.report.refused.count),
            (WorkloadFormat::Tiresias, count, 0)
        );
        let found: f64 =
            imported.jobs.iter().map(|job| job.duration.unwrap().as_secs_f64() * f64::from(job.gpus)).sum();
        assert!(gpu_secs == 0.0 || found == gpu_secs, "{found} GPU-seconds");
        let workload = read_workload(&path, Catalog::shipped()).unwrap().workload;
        for (at, job) in workload.jobs.iter().enumerate() {
            assert_eq!(job.request.elasticity, Elasticity::Rigid);
            assert!(matches!(job.work, Work::Fixed { .. }));
            assert!(!workload.model_name(JobId(at as u32)).is_empty(), "{}", job.request.name);
            assert_eq!(workload.application_name(JobId(at as u32)), "");
        }
    }
    let workload = read_workload(&shared("reference/tiresias/60_job.csv"), Catalog::shipped()).unwrap().workload;
    let second = &workload.jobs[1];
    assert_eq!((second.request.gpus, second.request.submit), (8, SimTime::from_secs(30)));
    assert_eq!(second.work, Work::Fixed { duration: SimTime::from_secs(147) });
    assert_eq!(workload.model_name(JobId(1)), "vgg11");
}

#[test]
fn a_row_with_a_wrong_value_is_refused_with_its_line() {
    let refusal = |row: &str| {
        let imported =
            parse_jobs(Path::new("t.csv"), format!("{HEADER}0,1,0,1,vgg19,10,1\n{row}\n").into_bytes()).unwrap();
        assert_eq!(imported.report.kept, 1);
        let (line, problem) = imported.report.refused.examples[0].clone();
        assert_eq!(line, 3);
        problem.to_string()
    };
    assert_eq!(refusal("1,0,0,1,vgg19,10,1"), "num_gpu is `0`, expected a whole number of at least 1");
    assert_eq!(refusal("1,1,-5,1,vgg19,10,1"), "submit_time is `-5`, expected a time in seconds of at least 0");
    assert_eq!(refusal("1,1,0,1,vgg19,0,1"), "duration is `0`, expected a duration in seconds above 0");
    assert_eq!(refusal("0,1,0,1,vgg19,10,1"), "job `0` is also on line 2");
    assert_eq!(refusal("1,1,0,1,vgg19,10"), "the row has 6 fields, the header 7");
    let nameless = parse_jobs(Path::new("t.csv"), format!("{HEADER}0,1,0,1,,10,1\n").into_bytes()).unwrap();
    assert_eq!(nameless.jobs[0].application, None);
    let headless = parse_jobs(Path::new("t.csv"), b"job_id,num_gpu,submit_time,model_name\n0,1,0,vgg19\n".to_vec());
    let error = headless.unwrap_err().to_string();
    assert_eq!(error, "t.csv:1: column `duration` is missing; found job_id, num_gpu, submit_time, model_name");
}

#[test]
fn a_cluster_is_one_row() {
    let header = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n";
    let parse = |rows: &str| tiresias_cluster::parse(Path::new("c.csv"), format!("{header}{rows}").as_bytes());
    let found = parse("5,32,8,128,256\n").unwrap();
    assert_eq!(
        (found.switches, found.nodes_per_switch, found.cpus_per_node, found.memory_gb_per_node),
        (5, 32, 128, 256)
    );
    assert_eq!((found.cluster().nodes.len(), found.cluster().total_gpus()), (160, 1280));
    let message = |rows: &str| parse(rows).unwrap_err().to_string();
    assert_eq!(message(""), "c.csv: no rows");
    assert_eq!(message("1,32,4,64,256\n1,32,4,64,256\n"), "c.csv:3: one row too many: expected one cluster");
    assert_eq!(message("1,x,4,64,256\n"), "c.csv:2: num_node_p_switch is `x`, expected a whole number of at least 1");
    assert!(message("4000000000,4000000000,4000000000,1,1\n").contains("at most a million accelerators"));
}

#[test]
fn samples_are_numbers_above_zero() {
    let parse = |text: &str| tiresias_samples::parse(Path::new("s.csv"), text.as_bytes());
    assert_eq!(parse("duration\n121\n\n122.5\n").unwrap(), [121.0, 122.5]);
    assert_eq!(
        parse("duration\n121\n-1\n").unwrap_err().to_string(),
        "s.csv:3: duration is `-1`, expected GPU-seconds above 0"
    );
    assert_eq!(parse("duration\n").unwrap_err().to_string(), "s.csv: no rows");
    assert!(parse("").is_err() && parse("length\n1\n").is_err());
}
