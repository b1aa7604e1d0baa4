//! Orders on a real API server, and what others do beside them.

use std::collections::BTreeSet;

use goodput_executor::engine::{Engine, EngineAction, JobPhase, NodeHealth, Order, StepOutcome};
use goodput_testkit::kubelet::IDLE;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{Site, buildable, free, job, runtime, shared};

fn place(plan: &str, key: &str, starts: u32, placement: Vec<goodput_executor::engine::OnNode>) -> Order {
    Order::named(plan, key, starts, EngineAction::Place { placement, share: None })
}

#[test]
fn orders_are_carried_out_to_the_accelerator() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("orders").await;
        let submission = site.submission("one", 4, 8, 600);
        let key = site.engine.submit(&submission).await.unwrap();
        let seen = site.phase(&key, JobPhase::Held).await;
        assert_eq!(job(&seen, &key).starts, 0, "it waits for an order");
        assert_eq!(job(&seen, &key).spec.request.elasticity, submission.spec.request.elasticity);
        assert_eq!(free(&seen), [8; 4]);
        assert!(seen.nodes.iter().all(|node| node.accelerator == "a100" && node.gpus == 8));

        let seen = site.carry_out(&place("p1", &key, 0, vec![site.on(2, 4)])).await;
        site.begun(&key, 1).await;
        assert_eq!(free(&seen), [8, 8, 4, 8]);
        assert!(site.said(&key, "start")[0].contains(" 0 orders-2 0,1,2,3 0 0/1"), "{:?}", site.said(&key, "start"));

        let services = site.api::<Service>().list(&ListParams::default()).await.unwrap().items;
        let master = site.said(&key, "start")[0].split(' ').nth(7).unwrap().to_owned();
        let names: Vec<_> = services.iter().filter_map(|service| service.metadata.name.as_deref()).collect();
        assert!(names.iter().any(|name| master == format!("{name}-0.{name}")), "{master} has no service: {names:?}");

        // Two nodes: two pods that find each other by the name of rank 0.
        let resize = EngineAction::Resize { placement: vec![site.on(0, 4), site.on(3, 4)], grace_s: 5 };
        let seen = site.carry_out(&Order::named("p2", &key, 1, resize)).await;
        site.begun(&key, 3).await;
        assert_eq!((job(&seen, &key).starts, free(&seen)), (2, vec![4, 8, 8, 4]));
        assert_eq!(site.said(&key, "stop").len(), 1, "it was told to go, and went by itself");
        let starts = site.said(&key, "start");
        let ranks: BTreeSet<&str> = starts[1..].iter().map(|line| line.split(' ').nth(6).unwrap()).collect();
        assert_eq!(ranks, BTreeSet::from(["0/2", "1/2"]));
        assert!(starts[1..].iter().all(|line| line.contains("one-") && line.contains("-0.one-")), "{starts:?}");

        // An uneven placement: three pods of one accelerator.
        let uneven = EngineAction::Migrate { placement: vec![site.on(1, 1), site.on(2, 2)], grace_s: 5 };
        let seen = site.carry_out(&Order::named("p3", &key, 2, uneven)).await;
        site.begun(&key, 6).await;
        assert_eq!(free(&seen), [8, 7, 6, 8]);
        assert_eq!(job(&seen, &key).failures, 0, "no pod that was told to go has failed");

        let seen = site.carry_out(&Order::named("p4", &key, 3, EngineAction::Stop { grace_s: 5 })).await;
        assert_eq!((job(&seen, &key).phase, free(&seen)), (JobPhase::Held, vec![8; 4]));

        let drain = EngineAction::Drain { node: site.node(0), reason: "a fan".into() };
        let seen = site.carry_out(&Order::named("p5", "", 0, drain)).await;
        assert_eq!((seen.nodes[0].health, seen.nodes[0].note.as_str()), (NodeHealth::Drained, "a fan"));
        let undrain = EngineAction::Undrain { node: site.node(0) };
        site.carry_out(&Order::named("p6", "", 0, undrain)).await;

        site.carry_out(&place("p7", &key, 3, vec![site.on(0, 8)])).await;
        site.begun(&key, 7).await;
        let cancel = Order::named("p8", &key, 4, EngineAction::Cancel { grace_s: 5 });
        let seen = site.carry_out(&cancel).await;
        assert_eq!((job(&seen, &key).phase, free(&seen)), (JobPhase::Cancelled, vec![8; 4]));
        assert_eq!(site.kubelets.history().doubled(), []);
        assert!(site.kubelets.history().crowded.is_empty());
    });
}

