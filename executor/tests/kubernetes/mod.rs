//! Real Kubernetes: a control plane of one's own (etcd, API server, job controller, kube-scheduler)
//! with four nodes of eight accelerators, whose kubelets are played with real processes.
//!
//! Where the control plane is not built these tests say so and pass, but where `CI` is set they
//! fail; `cargo xtask test` builds it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a test that could not run says so")]

mod answers;
mod drills;
mod orders;
mod rights;

use std::path::Path;
use std::time::{Duration, Instant};

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{ClusterSnapshot, Engine, JobPhase, JobSeen, OnNode, Order, OrderProgress, Submission};
use goodput_testkit::kubelet::{Kubelets, add_nodes};
use goodput_testkit::kubernetes::{ControlPlane, missing};
use kube::Client;
use tempfile::TempDir;

/// Does work in ticks of a tenth of a second, faster on more accelerators; checkpoints when told to
/// stop and at the end. Rank 0 alone writes.
const JOB: &str = r#"#!/bin/sh
state=$DIR/$SCHED_JOB_ID.ckpt; log=$DIR/$SCHED_JOB_ID.log
done=$(cat $state 2>/dev/null || echo 0)
keep() { [ $NODE_RANK -gt 0 ] || { echo $done > $state.new; mv $state.new $state; }; }
say() { echo "$1 $(date +%s%3N) $SCHED_ATTEMPT $SCHED_NODE ${CUDA_VISIBLE_DEVICES:-none} $done $NODE_RANK/$NNODES $MASTER_ADDR" >> $log; }
say start
trap 'keep; say stop; exit 143' TERM
while [ $done -lt $WORK ]; do sleep 0.1; done=$((done + SCHED_GPUS)); done
keep
say end
"#;

/// A cluster with an engine. The kubelets are dropped before the control plane.
struct Site {
    engine: KubernetesEngine,
    client: Client,
    kubelets: Kubelets,
    plane: ControlPlane,
    directory: TempDir,
}

/// Where there is no control plane that is said loudly.
fn buildable() -> bool {
    let Some(reason) = missing() else { return true };
    assert!(std::env::var_os("CI").is_none(), "{reason}");
    eprintln!("NOT TESTED: {reason}");
    false
}

impl Site {
    async fn start() -> Self {
        Self::of(4, 8).await
    }

    async fn of(nodes: u32, gpus: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let plane = ControlPlane::start(&directory.path().join("kubernetes")).unwrap();
        let client = ControlPlane::client(&plane.kubeconfig()).await.unwrap();
        add_nodes(&client, nodes, gpus, "NVIDIA-A100-SXM4-80GB").await.unwrap();
        let kubelets = Kubelets::play(client.clone(), gpus);
        std::fs::write(directory.path().join("job.sh"), JOB).unwrap();
        let engine = KubernetesEngine::new(&plane.settings());
        Self { engine, client, kubelets, plane, directory }
    }

    fn submission(&self, name: &str, gpus: u32, max: u32, ticks: u32) -> Submission {
        submission(self.directory.path(), name, gpus, max, ticks)
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

fn submission(directory: &Path, name: &str, gpus: u32, max: u32, ticks: u32) -> Submission {
    let elasticity = if max > gpus { Elasticity::Elastic { min: 1, max } } else { Elasticity::Rigid };
    let request = JobRequest { name: name.into(), gpus, elasticity, ..JobRequest::default() };
    let place = directory.display().to_string();
    let work = Work::Fixed { duration: SimTime::from_millis(i64::from(ticks) * 100) };
    let command = vec!["/bin/sh".into(), format!("{place}/job.sh")];
    Submission {
        environment: [("DIR".to_string(), place), ("WORK".to_string(), (ticks * gpus).to_string())].into(),
        directory: Some(directory.into()),
        grace_s: 5,
        ..Submission::new(JobSpec { request, work }, command)
    }
}

fn on(node: &str, gpus: u32) -> OnNode {
    OnNode { node: node.into(), gpus, ..OnNode::default() }
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
