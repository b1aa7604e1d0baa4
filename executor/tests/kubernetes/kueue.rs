//! Kueue's own controllers and scheduler beside the daemon: Workloads as jobs of the policy.

use std::sync::OnceLock;

use goodput_configs::live::deployment::Mode;
use goodput_configs::live::engine::{EngineConfig, KubernetesConfig, KueueConfig, KueueRole};
use goodput_executor::daemon::interface::report::LiveReport;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::kubernetes::kueue::KueueWorkload;
use goodput_executor::engine::{ClusterSnapshot, Engine, EngineAction, JobPhase, JobSeen, OnNode, Order, StepOutcome};
use goodput_executor::machine::wall_ms;
use goodput_testkit::kubelet::SITE;
use goodput_testkit::kueue::PrivateKueue;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::drills::{open, settings};
use super::{Site, buildable, free, runtime, shared};

/// Whether Kueue can be started; where it cannot, that is said loudly.
pub(super) fn with_kueue() -> bool {
    static KUEUE: OnceLock<()> = OnceLock::new();
    if !buildable() {
        return false;
    }
    if let Some(reason) = goodput_testkit::kueue::missing() {
        goodput_testkit::not_tested(reason);
        return false;
    }
    KUEUE.get_or_init(|| {
        let (send, started) = std::sync::mpsc::channel();
        // It ends with the thread that started it, so that one stays.
        std::thread::spawn(move || {
            let running = PrivateKueue::start(shared());
            send.send(running.as_ref().map(|_| ()).map_err(ToString::to_string)).unwrap();
            loop {
                std::thread::park();
            }
        });
        started.recv().unwrap().unwrap();
    });
    true
}

/// Applies an object as a user does.
pub(super) fn apply(site: &Site, object: &Value) {
    let file = site.directory.path().join("object.json");
    std::fs::write(&file, object.to_string()).unwrap();
    let applied = shared().kubectl().args(["apply", "-n", &site.name, "-f"]).arg(&file).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
}

/// Queues of the site with a quota of accelerators; `check` demands the daemon's word.
pub(super) fn queues(site: &Site, quota: u32, check: bool) {
    let name = &site.name;
    let kueue = |kind: &str, spec: Value| json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": { "name": name }, "spec": spec });
    let covered = json!([{ "coveredResources": ["nvidia.com/gpu"], "flavors": [{
        "name": name, "resources": [{ "name": "nvidia.com/gpu", "nominalQuota": quota }] }] }]);
    let mut cluster = json!({ "namespaceSelector": {}, "resourceGroups": covered });
    apply(site, &kueue("ResourceFlavor", json!({})));
    if check {
        apply(site, &kueue("AdmissionCheck", json!({ "controllerName": controller(site) })));
        cluster["admissionChecksStrategy"] = json!({ "admissionChecks": [{ "name": name }] });
    }
    apply(site, &kueue("ClusterQueue", cluster));
    apply(site, &kueue("LocalQueue", json!({ "clusterQueue": name })));
}

/// Each site has a controller of its own.
fn controller(site: &Site) -> String {
    format!("goodput.dev/{}", site.name)
}

pub(super) fn settings_of(site: &Site, role: KueueRole) -> Option<KueueConfig> {
    Some(KueueConfig { role, queues: vec![site.name.clone()], controller: controller(site) })
}

fn engine(site: &Site, role: KueueRole) -> KubernetesEngine {
    KubernetesEngine::new(&KubernetesConfig { kueue: settings_of(site, role), ..site.settings.clone() })
}

/// A Job for Kueue of `pods` pods with two accelerators each, which works for `ticks` tenths of a second.
pub(super) fn hand_in(site: &Site, name: &str, pods: u32, ticks: u32) {
    let noted = |name: &str, annotation: &str| {
        let path = format!("metadata.annotations['{annotation}']");
        json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } })
    };
    let directory = site.directory.path().display().to_string();
    let env = json!([
        { "name": "DIR", "value": directory }, { "name": "WORK", "value": (ticks * 2 * pods).to_string() },
        { "name": "SCHED_GPUS", "value": (2 * pods).to_string() },
        { "name": "NNODES", "value": pods.to_string() },
        { "name": "SCHED_NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
        { "name": "SCHED_JOB_ID", "value": name },
        noted("SCHED_ATTEMPT", "goodput.dev/attempt"),
        noted("NODE_RANK", "batch.kubernetes.io/job-completion-index"),
    ]);
    let gate = if pods > 1 { json!([{ "name": "goodput.dev/placement" }]) } else { Value::Null };
    apply(
        site,
        &json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": name, "labels": { "kueue.x-k8s.io/queue-name": site.name } },
            "spec": {
                "suspend": true, "completionMode": "Indexed", "completions": pods, "parallelism": pods,
                "podReplacementPolicy": "Failed", "backoffLimit": 6,
                "template": { "spec": {
                    "restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "schedulingGates": gate,
                    // Other tests have nodes beside these.
                    "nodeSelector": { SITE: site.name },
                    "containers": [{
                        "name": "train", "image": "mine:1", "command": ["/bin/sh", format!("{directory}/job.sh")],
                        "env": env, "resources": { "limits": { "nvidia.com/gpu": "2" } },
                    }],
                } },
            },
        }),
    );
}