#[test]
fn a_job_that_is_handed_in_with_kubectl_ends_well_and_goes_on_from_its_checkpoint() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("kubectl").await;
        let directory = site.directory.path().display().to_string();
        let noted = |name: &str, annotation: &str| {
            let path = format!("metadata.annotations['{annotation}']");
            json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } })
        };
        let env = json!([
            { "name": "DIR", "value": directory }, { "name": "WORK", "value": "40" },
            noted("SCHED_JOB_ID", "goodput.dev/key"), noted("SCHED_ATTEMPT", "goodput.dev/attempt"),
            noted("SCHED_GPUS", "goodput.dev/world-size"), noted("NNODES", "goodput.dev/pods"),
            noted("NODE_RANK", "batch.kubernetes.io/job-completion-index"),
        ]);
        let given = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": "mine", "labels": { "goodput.dev/managed": "true" },
                          "annotations": { "goodput.dev/min-gpus": "1" } },
            "spec": {
                "suspend": true, "completionMode": "Indexed", "completions": 1, "parallelism": 1,
                "template": { "spec": { "restartPolicy": "Never", "containers": [{
                    "name": "train", "image": "mine:1", "command": ["/bin/sh", format!("{directory}/job.sh")],
                    "env": env, "resources": { "limits": { "nvidia.com/gpu": "2" } },
                }] } },
            },
        });
        let file = site.directory.path().join("mine.json");
        std::fs::write(&file, given.to_string()).unwrap();
        assert!(shared().kubectl().args(["apply", "-n", "kubectl"]).arg("-f").arg(&file).status().unwrap().success());
        let seen = site.snapshot_where("the job", |seen| !seen.jobs.is_empty()).await;
        let key = seen.jobs[0].key.clone();
        assert!(key.starts_with("kubectl.mine.") && !seen.jobs[0].hands_off, "{:?}", seen.jobs[0]);
        let request = &seen.jobs[0].spec.request;
        assert_eq!((request.gpus, request.min_gpus(), request.max_gpus()), (2, 1, 2));

        site.carry_out(&place("p1", &key, 0, vec![site.on(1, 1)])).await;
        site.begun(&key, 1).await;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let grow = EngineAction::Resize { placement: vec![site.on(1, 2)], grace_s: 5 };
        site.carry_out(&Order::named("p2", &key, 1, grow)).await;
        let seen = site.phase(&key, JobPhase::Done).await;
        assert_eq!((free(&seen), job(&seen, &key).spec.request.gpus), (vec![8; 4], 2), "what was asked for stays");
        let starts = site.said(&key, "start");
        let done: u32 = starts[1].split(' ').nth(5).unwrap().parse().unwrap();
        assert!(done > 0, "the second attempt goes on: {starts:?}");
        assert_eq!(site.said(&key, "end").len(), 1);
    });
}

/// The program is told to go while it writes its last result, and ends well. The job controller has taken its finalizer
/// off the pod before, and does not count that end.
#[test]
fn a_job_that_ends_well_while_it_is_stopped_is_over() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("ending").await;
        let mut submission = site.submission("last", 2, 2, 600);
        let program = "trap '' TERM; log=$DIR/$SCHED_JOB_ID.log; echo start >> $log; sleep 2; echo end >> $log";
        submission.command = vec!["/bin/sh".into(), "-c".into(), program.into()];
        let key = site.engine.submit(&submission).await.unwrap();
        site.phase(&key, JobPhase::Held).await;
        site.carry_out(&place("p1", &key, 0, vec![site.on(1, 2)])).await;
        site.begun(&key, 1).await;
        let stop = Order::named("p2", &key, 1, EngineAction::Stop { grace_s: 5 });
        site.engine.apply(std::slice::from_ref(&stop)).await.unwrap();
        let seen = site.phase(&key, JobPhase::Done).await;
        assert_eq!(free(&seen), [8; 4]);
        let again = place("p3", &key, 1, vec![site.on(2, 2)]);
        site.engine.apply(&[again]).await.unwrap();
        let seen = site.engine.snapshot().await.unwrap();
        assert_eq!(job(&seen, &key).starts, 1, "nothing is started that is over");
        // Upkeep tells Kubernetes.
        let name = key.split('.').nth(1).unwrap();
        let jobs = site.api::<Job>();
        let began = std::time::Instant::now();
        loop {
            site.engine.snapshot().await.unwrap();
            site.engine.maintain().await.unwrap();
            let status = jobs.get(name).await.unwrap().status.unwrap_or_default();
            if status.completion_time.is_some() {
                break;
            }
            assert!(began.elapsed().as_secs() < 30, "{status:?}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        site.phase(&key, JobPhase::Done).await;
        assert_eq!((site.said(&key, "start").len(), site.said(&key, "end").len()), (1, 1));
    });
}

