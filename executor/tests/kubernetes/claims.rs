//! Dynamic Resource Allocation: real claims, which kube-scheduler allocates from devices of slices.

use goodput_configs::live::engine::{ClaimsConfig, KubernetesConfig};
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{EngineAction, JobPhase, OnNode, Order};
use goodput_testkit::kubelet::IDLE;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::kueue::apply;
use super::{Site, buildable, free, job, runtime};

/// The nodes offer `devices` devices each by a driver, and no counted resource.
async fn offer(site: &Site, driver: &str, devices: u32) {
    let nodes: Api<Node> = Api::all(site.client.clone());
    let resource = |api: &str, kind: &str, name: &str, spec: Value| json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name }, "spec": spec });
    let version = "resource.k8s.io/v1";
    let chosen = json!([{ "cel": { "expression": format!("device.driver == {driver:?}") } }]);
    apply(site, &resource(version, "DeviceClass", driver, json!({ "selectors": chosen })));
    for at in 0..4 {
        let node = site.node(at);
        let none = json!({ "status": {
            "capacity": { "nvidia.com/gpu": null }, "allocatable": { "nvidia.com/gpu": null } } });
        nodes.patch_status(&node, &PatchParams::default(), &Patch::Merge(none)).await.unwrap();
        let devices: Vec<Value> = (0..devices).map(|at| json!({ "name": format!("gpu-{at}") })).collect();
        let pool = json!({ "name": node, "generation": 1, "resourceSliceCount": 1 });
        let spec = json!({ "driver": driver, "nodeName": node, "pool": pool, "devices": devices });
        apply(site, &resource(version, "ResourceSlice", &node, spec));
    }
}

#[test]
fn devices_are_capacity_and_jobs_and_others_hold_them_by_claims() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("claims").await;
        let driver = "claims.goodput.test";
        offer(&site, driver, 4).await;
        let claims = ClaimsConfig { driver: driver.into(), classes: vec![driver.into()] };
        site.engine = KubernetesEngine::new(&KubernetesConfig { claims: Some(claims), ..site.settings.clone() });
        let seen =
            site.snapshot_where("the devices", |seen| seen.nodes.iter().map(|n| n.gpus).sum::<u32>() == 16).await;
        assert_eq!(free(&seen), [4; 4]);

        // A template of claims of two devices each; the pod of another user gets one of them.
        let exactly = json!({ "deviceClassName": driver, "count": 2 });
        let spec = json!({ "spec": { "devices": { "requests": [{ "name": "gpus", "exactly": exactly }] } } });
        let template = json!({ "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
                               "metadata": { "name": "two" }, "spec": spec });
        apply(&site, &template);
        let claimed = json!([{ "name": "gpus", "resourceClaimTemplateName": "two" }]);
        let container = json!({ "name": "x", "image": IDLE, "resources": { "claims": [{ "name": "gpus" }] } });
        apply(
            &site,
            &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "theirs" }, "spec": {
                "nodeSelector": { "kubernetes.io/hostname": site.node(1) },
                "resourceClaims": claimed, "containers": [container] } }),
        );
        let seen = site.snapshot_where("the foreign claim", |seen| seen.nodes[1].gpus == 2).await;
        assert_eq!(free(&seen), [4, 2, 4, 4]);

        apply(
            &site,
            &json!({ "apiVersion": "batch/v1", "kind": "Job",
                "metadata": { "name": "mine", "labels": { "goodput.dev/managed": "true" },
                              "annotations": { "goodput.dev/max-gpus": "4" } },
                "spec": {
                    "suspend": true, "completionMode": "Indexed", "completions": 1, "parallelism": 1,
                    "podReplacementPolicy": "Failed",
                    "template": { "spec": {
                        "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
                        "resourceClaims": claimed, "containers": [container],
                    } },
                } }),
        );
        let seen = site.snapshot_where("the job", |seen| !seen.jobs.is_empty()).await;
        let (key, request) = (seen.jobs[0].key.clone(), &seen.jobs[0].spec.request);
        assert_eq!((request.gpus, request.max_gpus(), seen.jobs[0].hands_off), (2, 4, false), "{:?}", seen.jobs[0]);
        let place = |placement: Vec<OnNode>| EngineAction::Place { placement, share: None };
        let seen = site.carry_out(&Order::named("p1", &key, 0, place(vec![site.on(2, 2)]))).await;
        assert_eq!(free(&seen), [4, 2, 2, 4]);
        // Every pod has a claim of its own.
        let grow = EngineAction::Resize { placement: vec![site.on(2, 2), site.on(3, 2)], grace_s: 5 };
        let seen = site.carry_out(&Order::named("p2", &key, 1, grow)).await;
        assert_eq!(free(&seen), [4, 2, 2, 2]);
        assert_eq!(job(&seen, &key).attempt.as_ref().map(|attempt| attempt.placement.len()), Some(2));
        site.carry_out(&Order::named("p3", &key, 2, EngineAction::Stop { grace_s: 5 })).await;
        let seen = site.snapshot_where("free devices", |seen| free(seen) == [4, 2, 4, 4]).await;
        assert_eq!(job(&seen, &key).phase, JobPhase::Held);
    });
}
