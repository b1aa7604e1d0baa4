//! DeepBoot's workloads: jobs and requests told apart, every line accounted for.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

use goodput_datasets::import::WorkloadFormat;
use goodput_datasets::workload::parse_jobs;
use goodput_datasets::{Catalog, import_table, read_workload};
use goodput_env::time::SimTime;

const HEADER: &str = "name,time,application,num_replicas,batch_size,duration,num_task\n";

fn parse(rows: &str) -> goodput_datasets::import::Imported {
    parse_jobs(Path::new("w.csv"), format!("{HEADER}{rows}").into_bytes()).unwrap()
}

#[test]
fn requests_and_jobs_are_told_apart_and_bad_rows_named_by_line() {
    let read = parse(
        "inference-bert-1,5,infer-bert-2,1,1,7.0,530\n\
         cifar10-0,9,cifar10,4,512,4.0,0\n\
         a,1,infer-bert,1,1,7,0\n\
         b,1,infer-bert-1,2,1,7,0\n\
         c,1,infer-bert-1,1,1,-1,0\n\
         cifar10-0,9,cifar10,4,512,4.0,0\n",
    );
    assert_eq!(read.format, WorkloadFormat::DeepBoot);
    assert_eq!((read.jobs.len(), read.requests.len()), (1, 1));
    let request = &read.requests[0];
    assert_eq!((request.model.as_str(), request.application.as_str()), ("infer-bert-2", "bert"));
    assert_eq!((request.submit, request.duration), (SimTime::from_secs(5), SimTime::from_secs(7)));
    let mut refused: Vec<_> =
        read.report.refused.examples.iter().map(|(line, what)| (*line, what.to_string())).collect();
    refused.sort();
    let lines: Vec<u64> = refused.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 5, 6, 7]);
    for (at, says) in
        ["infer-APPLICATION-VARIANT", "holds one accelerator", "positive number", "also on line 3"].iter().enumerate()
    {
        assert!(refused[at].1.contains(says), "{refused:?}");
    }
}

#[test]
fn the_public_workload_is_whole() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/deepboot/small.csv"));
    let workload = read_workload(&path, Catalog::shipped()).unwrap().workload;
    assert_eq!((workload.jobs.len(), workload.requests.len(), workload.served.len()), (160, 3200, 6));
    assert!(workload.requests.is_sorted_by_key(|request| request.submit));
    let mean = workload.requests.iter().map(|request| request.duration.as_secs_f64()).sum::<f64>() / 3200.0;
    assert!((mean - 4.97).abs() < 0.01, "{mean}");
    let (_, report) = import_table(&path).unwrap();
    assert_eq!((report.kept, report.refused.count), (160, 3200), "the job table has no requests, and says so");
    assert!(report.to_string().contains("inference request"));
}
