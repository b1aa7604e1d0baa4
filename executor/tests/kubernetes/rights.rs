//! Rights of the daemon's service account: what the shipped manifests give suffices, and no more is
//! given.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use goodput_configs::live::deployment::{Deployment, Mode};
use goodput_configs::live::engine::{KubernetesConfig, KueueRole};
use goodput_configs::live::leader::KubernetesLeaseConfig;
use goodput_configs::reader;
use goodput_executor::daemon::durability::leader::lease_mode::LeaseMode;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, Order, StepOutcome};
use goodput_testkit::kubernetes::ControlPlane;
use k8s_openapi::api::apps::v1::Deployment as Deployed;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;

use super::{Site, buildable, job, kueue, runtime, shared};

/// Held while manifests are applied: of two that make one object at a time, one is refused.
static APPLYING: Mutex<()> = Mutex::new(());

/// Applies shipped manifests.
fn apply(files: &[&str]) {
    let _applying = APPLYING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes");
    for file in files {
        let applied = shared().kubectl().arg("apply").arg("-f").arg(folder.join(file)).output().unwrap();
        assert!(applied.status.success(), "{file}: {}", String::from_utf8_lossy(&applied.stderr));
    }
}

/// Whether the daemon's account may do something.
fn may(what: &[&str]) -> bool {
    let mut kubectl = shared().kubectl();
    kubectl.args(["auth", "can-i"]).args(what).arg("--as=system:serviceaccount:goodput-system:goodput");
    kubectl.output().unwrap().status.success()
}

#[test]
fn the_shipped_account_observes_and_acts_and_can_do_no_more() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("rights").await;
        apply(&["namespace.yaml", "rbac.yaml"]);
        let token = ["create", "token", "goodput", "-n", "goodput-system", "--duration=1h"];
        let token = shared().kubectl().args(token).output().unwrap();
        assert!(token.status.success(), "{}", String::from_utf8_lossy(&token.stderr));
        let token = String::from_utf8(token.stdout).unwrap();
        let file = site.directory.path().join("daemon.kubeconfig");
        std::fs::write(&file, shared().kubeconfig_text(token.trim())).unwrap();
        let submission = site.submission("seen", 2, 2, 600);
        let key = site.engine.submit(&submission).await.unwrap();
        site.phase(&key, JobPhase::Held).await;

        // With the right to observe it observes, and the API server itself refuses every change.
        site.engine =
            KubernetesEngine::new(&KubernetesConfig { kubeconfig: Some(file.clone()), ..site.settings.clone() });
        let seen = site.phase(&key, JobPhase::Held).await;
        assert_eq!(seen.nodes.len(), 4);
        let place = |plan: &str, starts, on| {
            Order::named(plan, &key, starts, EngineAction::Place { placement: vec![on], share: None })
        };
        let receipts = site.engine.apply(&[place("p1", 0, site.on(0, 2))]).await.unwrap();
        let forbidden = |reason: &str| reason.contains("403") && reason.contains("goodput");
        assert!(matches!(&receipts[0].outcome, StepOutcome::Refused { reason } if forbidden(reason)), "{receipts:?}");
        let refused = site.submission("refused", 1, 1, 1);
        assert!(site.engine.submit(&refused).await.is_err());

        // With leave to act every verb of the daemon passes.
        apply(&["act.yaml"]);
        site.carry_out(&place("p2", 0, site.on(0, 2))).await;
        let spread = EngineAction::Resize { placement: vec![site.on(1, 1), site.on(2, 1)], grace_s: 5 };
        site.carry_out(&Order::named("p3", &key, 1, spread)).await;
        site.engine.maintain().await.unwrap();
        let drain = EngineAction::Drain { node: site.node(3), reason: "test".into() };
        site.carry_out(&Order::named("p4", "", 0, drain)).await;
        let cancel = Order::named("p5", &key, 2, EngineAction::Cancel { grace_s: 1 });
        let seen = site.carry_out(&cancel).await;
        assert_eq!(job(&seen, &key).phase, JobPhase::Cancelled);
        let submission = site.submission("own", 1, 1, 1);
        site.engine.submit(&submission).await.unwrap();

        // The lease and the mode are written with the rights to observe.
        let config = KubernetesLeaseConfig { kubeconfig: Some(file.clone()), ..KubernetesLeaseConfig::default() };
        let mut mode = LeaseMode::new(&config);
        mode.set(Mode::Canary).await.unwrap();
        mode.set(Mode::Observe).await.unwrap();
        assert_eq!(mode.mode().await, Ok(Some(Mode::Observe)));

        // Workloads of Kueue need one role more.
        if kueue::with_kueue() {
            kueue::queues(&site, 8, true);
            let settings = KubernetesConfig { kubeconfig: Some(file), ..site.settings.clone() };
            let role = kueue::settings_of(&site, KueueRole::Check);
            site.engine = KubernetesEngine::new(&KubernetesConfig { kueue: role, ..settings });
            kueue::hand_in(&site, "counted", 1, 600);
            assert!(!may(&["patch", "workloads.kueue.x-k8s.io"]), "it may act on Workloads already");
            apply(&["kueue.yaml"]);
            let seen = kueue::seen(&mut site, "counted", "quota", |job| !job.hands_off).await;
            let counted = kueue::named(&seen, "counted").unwrap();
            let placed = kueue::place("p6", counted, vec![site.on(0, 2)]);
            site.carry_out(&placed).await;
        }

        for what in [
            &["get", "secrets"][..],
            &["list", "configmaps", "-A"],
            &["create", "pods"],
            &["delete", "pods"],
            &["create", "pods", "--subresource=binding"],
            &["create", "pods", "--subresource=exec"],
            &["update", "nodes", "--subresource=status"],
            &["delete", "nodes"],
            &["update", "jobs", "--subresource=status"],
            &["delete", "services"],
            &["create", "clusterrolebindings"],
            &["impersonate", "users"],
            &["create", "workloads.kueue.x-k8s.io"],
            &["delete", "workloads.kueue.x-k8s.io"],
            &["patch", "clusterqueues.kueue.x-k8s.io"],
        ] {
            assert!(!may(what), "it may {what:?}");
        }
        assert!(may(&["patch", "jobs"]), "the question itself works");
        assert!(may(&["patch", "jobs", "--subresource=status"]), "an end is counted by it");
    });
}

