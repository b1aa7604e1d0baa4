//! Resources of submitted jobs, and Jobs that are over.

use std::time::{Duration, Instant};

use goodput_configs::live::engine::KubernetesConfig;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, JobResources, OnNode, Order, Submission};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;

use super::{Site, buildable, job, runtime};

/// Accelerators, processors and memory that the pods of the site ask for, which are not over.
async fn asked(site: &Site) -> Vec<(String, String, String)> {
    let pods = site.api::<Pod>().list(&ListParams::default()).await.unwrap().items;
    let of = |pod: &Pod| {
        let resources = pod.spec.as_ref()?.containers.first()?.resources.clone()?;
        assert_eq!(resources.limits, resources.requests);
        let limit = |name: &str| resources.limits.as_ref()?.get(name).map(|quantity| quantity.0.clone());
        Some((limit("nvidia.com/gpu")?, limit("cpu")?, limit("memory")?))
    };
    let leaving = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    let mut asked: Vec<_> = pods.iter().filter(leaving).filter_map(of).collect();
    asked.sort();
    asked
}

#[test]
fn processors_and_memory_go_with_the_accelerators_and_an_ended_job_is_cleared_away() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("resources").await;
        // A short time only here: the file of a deployment may not say so little.
        let settings = KubernetesConfig { keep_ended_secs: Some(2), cpus_per_gpu: Some(2), ..site.settings.clone() };
        site.engine = KubernetesEngine::new(&settings);
        let submission = site.submission("asks", 4, 4, 40);
        let refused = JobResources { account: Some("vision".into()), ..JobResources::default() };
        let error = site.engine.submit(&Submission { resources: refused, ..submission.clone() }).await.unwrap_err();
        assert!(error.to_string().contains("leave out account"), "{error}");

        let resources = JobResources { memory_per_gpu_mib: Some(512), ..JobResources::default() };
        let key = site.engine.submit(&Submission { resources, ..submission }).await.unwrap();
        site.phase(&key, JobPhase::Held).await;
        let place = |placement: Vec<OnNode>| EngineAction::Place { placement, share: None };
        site.carry_out(&Order::named("p1", &key, 0, place(vec![site.on(0, 2)]))).await;
        let of = |gpus: &str, cpus: &str, memory: &str| (gpus.to_owned(), cpus.to_owned(), memory.to_owned());
        assert_eq!(asked(&site).await, [of("2", "4", "1Gi")]);
        site.begun(&key, 1).await;
        let wide = EngineAction::Resize { placement: vec![site.on(1, 3), site.on(2, 1)], grace_s: 5 };
        site.carry_out(&Order::named("p2", &key, 1, wide)).await;
        assert_eq!(asked(&site).await, vec![of("1", "2", "512Mi"); 4], "four pods of one accelerator");

        let seen = site.phase(&key, JobPhase::Done).await;
        assert!(job(&seen, &key).attempt.is_none());
        // The Job goes; its end was seen and is not taken for a cancellation.
        let jobs = site.api::<Job>();
        let began = Instant::now();
        while !jobs.list(&ListParams::default()).await.unwrap().items.is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "the Job stays");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let seen = site.snapshot_where("the end", |seen| seen.jobs.iter().any(|job| job.key == key)).await;
        assert_eq!(job(&seen, &key).phase, JobPhase::Done);
    });
}
