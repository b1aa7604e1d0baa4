//! Figures and verdicts of workloads.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use crate::shared::shared;
use goodput_datasets::catalog::Catalog;
use goodput_datasets::inspect::summarise;
use goodput_datasets::validate::{Remark, validate};
use goodput_datasets::{import, read_jobs};

#[test]
fn workload_six_in_figures() {
    let jobs = read_jobs(&shared("data/pollux/workloads/workload-6.csv")).unwrap().jobs;
    let summary = summarise(&jobs, Catalog::shipped(), Some(64));
    assert_eq!((summary.jobs, summary.tenants, summary.unknown), (160, 1, 0));
    assert!((7.0..8.0).contains(&(summary.span_secs / 3600.0)));
    assert_eq!(summary.applications.values().map(|share| share.jobs).sum::<usize>(), 160);
    assert!(
        (summary.applications.values().map(|share| share.gpu_hours).sum::<f64>() / summary.gpu_hours - 1.0).abs()
            < 1e-9
    );
    let load = summary.load.unwrap();
    assert!((0.5..3.0).contains(&load), "{load}");
    assert!(summary.run_secs.is_sorted() && summary.gpus.is_sorted());
    assert_eq!((summary.gpus[0], summary.gpus[6]), (1.0, 48.0));
}

#[test]
fn philly_in_figures() {
    let jobs = read_jobs(&shared("data/philly/philly.csv")).unwrap().jobs;
    let summary = summarise(&jobs, Catalog::shipped(), Some(2500));
    assert_eq!((summary.jobs, summary.tenants), (82_247, 15));
    assert_eq!(summary.applications[""].jobs, 82_247);
    assert_eq!((summary.gpus[3], summary.gpus[4], summary.gpus[6]), (1.0, 8.0, 128.0));
    assert!((100.0..112.0).contains(&(summary.span_secs / 86_400.0)));
}

#[test]
fn nothing_is_known_of_nothing() {
    let summary = summarise(&[], Catalog::shipped(), Some(64));
    assert_eq!((summary.jobs, summary.load), (0, None));
    assert!(summary.gpus[0].is_nan());
}

#[test]
fn a_verdict_separates_errors_from_remarks() {
    let text = "name,time,application,num_replicas,batch_size\na,5,cifar10,1,128\nb,3,cifar10,2,64\nc,-1,cifar10,1,128\nd,6,resnet,1,1\n";
    let imported = import::pollux::parse(std::path::Path::new("w"), text.as_bytes()).unwrap();
    let verdict = validate(&imported, Catalog::shipped(), Some(64));
    assert!(!verdict.passes());
    assert_eq!(verdict.errors.examples.iter().map(|error| error.0).collect::<Vec<_>>(), [4, 5]);
    let remarks: Vec<_> = verdict.remarks.examples;
    assert_eq!(remarks, [(3, Remark::Unsorted), (3, Remark::Batch { batch_size: 64, init: 128, max: 4096 })]);

    let philly = read_jobs(&shared("data/philly/philly.csv")).unwrap();
    let verdict = validate(&philly, Catalog::shipped(), Some(64));
    assert!(verdict.passes());
    assert_eq!(verdict.remarks.by_kind["too large for the cluster"], 3, "jobs of 128 GPUs");
    assert!(verdict.remarks.by_kind["not in order of submission"] > 1000);
}