#[test]
fn what_others_run_is_gone_and_is_never_touched() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("others").await;
        let pods = site.api::<Pod>();
        let pod = json!({
            "metadata": { "name": "theirs" },
            "spec": { "nodeSelector": { "kubernetes.io/hostname": site.node(1) }, "containers": [{
                "name": "x", "image": IDLE, "resources": { "limits": { "nvidia.com/gpu": "3" } },
            }] },
        });
        // The account of pods is there a moment after the namespace.
        site.snapshot_where("the nodes", |seen| seen.nodes.len() == 4).await;
        let theirs: Pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &theirs).await.unwrap();
        let seen = site.snapshot_where("the foreign pod", |seen| seen.nodes[1].gpus == 5).await;
        assert_eq!(free(&seen), [8, 5, 8, 8]);
        assert!(seen.nodes[1].note.contains("3 of 8"), "{}", seen.nodes[1].note);
        assert!(seen.jobs.is_empty(), "a pod that was not given is no job");

        // A job without the label is none of ours, and a job that Kueue has is left to Kueue.
        let jobs = site.api::<Job>();
        let template = |image: &str| {
            json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "x", "image": image,
                "resources": { "limits": { "nvidia.com/gpu": "1" } } }] } })
        };
        for (name, labels) in [
            ("plain", json!({})),
            ("kueues", json!({ "goodput.dev/managed": "true", "kueue.x-k8s.io/queue-name": "q" })),
        ] {
            let job = json!({ "metadata": { "name": name, "labels": labels }, "spec": {
                "suspend": true, "completionMode": "Indexed", "completions": 1, "parallelism": 1,
                "template": template(IDLE) } });
            let job: Job = serde_json::from_value(job).unwrap();
            jobs.create(&PostParams::default(), &job).await.unwrap();
        }
        let seen = site.snapshot_where("the job of Kueue", |seen| !seen.jobs.is_empty()).await;
        assert_eq!(seen.jobs.len(), 1);
        assert!(seen.jobs[0].hands_off && seen.jobs[0].note.contains("Kueue"), "{:?}", seen.jobs[0]);
        let order = place("p1", &seen.jobs[0].key, 0, vec![site.on(0, 1)]);
        let receipts = site.engine.apply(&[order]).await.unwrap();
        assert!(matches!(receipts[0].outcome, StepOutcome::Refused { .. }), "{receipts:?}");
        site.engine.maintain().await.unwrap();
        let theirs = pods.get("theirs").await.unwrap();
        let managers: Vec<String> =
            theirs.metadata.managed_fields.unwrap().into_iter().filter_map(|field| field.manager).collect();
        assert!(!managers.contains(&"goodput".to_owned()), "{managers:?}");
    });
}

#[test]
fn a_controller_that_fights_is_left_alone_and_the_job_comes_back() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("fought").await;
        let submission = site.submission("fought", 2, 2, 600);
        let key = site.engine.submit(&submission).await.unwrap();
        site.phase(&key, JobPhase::Held).await;
        let name = key.split('.').nth(1).unwrap().to_owned();
        let jobs = site.api::<Job>();
        let suspend = |suspend: bool| Patch::Merge(json!({ "spec": { "suspend": suspend } }));
        // Another controller starts it.
        jobs.patch(&name, &PatchParams::default(), &suspend(false)).await.unwrap();
        let seen = site.snapshot_where("hands off", |seen| job(seen, &key).hands_off).await;
        assert!(job(&seen, &key).note.contains("started it"), "{:?}", job(&seen, &key));
        for action in [
            EngineAction::Stop { grace_s: 1 },
            EngineAction::Place { placement: vec![site.on(0, 2)], share: None },
            EngineAction::Cancel { grace_s: 1 },
        ] {
            let receipts = site.engine.apply(&[Order::named("p", &key, 0, action)]).await.unwrap();
            assert!(matches!(receipts[0].outcome, StepOutcome::Refused { .. }), "{receipts:?}");
        }
        // It is given back, and runs by the daemon's word; then the other controller suspends it.
        jobs.patch(&name, &PatchParams::default(), &suspend(true)).await.unwrap();
        site.snapshot_where("hands on", |seen| !job(seen, &key).hands_off).await;
        site.carry_out(&place("p1", &key, 0, vec![site.on(0, 2)])).await;
        site.begun(&key, 1).await;
        jobs.patch(&name, &PatchParams::default(), &suspend(true)).await.unwrap();
        let seen = site.snapshot_where("hands off again", |seen| job(seen, &key).hands_off).await;
        assert!(job(&seen, &key).note.contains("suspended it"), "{:?}", job(&seen, &key));
        jobs.patch(&name, &PatchParams::default(), &suspend(false)).await.unwrap();
        site.snapshot_where("the job runs again", |seen| {
            !job(seen, &key).hands_off && job(seen, &key).phase == JobPhase::Running
        })
        .await;
    });
}

