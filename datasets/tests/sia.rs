//! The Sia artifact's measurements by accelerator type.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod shared;

use std::sync::OnceLock;

use goodput_datasets::import::sia_profiles;
use goodput_datasets::{Catalog, read_workload};
use shared::shared;

fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| sia_profiles::catalog(&shared("data/sia")).unwrap())
}

#[test]
fn single_accelerator_throughputs_are_the_reference() {
    let text = std::fs::read_to_string(shared("reference/sia/one_gpu_throughput_by_type.json")).unwrap();
    let reference: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut compared = 0;
    for (name, types) in reference.as_object().unwrap() {
        let application = catalog().get(name).unwrap();
        for (kind, expected) in types.as_object().unwrap() {
            let pace = application.pace(kind).unwrap();
            let rate = expected["ex_per_s"].as_f64().unwrap();
            assert!(
                (pace.single_throughput() - rate).abs() <= 0.051,
                "{name} on {kind}: {} {rate}",
                pace.single_throughput()
            );
            let most = pace.measured.as_ref().unwrap().points(&[1]).last().unwrap().0;
            assert_eq!(f64::from(most), expected["max_local_bsz"].as_f64().unwrap(), "{name} on {kind}");
            compared += 1;
        }
    }
    assert_eq!(compared, 36);
}

#[test]
fn memory_belongs_to_the_type() {
    let pace = |name: &str, kind: &str| catalog().get(name).unwrap().pace(kind).unwrap();
    assert_eq!(pace("cifar10", "aws").limits.max_local, 1024);
    assert_eq!(pace("cifar10", "dgx-ext").limits.max_local, 4096);
    assert_eq!(pace("cifar10", "dgx-ext").limits_on(&[8, 8]).max_local, 257, "what was measured on two nodes");
    assert_eq!(pace("deepspeech2", "rtx").limits.max_local, 57);
    assert_eq!(pace("yolov3", "aws").limits.max_local, 16, "the exception of Pollux's simulator is not Sia's");
    assert!(catalog().get("cifar10").unwrap().pace("tpu").is_none());
}

#[test]
fn the_default_cluster_has_64_accelerators_of_three_types() {
    let cluster = sia_profiles::cluster();
    assert_eq!((cluster.types.len(), cluster.nodes.len(), cluster.total_gpus()), (3, 11, 64));
    assert_eq!([0, 1, 2].map(|kind| cluster.gpus_per_node_of(kind)), [4, 8, 8]);
}

#[test]
fn workloads_load_over_these_applications() {
    for number in 1..=4 {
        let path = shared(&format!("data/sia/workloads-philly/workload-{number}.csv"));
        assert_eq!(read_workload(&path, catalog()).unwrap().workload.jobs.len(), 160);
    }
}