pub(super) fn named<'a>(snapshot: &'a ClusterSnapshot, name: &str) -> Option<&'a JobSeen> {
    snapshot.jobs.iter().find(|job| job.spec.request.name == name)
}

/// Waits until the job called `name` satisfies `wanted`; upkeep is done meanwhile, as a daemon does it.
pub(super) async fn seen(
    site: &mut Site,
    name: &str,
    what: &str,
    wanted: impl Fn(&JobSeen) -> bool,
) -> ClusterSnapshot {
    let began = std::time::Instant::now();
    loop {
        let snapshot = site.engine.snapshot().await.unwrap();
        if named(&snapshot, name).is_some_and(&wanted) {
            return snapshot;
        }
        site.engine.maintain().await.unwrap();
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{what} of {name} never comes: {snapshot:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

pub(super) fn place(plan: &str, job: &JobSeen, placement: Vec<OnNode>) -> Order {
    Order::named(plan, &job.key, job.starts, EngineAction::Place { placement, share: None })
}

#[test]
fn what_kueue_admits_and_what_waits_for_quota_are_seen_and_left_alone() {
    if !with_kueue() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("kueue-seen").await;
        queues(&site, 2, false);
        site.engine = engine(&site, KueueRole::Observe);
        hand_in(&site, "first", 1, 600);
        let snapshot = seen(&mut site, "first", "the run", |job| job.phase == JobPhase::Running).await;
        let first = named(&snapshot, "first").unwrap().clone();
        assert_eq!((first.tenant.as_str(), first.hands_off, first.spec.request.gpus), ("kueue-seen", false, 2));
        assert_eq!(free(&snapshot).iter().sum::<u32>(), 30, "its pods hold their accelerators");
        assert_eq!(snapshot.nodes.iter().map(|node| node.gpus).sum::<u32>(), 32, "and they are jobs, not foreign");

        hand_in(&site, "second", 1, 600);
        let snapshot = seen(&mut site, "second", "the wait", |job| job.phase == JobPhase::Held).await;
        let second = named(&snapshot, "second").unwrap().clone();
        assert!(!second.hands_off, "the policy sees that it waits, and there is room for it");
        let stop = Order::named("p", &first.key, first.starts, EngineAction::Stop { grace_s: 5 });
        let receipts = site.engine.apply(&[place("p", &second, vec![site.on(0, 2)]), stop]).await.unwrap();
        assert!(
            receipts.iter().all(
                |receipt| matches!(&receipt.outcome, StepOutcome::Refused { reason } if reason.contains("observes"))
            ),
            "{receipts:?}"
        );

        // A daemon that observes reports what the policy would have admitted.
        let mut settings = settings(&site, "name = \"fifo\"");
        let EngineConfig::Kubernetes(kubernetes) = &mut settings.engine else { panic!("it drives Kubernetes") };
        kubernetes.kueue = settings_of(&site, KueueRole::Observe);
        settings.mode = Mode::Observe;
        let mut daemon = open(&settings);
        let state = site.directory.path().join("state");
        let began = std::time::Instant::now();
        let report = loop {
            assert_eq!(daemon.cycle().await.map(|report| report.open).unwrap_or(0), 0, "nothing is done");
            let report = LiveReport::read(&state, 14.0, wall_ms()).unwrap();
            if report.kept_back.orders.contains_key("place") {
                break report;
            }
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "{report:?}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        };
        assert_eq!(report.kept_back.orders["place"], 1, "the Workload that waits for quota: {report:?}");
        assert_eq!(daemon.status().lock().unwrap().queue.len(), 2, "both are rows of the queue");

        let workloads = site.api::<KueueWorkload>().list(&ListParams::default()).await.unwrap();
        let managers = workloads.items.iter().flat_map(|workload| workload.metadata.managed_fields.iter().flatten());
        let managers: Vec<&str> = managers.filter_map(|field| field.manager.as_deref()).collect();
        assert!(!managers.is_empty() && !managers.contains(&"goodput"), "{managers:?}");
    });
}

#[test]
fn a_workload_starts_where_and_when_its_check_is_ready_and_goes_back_to_its_queue() {
    if !with_kueue() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("kueue-acts").await;
        queues(&site, 32, true);
        site.engine = engine(&site, KueueRole::Check);
        hand_in(&site, "one", 1, 60);
        let snapshot = seen(&mut site, "one", "quota", |job| !job.hands_off).await;
        let job = named(&snapshot, "one").unwrap();
        assert_eq!((job.phase, job.starts), (JobPhase::Held, 0), "Kueue waits for the word of the daemon");
        assert!(site.kubelets.history().runs.is_empty());

        // A second daemon that has seen the same wants it elsewhere: one of the two is told of a conflict.
        let mut other = engine(&site, KueueRole::Check);
        let began = std::time::Instant::now();
        while named(&other.snapshot().await.unwrap(), "one").is_none_or(|job| job.hands_off) {
            assert!(began.elapsed() < std::time::Duration::from_secs(60));
        }
        let (here, there) = ([place("p1", job, vec![site.on(2, 2)])], [place("p2", job, vec![site.on(3, 2)])]);
        let (one, two) = tokio::join!(site.engine.apply(&here), other.apply(&there));
        let outcomes = [one.unwrap()[0].outcome.clone(), two.unwrap()[0].outcome.clone()];
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == StepOutcome::Accepted).count(), 1, "{outcomes:?}");
        let at = if outcomes[0] == StepOutcome::Accepted { 2 } else { 3 };
        let snapshot = seen(&mut site, "one", "the run", |job| job.phase == JobPhase::Running).await;
        let job = named(&snapshot, "one").unwrap().clone();
        assert_eq!(job.attempt.as_ref().map(|attempt| attempt.placement.clone()), Some(vec![site.on(at, 2)]));
        assert_eq!((job.starts, free(&snapshot)[at as usize]), (1, 6));
        site.begun("one", 1).await;

        let stop = Order::named("p3", &job.key, job.starts, EngineAction::Stop { grace_s: 5 });
        let snapshot = site.carry_out(&stop).await;
        assert_eq!(free(&snapshot), [8; 4]);
        let snapshot = seen(&mut site, "one", "quota again", |job| job.phase == JobPhase::Held && !job.hands_off).await;
        let job = named(&snapshot, "one").unwrap().clone();
        assert_eq!(site.said("one", "stop").len(), 1, "it was told to go, and left a checkpoint");
        let wrong = site.engine.apply(&[place("p4", &job, vec![site.on(0, 4)])]).await.unwrap();
        assert!(
            matches!(&wrong[0].outcome, StepOutcome::Refused { reason } if reason.contains("reserved 2")),
            "{wrong:?}"
        );
        site.carry_out(&place("p5", &job, vec![site.on(0, 2)])).await;
        site.begun("one", 2).await;
        let starts = site.said("one", "start");
        assert!(starts[1].contains(" 1 kueue-acts-0 "), "the second attempt runs where it belongs: {starts:?}");
        seen(&mut site, "one", "its end", |job| job.phase == JobPhase::Done).await;
        assert_eq!(site.said("one", "end").len(), 1);

        // Two pods on two nodes wait behind their gates until the daemon names the nodes.
        hand_in(&site, "pair", 2, 600);
        let snapshot = seen(&mut site, "pair", "quota", |job| !job.hands_off).await;
        let order = place("p6", named(&snapshot, "pair").unwrap(), vec![site.on(1, 2), site.on(3, 2)]);
        let snapshot = site.carry_out(&order).await;
        assert_eq!(free(&snapshot), [8, 6, 8, 6]);
        let job = named(&snapshot, "pair").unwrap().clone();
        let cancel = Order::named("p7", &job.key, job.starts, EngineAction::Cancel { grace_s: 5 });
        let snapshot = site.carry_out(&cancel).await;
        assert_eq!(named(&snapshot, "pair").unwrap().phase, JobPhase::Cancelled);
        let workloads = site.api::<KueueWorkload>().list(&ListParams::default()).await.unwrap();
        let off = workloads.items.iter().filter(|workload| workload.spec.active == Some(false)).count();
        assert_eq!(off, 1, "Kueue has switched it off, and its user can switch it on again");
        assert_eq!(free(&snapshot), [8; 4]);
        assert_eq!(site.kubelets.history().doubled(), []);
        let jobs = site.api::<Job>().list(&ListParams::default()).await.unwrap();
        assert_eq!(jobs.items.len(), 2, "Jobs stay their users'");
        assert!(
            site.api::<Pod>()
                .list(&ListParams::default())
                .await
                .unwrap()
                .items
                .iter()
                .all(|pod| { pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded") })
        );
    });
}

#[test]
fn a_policy_runs_the_workloads_of_a_queue_one_after_the_other() {
    if !with_kueue() {
        return;
    }
    runtime().block_on(async {
        let site = Site::start("kueue-policy").await;
        queues(&site, 1000, true);
        // Quota for all of them, and room for sixteen at a time.
        for index in 0..20 {
            hand_in(&site, &format!("job-{index}"), 1, 10);
        }
        let mut settings = settings(&site, "name = \"fifo\"");
        let EngineConfig::Kubernetes(kubernetes) = &mut settings.engine else { panic!("it drives Kubernetes") };
        kubernetes.kueue = settings_of(&site, KueueRole::Check);
        let mut daemon = open(&settings);
        let began = std::time::Instant::now();
        while (0..20).any(|index| site.said(&format!("job-{index}"), "end").is_empty()) {
            let _ = daemon.cycle().await;
            assert!(
                began.elapsed() < std::time::Duration::from_secs(120),
                "{:?}",
                daemon.status().lock().unwrap().queue
            );
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        let history = site.kubelets.history();
        assert_eq!((history.runs.len(), history.doubled()), (20, Vec::new()));
        assert!(history.crowded.is_empty(), "{:?}", history.crowded);
    });
}