#[test]
fn two_daemons_start_a_job_once_and_a_pod_is_bound_once() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("once").await;
        let submission = site.submission("once", 2, 2, 600);
        let key = site.engine.submit(&submission).await.unwrap();
        site.phase(&key, JobPhase::Held).await;
        // A second engine has seen the same, and wants the job elsewhere.
        let mut other = goodput_executor::engine::kubernetes::KubernetesEngine::new(&site.settings);
        loop {
            let seen = other.snapshot().await.unwrap();
            if seen.jobs.iter().any(|job| job.key == key) {
                break;
            }
        }
        let one = place("p1", &key, 0, vec![site.on(0, 2)]);
        let two = place("p2", &key, 0, vec![site.on(3, 2)]);
        let (here, there) =
            tokio::join!(site.engine.apply(std::slice::from_ref(&one)), other.apply(std::slice::from_ref(&two)));
        let outcomes = [here.unwrap()[0].outcome.clone(), there.unwrap()[0].outcome.clone()];
        let accepted = outcomes.iter().filter(|outcome| **outcome == StepOutcome::Accepted).count();
        assert_eq!(accepted, 1, "{outcomes:?}");
        let conflict =
            |outcome: &&StepOutcome| matches!(outcome, StepOutcome::Later { reason } if reason.contains("409"));
        assert_eq!(outcomes.iter().filter(conflict).count(), 1, "{outcomes:?}");
        let seen = site.phase(&key, JobPhase::Running).await;
        assert_eq!(job(&seen, &key).starts, 1);

        // The pod is bound: nothing binds it a second time.
        let pods = site.api::<Pod>();
        let pod = pods.list(&ListParams::default()).await.unwrap().items.remove(0);
        let name = pod.metadata.name.unwrap();
        let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
                              "target": { "apiVersion": "v1", "kind": "Node", "name": site.node(1) } });
        let how = PostParams::default();
        let again = pods.create_subresource::<_, serde_json::Value>("binding", &name, &how, &binding);
        let kube::Error::Api(error) = again.await.unwrap_err() else { panic!("no answer") };
        assert_eq!(error.code, 409, "{error:?}");
        assert_eq!(site.kubelets.history().runs.len(), 1);
    });
}

#[test]
fn a_pod_that_something_binds_elsewhere_is_evicted_and_comes_back_where_it_belongs() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("moved").await;
        let submission = site.submission("moved", 4, 4, 600);
        let key = site.engine.submit(&submission).await.unwrap();
        site.phase(&key, JobPhase::Held).await;
        let order = place("p1", &key, 0, vec![site.on(0, 2), site.on(1, 2)]);
        // Started, and its pods wait behind their gates.
        site.engine.apply(std::slice::from_ref(&order)).await.unwrap();
        let pods = site.api::<Pod>();
        let gated = loop {
            let list = pods.list(&ListParams::default()).await.unwrap().items;
            if list.len() == 2 {
                break list;
            }
        };
        let index =
            |pod: &Pod| pod.metadata.annotations.as_ref().unwrap()["batch.kubernetes.io/job-completion-index"].clone();
        let second = gated.iter().find(|pod| index(pod) == "1").unwrap();
        let name = second.metadata.name.clone().unwrap();
        // Another hand takes the gate away, and the pod is bound.
        let open =
            json!({ "spec": { "schedulingGates": null, "nodeSelector": { "kubernetes.io/hostname": site.node(3) } } });
        pods.patch(&name, &PatchParams::default(), &Patch::Merge(open)).await.unwrap();
        let bound = |run: &goodput_testkit::kubelet::PodRun| run.pod == name && run.node == site.node(3);
        super::until("the wrong binding", || site.kubelets.history().runs.iter().any(bound)).await;
        // The pod goes, and another one is made in its place, which the daemon lets to the right node.
        let began = std::time::Instant::now();
        loop {
            let seen = site.engine.snapshot().await.unwrap();
            let placed = job(&seen, &key).attempt.as_ref().map(|attempt| attempt.placement.clone());
            let right = site.kubelets.history().runs.iter().any(|run| run.index == 1 && run.node == site.node(1));
            if right && free(&seen) == [6, 6, 8, 8] && placed == Some(vec![site.on(0, 2), site.on(1, 2)]) {
                break;
            }
            site.engine.maintain().await.unwrap();
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "{seen:#?}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(site.kubelets.history().doubled(), []);
    });
}

