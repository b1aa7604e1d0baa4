//! The Sia artifact's measurements by accelerator type.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::sync::OnceLock;

use std::path::Path;

use crate::shared::shared;
use goodput_datasets::import::{sia_profiles, sia_workloads};
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;

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
    assert_eq!(pace("cifar10", "dgx-ext").limits_on(&[8, 8]).max_local, 513, "what was measured on two nodes");
    assert_eq!(pace("deepspeech2", "rtx").limits.max_local, 57);
    assert_eq!(pace("yolov3", "aws").limits.max_local, 16, "the exception of Pollux's simulator is not Sia's");
    assert!(catalog().get("cifar10").unwrap().pace("tpu").is_none());
}

#[test]
fn the_default_cluster_has_64_accelerators_of_three_types() {
    let cluster = sia_profiles::cluster();
    assert_eq!((cluster.types.len(), cluster.nodes.len(), cluster.total_gpus()), (3, 11, 64));
    assert_eq!([0, 1, 2].map(|kind| cluster.gpus_per_node_of(TypeId(kind))), [4, 8, 8]);
}

#[test]
fn workloads_load_over_these_applications() {
    for number in 1..=4 {
        let path = shared(&format!("data/sia/workloads-philly/workload-{number}.csv"));
        assert_eq!(read_workload(&path, catalog()).unwrap().workload.jobs.len(), 160);
    }
}

#[test]
fn categories_say_what_is_up_to_the_scheduler() {
    let text = "name,time,application,num_replicas,batch_size,category\n\
        a,0,bert,4,48,adaptive\nb,1,bert,4,48,scale-gpus\nc,2,bert,4,48,rigid\nd,3,bert,2,48,rigid\n";
    let workload = sia_workloads::parse(Path::new("w"), text.as_bytes(), catalog()).unwrap();
    let sizes = |at: usize| (workload.jobs[at].request.min_gpus(), workload.jobs[at].request.max_gpus());
    assert_eq!([0, 1, 2, 3].map(sizes), [(1, 64), (1, 4), (4, 4), (2, 2)]);
    let fixed = |at: u32| workload.application(JobId(at)).unwrap().fixed_batch;
    assert_eq!([0, 1, 2, 3].map(fixed), [None, Some(48), Some(48), Some(48)]);
    assert_eq!(workload.applications.len(), catalog().applications.len() + 1, "one variant for a batch size");
    assert_eq!(workload.application_name(JobId(1)), "bert");
    let bad = text.replace("scale-gpus", "elastic");
    let error = sia_workloads::parse(Path::new("w"), bad.as_bytes(), catalog()).unwrap_err().to_string();
    assert!(error.contains("category is `elastic`, expected adaptive, scale-gpus or rigid"), "{error}");
}