/// The manifests are what the API server takes, the daemon's file is one that the daemon reads, and its pod keeps to
/// the restricted standard that its namespace demands.
#[test]
fn the_shipped_manifests_are_taken_and_the_pod_of_the_daemon_is_restricted() {
    if !buildable() {
        return;
    }
    let text = include_str!("../../deploy/kubernetes/kubernetes.toml");
    let shipped: Deployment = reader::parse("kubernetes.toml", text).unwrap();
    assert_eq!(shipped.mode, Mode::Observe);
    assert!(shipped.leader.outside());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes");
    let applying = APPLYING.lock().unwrap_or_else(PoisonError::into_inner);
    let applied = shared().kubectl().args(["apply", "--validate=strict", "-k"]).arg(&folder).output().unwrap();
    drop(applying);
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    // Monitor and rules are what the operator of Prometheus takes, by the definitions of the operator itself.
    match goodput_testkit::kueue::prometheus_operator() {
        None => goodput_testkit::not_tested(
            "definitions of the Prometheus operator are missing; `cargo xtask test` fetches them",
        ),
        Some(definitions) => {
            definitions.iter().for_each(|definition| shared().define(definition).unwrap());
            let monitoring = folder.join("monitoring");
            let applied =
                shared().kubectl().args(["apply", "--validate=strict", "-k"]).arg(&monitoring).output().unwrap();
            assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
            for (name, right, wrong) in
                [("servicemonitor.yaml", "endpoints:", "endpoint:"), ("prometheusrule.yaml", "expr:", "expression:")]
            {
                let wrong = std::fs::read_to_string(monitoring.join(name)).unwrap().replace(right, wrong);
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(&file, wrong).unwrap();
                let mut kubectl = shared().kubectl();
                let refused = kubectl.args(["apply", "--validate=strict", "-f"]).arg(file.path()).output().unwrap();
                assert!(!refused.status.success(), "{name}: the definition is in force");
            }
        }
    }
    runtime().block_on(async {
        let client = ControlPlane::client(&shared().kubeconfig()).await.unwrap();
        let deployments: Api<Deployed> = Api::namespaced(client.clone(), "goodput-system");
        let template = deployments.get("goodput").await.unwrap().spec.unwrap().template;
        let mut pod = Pod { spec: template.spec, ..Pod::default() };
        pod.metadata.name = Some("goodput-0".into());
        let pods: Api<Pod> = Api::namespaced(client, "goodput-system");
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        pods.create(&dry, &pod).await.unwrap();
        pod.spec.as_mut().unwrap().host_network = Some(true);
        let refused = pods.create(&dry, &pod).await.unwrap_err();
        assert!(refused.to_string().contains("PodSecurity"), "the standard is in force: {refused}");
    });
}
