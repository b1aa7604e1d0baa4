//! Real Kubernetes: a control plane (etcd, API server, job controller, kube-scheduler) that the tests share.
//! Each test has a namespace and four nodes of eight accelerators. Kubelets are played, with real processes.
//!
//! Where the control plane is not built these tests say so and pass; `cargo xtask test` builds it with Go.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod answers;
mod claims;
mod drills;
mod gaps;
mod kueue;
mod lease;
mod orders;
mod reports;
mod rights;
mod submissions;

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use goodput_configs::live::engine::KubernetesConfig;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{ClusterSnapshot, Engine, JobPhase, JobSeen, OnNode, Order, OrderProgress, Submission};
use goodput_testkit::jobs::scripted;
use goodput_testkit::kubelet::{Kubelets, SITE, add_nodes};
use goodput_testkit::kubernetes::{ControlPlane, missing};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use tempfile::TempDir;

/// Program that works in ticks of a tenth of a second, faster on more accelerators. Rank 0 writes a checkpoint when
/// the program is told to stop and at the end; the other ranks go with it.
const JOB: &str = r#"#!/bin/sh
state=$DIR/$SCHED_JOB_ID.ckpt; log=$DIR/$SCHED_JOB_ID.log
done=$(cat $state 2>/dev/null || echo 0)
say() { echo "$1 $(date +%s%3N) $SCHED_ATTEMPT $SCHED_NODE ${CUDA_VISIBLE_DEVICES:-none} $done $NODE_RANK/$NNODES $MASTER_ADDR" >> $log; }
say start
if [ $NODE_RANK -gt 0 ]; then
    trap 'exit 143' TERM
    until [ $(cat $state 2>/dev/null || echo 0) -ge $WORK ]; do sleep 0.1; done
    exit 0
fi
keep() { echo $done > $state.new; mv $state.new $state; }
trap 'keep; say stop; exit 143' TERM
while [ $done -lt $WORK ]; do sleep 0.1; done=$((done + SCHED_GPUS)); done
# From here on the job ends well, whatever it is told.
trap '' TERM
keep
say end
"#;

/// A part of a control plane with an engine: a namespace and nodes of its own.
struct Site {
    engine: KubernetesEngine,
    client: Client,
    kubelets: Kubelets,
    name: String,
    settings: KubernetesConfig,
    directory: TempDir,
}

/// Whether a control plane can be started; where it cannot, that is said loudly.
fn buildable() -> bool {
    let Some(reason) = missing() else { return true };
    goodput_testkit::not_tested(reason);
    false
}

/// The control plane that the tests of this program share, each with a site of its own.
fn shared() -> &'static ControlPlane {
    static PLANE: OnceLock<ControlPlane> = OnceLock::new();
    PLANE.get_or_init(|| {
        let (send, started) = std::sync::mpsc::channel();
        // Its programs end with the thread that started them, so that one stays.
        std::thread::spawn(move || {
            let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubernetes");
            std::fs::create_dir_all(&directory).unwrap();
            // Another run of the tests is awaited, and what it left behind is taken away.
            let lock = std::fs::File::create(directory.join("lock")).unwrap();
            lock.lock().unwrap();
            let _ = std::fs::remove_dir_all(directory.join("plane"));
            send.send(ControlPlane::start(&directory.join("plane"))).unwrap();
            loop {
                std::thread::park();
            }
        });
        started.recv().unwrap().unwrap()
    })
}

impl Site {
    /// A site of four nodes with eight accelerators on the shared control plane.
    async fn start(name: &str) -> Self {
        Self::of(shared(), name, 4, 8).await
    }

    async fn of(plane: &ControlPlane, name: &str, nodes: u32, gpus: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let client = ControlPlane::client(&plane.kubeconfig()).await.unwrap();
        let namespace = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        add_nodes(&client, name, nodes, gpus, "NVIDIA-A100-SXM4-80GB").await.unwrap();
        // Pods need the account that a controller makes in each namespace.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
        let began = Instant::now();
        while accounts.get("default").await.is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "no service account");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let kubelets = Kubelets::play(client.clone(), name, gpus);
        std::fs::write(directory.path().join("job.sh"), JOB).unwrap();
        let settings = KubernetesConfig {
            namespaces: vec![name.into()],
            namespace: name.into(),
            nodes: [(SITE.into(), name.into())].into(),
            ..plane.settings()
        };
        let engine = KubernetesEngine::new(&settings);
        Self { engine, client, kubelets, name: name.into(), settings, directory }
    }

    /// Name of the node `at`.
    fn node(&self, at: u32) -> String {
        format!("{}-{at}", self.name)
    }

    /// Accelerators of the node `at`.
    fn on(&self, at: u32, gpus: u32) -> OnNode {
        OnNode { node: self.node(at), gpus, ..OnNode::default() }
    }

    /// Objects of one kind in the namespace of the site.
    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    fn submission(&self, name: &str, gpus: u32, max: u32, ticks: u32) -> Submission {
        scripted(self.directory.path(), name, gpus, max, ticks)
    }

    /// Lines of the log of a job that begin with `word`.
    fn said(&self, key: &str, word: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join(format!("{key}.log"))).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(word)).map(str::to_owned).collect()
    }

    /// Waits until the program itself has begun so often.
    async fn begun(&self, key: &str, count: usize) {
        until(&format!("start {count} of {key}"), || self.said(key, "start").len() >= count).await;
    }

    /// Looks until a snapshot satisfies `wanted`.
    async fn snapshot_where(&mut self, what: &str, wanted: impl Fn(&ClusterSnapshot) -> bool) -> ClusterSnapshot {
        let began = Instant::now();
        loop {
            let snapshot = self.engine.snapshot().await.unwrap();
            if wanted(&snapshot) {
                return snapshot;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{what} never comes: {snapshot:#?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until a job is in a phase.
    async fn phase(&mut self, key: &str, phase: JobPhase) -> ClusterSnapshot {
        let is = |snapshot: &ClusterSnapshot| snapshot.jobs.iter().any(|job| job.key == key && job.phase == phase);
        self.snapshot_where(&format!("{phase:?} of {key}"), is).await
    }

    /// Applies an order again and again until it is carried out.
    async fn carry_out(&mut self, order: &Order) -> ClusterSnapshot {
        let began = Instant::now();
        loop {
            let snapshot = self.engine.snapshot().await.unwrap();
            match self.engine.verify(order, &snapshot) {
                OrderProgress::Done => return snapshot,
                OrderProgress::Lost { reason } => panic!("{order:?}: {reason}: {:#?}", snapshot.jobs),
                OrderProgress::Pending => {}
            }
            let receipts = self.engine.apply(std::slice::from_ref(order)).await.unwrap();
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "not carried out: {order:?}: {receipts:?} {snapshot:#?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn job<'a>(snapshot: &'a ClusterSnapshot, key: &str) -> &'a JobSeen {
    snapshot.jobs.iter().find(|job| job.key == key).unwrap()
}

fn free(snapshot: &ClusterSnapshot) -> Vec<u32> {
    snapshot.nodes.iter().map(|node| node.free).collect()
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} never comes");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
