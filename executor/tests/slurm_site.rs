//! A private Slurm for tests: four nodes with eight accelerators each, and a job that trains there.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a test that could not run says so")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::reader;
use goodput_env::tenant::Tenants;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::slurm::{FactsKey, SlurmEngine};
use goodput_executor::engine::{ClusterSnapshot, Engine, JobSeen, OnNode, Order, OrderProgress, Submission};
use goodput_testkit::jobs::scripted;
use goodput_testkit::slurm::{PrivateCluster, PrivateError, SlurmInstall};

/// Does work in ticks of a tenth of a second, faster on more accelerators; checkpoints when told to
/// stop and at the end. The time of its file `beat` is when it was last alive.
const JOB: &str = r#"#!/bin/sh
state=$DIR/$SCHED_JOB_ID.ckpt; log=$DIR/$SCHED_JOB_ID.log
done=$(cat $state 2>/dev/null || echo 0)
first() { [ "$NODE_RANK" -eq 0 ]; }
say() { first && echo "$1 $(date +%s%3N) $SCHED_ATTEMPT $SLURMD_NODENAME ${CUDA_VISIBLE_DEVICES:-none} $done $$" >> $log; }
save() { first && echo $done > $state.new && mv $state.new $state; }
say start
trap 'save; say stop; exit 143' TERM
while [ $done -lt $WORK ]; do : > $DIR/$SCHED_JOB_ID.$$.beat; sleep 0.1; done=$((done + SCHED_GPUS)); done
save
say end
exit 0
"#;

/// A private cluster, an engine for it, and the folder of both.
pub struct Site {
    pub cluster: PrivateCluster,
    pub engine: SlurmEngine,
    pub directory: tempfile::TempDir,
}

impl Site {
    /// Four nodes with eight accelerators each of one release of Slurm.
    pub fn start(release: &SlurmInstall) -> Self {
        Self::on(|place| PrivateCluster::start_release(release, place, 4, 8, "a100", 5))
    }

    /// A cluster that `start` makes in a folder.
    pub fn on(start: impl FnOnce(&Path) -> Result<PrivateCluster, PrivateError>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cluster = start(&directory.path().join("slurm")).unwrap();
        std::fs::write(directory.path().join("job.sh"), JOB).unwrap();
        let engine = SlurmEngine::new(&cluster.settings(), key(directory.path()));
        Self { cluster, engine, directory }
    }
}

/// Key of the daemons of a test.
pub fn key(directory: &Path) -> FactsKey {
    FactsKey::in_directory(&directory.join("state")).unwrap()
}

/// A cluster with the script; `None`, said loudly, where there is no Slurm.
pub fn site() -> Option<Site> {
    match SlurmInstall::installed() {
        Ok(release) => Some(Site::start(&release)),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error}; `cargo xtask test` installs Slurm");
            eprintln!("NOT TESTED: {error}");
            None
        }
    }
}

pub fn submission(directory: &Path, name: &str, gpus: u32, max: u32, ticks: u32) -> Submission {
    let checkpoint_dir = Some(directory.join("checkpoints"));
    Submission { checkpoint_dir, ..scripted(directory, name, gpus, max, ticks) }
}

pub fn on(node: &str, gpus: u32) -> OnNode {
    OnNode { node: node.into(), gpus, ..OnNode::default() }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Applies an order again and again until it is carried out.
pub async fn carry_out(engine: &mut SlurmEngine, order: &Order) -> ClusterSnapshot {
    let began = Instant::now();
    loop {
        let snapshot = engine.snapshot().await.unwrap();
        match engine.verify(order, &snapshot) {
            OrderProgress::Done => return snapshot,
            OrderProgress::Lost { reason } => panic!("{order:?}: {reason}"),
            OrderProgress::Pending => {}
        }
        engine.apply(std::slice::from_ref(order)).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(40), "not carried out: {order:?}: {:?}", snapshot.jobs);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until the program itself has begun for the `count`th time: Slurm calls a job running
/// before its first line runs.
pub async fn begun(directory: &Path, key: &str, count: usize) {
    let began = Instant::now();
    let starts = || {
        let text = std::fs::read_to_string(directory.join(format!("{key}.log"))).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("start")).count()
    };
    while starts() < count {
        assert!(began.elapsed() < Duration::from_secs(20), "start {count} of {key} is never heard of");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub fn job<'a>(snapshot: &'a ClusterSnapshot, key: &str) -> &'a JobSeen {
    snapshot.jobs.iter().find(|job| job.key == key).unwrap()
}

pub fn settings(site: &Site, directory: &Path, extra: &str) -> Deployment {
    let conf = site.cluster.settings().conf.unwrap();
    let bin =
        site.cluster.settings().bin.map_or_else(String::new, |bin| format!("bin = {:?}\n", bin.display().to_string()));
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\nconf = {:?}\n{bin}[policy]\nname = \"srtf\"\n[reliance]\ntimeout_ms = 5000\nfallback = \"fifo\"\n\
         [state]\ndirectory = {:?}\nname = \"drill\"\n[api]\nlisten = \"\"\n[cycle]\npoll_secs = 0.2\nround_secs = 5\n\
         [guard]\nmin_run_secs = 1\npreempt_every_secs = 2\npreempt_percent = 100\n{extra}",
        conf.display().to_string(),
        directory.join("state").display().to_string(),
    );
    reader::parse("drill.toml", &text).unwrap()
}

pub fn open(site: &Site, settings: Deployment) -> Daemon<SlurmEngine> {
    let EngineConfig::Slurm(slurm) = &settings.engine else { panic!("it drives Slurm") };
    let engine = SlurmEngine::new(slurm, key(site.directory.path()));
    daemon::open(engine, settings, Vec::new(), Arc::new(Tenants::default())).unwrap()
}

/// Runs the daemon until every job is over.
pub async fn run_to_end(daemon: &mut Daemon<SlurmEngine>, limit: Duration) {
    let began = Instant::now();
    loop {
        let _ = daemon.cycle().await;
        let seen = daemon.engine_mut().snapshot().await;
        if seen.is_ok_and(|seen| seen.jobs.iter().all(|job| job.phase.is_over())) {
            return;
        }
        assert!(began.elapsed() < limit, "not at the end after {limit:?}: {:?}", daemon.status().lock().unwrap().queue);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}