/// A Job with a program that takes pods as they come: the pods that stay run on, and the others come and go.
#[test]
fn a_job_is_resized_in_place_and_its_first_pod_stays() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("inplace").await;
        let submission = site.submission("stays", 2, 4, 400);
        let key = site.engine.submit(&submission).await.unwrap();
        site.phase(&key, JobPhase::Held).await;
        let name = key.split('.').nth(1).unwrap().to_owned();
        let notes = json!({ "goodput.dev/resize": "in-place", "goodput.dev/gpus-per-pod": "1" });
        let jobs = site.api::<Job>();
        let noted = Patch::Merge(json!({ "metadata": { "annotations": notes } }));
        jobs.patch(&name, &PatchParams::default(), &noted).await.unwrap();
        let on = |site: &Site, nodes: u32| (0..nodes).map(|at| site.on(at, 1)).collect::<Vec<_>>();
        let two = place("p1", &key, 0, on(&site, 2));
        site.carry_out(&two).await;
        site.begun(&key, 2).await;
        let seen = site.engine.snapshot().await.unwrap();
        assert_eq!((job(&seen, &key).starts, free(&seen)), (1, vec![7, 7, 8, 8]));
        let pods_of = |site: &Site, index: u32| {
            let runs = site.kubelets.history().runs.into_iter();
            runs.filter(move |run| run.index == index).map(|run| (run.pod, run.ended_ms)).collect::<Vec<_>>()
        };
        let first = [pods_of(&site, 0), pods_of(&site, 1)];
        assert!(first.iter().all(|runs| runs.len() == 1 && runs[0].1.is_none()), "{first:?}");

        let four = EngineAction::Resize { placement: on(&site, 4), grace_s: 5 };
        let seen = site.carry_out(&Order::named("p2", &key, 1, four)).await;
        site.begun(&key, 4).await;
        assert_eq!((job(&seen, &key).starts, job(&seen, &key).failures, free(&seen)), (2, 0, vec![7; 4]));
        let now = [pods_of(&site, 0), pods_of(&site, 1)];
        assert_eq!(now, first, "the pods that stay are the pods that ran");
        assert_eq!((pods_of(&site, 2).len(), pods_of(&site, 3).len()), (1, 1));

        let shrink = EngineAction::Resize { placement: on(&site, 2), grace_s: 5 };
        let seen = site.carry_out(&Order::named("p3", &key, 2, shrink)).await;
        assert_eq!((job(&seen, &key).starts, job(&seen, &key).failures, free(&seen)), (3, 0, vec![7, 7, 8, 8]));
        let now = [pods_of(&site, 0), pods_of(&site, 1)];
        assert_eq!(now, first, "the pods that stay are the pods that ran");
        assert!(pods_of(&site, 2)[0].1.is_some() && pods_of(&site, 3)[0].1.is_some(), "the others have gone");
        assert_eq!(site.said(&key, "stop"), Vec::<String>::new(), "rank 0 was never told to go");

        let seen = site.phase(&key, JobPhase::Done).await;
        assert_eq!((free(&seen), job(&seen, &key).failures), (vec![8; 4], 0));
        assert_eq!((site.said(&key, "start").len(), site.said(&key, "end").len()), (4, 1));
        assert_eq!(site.kubelets.history().doubled(), []);
        assert_eq!(site.kubelets.history().runs.len(), 4, "nothing was started again");
    });
}
