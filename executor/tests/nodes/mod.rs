//! Nodes for tests: a folder, certificates, accelerators that do not exist, and an agent, in this
//! process or in one of its own.
#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests, of which each test uses some")]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use goodput_configs::live::engine::NodeAddress;
use goodput_configs::live::name::JobName;
use goodput_configs::live::node_agent::{Fencing, NodeAgentConfig, PaceConfig};
use goodput_configs::live::tls::TlsFiles;
use goodput_configs::reader;
use goodput_env::cluster::Pool;
use goodput_executor::agent::api::{AttemptState, AttemptStatus, LeaderLease, NodeStatus, Start, Stop};
use goodput_executor::agent::tls::{self, DAEMON};
use goodput_executor::agent::{AgentClient, AgentError, ClientError, Running, serve};
use goodput_executor::bench_job::BenchJob;
use goodput_executor::job::{AcceleratorGrant, Exit, ExitMeaning, Fence, GangPlan, Launch, NodeLimits, Program};
use serde_json::Value;
use tempfile::TempDir;

pub const NODE_PROGRAM: &str = env!("CARGO_BIN_EXE_goodput-node");

pub fn name(text: &str) -> JobName {
    JobName::new(text).unwrap()
}

/// Nodes of one cluster, and the folder that they share: its certificates and checkpoints.
pub fn cluster(names: &[&str], fencing: Fencing) -> (Vec<Node>, TempDir) {
    let shared = tempfile::tempdir().unwrap();
    let certs = shared.path().join("certs");
    let all: Vec<_> = names.iter().map(|node| name(node)).collect();
    tls::create(&certs, &all).unwrap();
    let node = |node: &&str| {
        let mut node = Node::with_certs(node, tempfile::tempdir().unwrap(), &certs);
        node.config.checkpoint_root = shared.path().join("checkpoints");
        node.config.fencing = fencing;
        node
    };
    (names.iter().map(node).collect(), shared)
}

/// A node without an agent yet.
pub struct Node {
    pub folder: TempDir,
    pub config: NodeAgentConfig,
}

impl Node {
    pub fn new(node: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certs = folder.path().join("certs");
        tls::create(&certs, &[name(node)]).unwrap();
        Self::with_certs(node, folder, &certs)
    }

    pub fn with_certs(node: &str, folder: TempDir, certs: &Path) -> Self {
        let config = NodeAgentConfig {
            node: name(node),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            jobs: SocketAddr::from(([127, 0, 0, 1], 0)),
            state_dir: folder.path().join("state"),
            checkpoint_root: folder.path().join("checkpoints"),
            devices: "fake:2xA100".parse().unwrap(),
            dcgm: None,
            tls: TlsFiles::of(certs, node),
            daemon: DAEMON.to_owned(),
            fencing: Fencing::Keep,
            mps_pipes: folder.path().join("mps"),
            pace: PaceConfig { period_ms: 100, deadline_ms: 400, back_after_ms: 2000 },
            keeper: vec![NODE_PROGRAM.to_owned(), "keep".to_owned()],
        };
        Self { folder, config }
    }

    /// The node with a control daemon of CUDA MPS, which this process stands in for.
    pub fn with_mps(self) -> Self {
        let pipes = &self.config.mps_pipes;
        fs::create_dir_all(pipes).unwrap();
        fs::write(pipes.join("control"), "").unwrap();
        fs::write(pipes.join("nvidia-cuda-mps-control.pid"), std::process::id().to_string()).unwrap();
        self
    }

    /// The node as an engine is told of it.
    pub fn at(&self, address: SocketAddr, pool: Pool) -> NodeAddress {
        NodeAddress { name: self.config.node.clone(), address, pool }
    }

    pub fn certs(&self) -> PathBuf {
        self.config.tls.ca.parent().unwrap().to_owned()
    }

    /// An agent in this process. The lock of the agent before is inherited by every program that another test is just
    /// starting, up to the moment at which the program runs.
    pub async fn agent(&self) -> Running {
        let began = Instant::now();
        loop {
            match serve(self.config.clone()).await {
                Err(AgentError::Setup(problem))
                    if problem.contains("another agent serves") && began.elapsed() < Duration::from_secs(10) =>
                {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                served => return served.unwrap(),
            }
        }
    }

    /// An agent in a process of its own.
    pub fn spawn(&self) -> AgentProcess {
        let config = self.folder.path().join("agent.toml");
        fs::write(&config, reader::resolved(&self.config).unwrap()).unwrap();
        let serving = self.config.state_dir.join("serving.json");
        let _ = fs::remove_file(&serving);
        let mut command = Command::new(NODE_PROGRAM);
        let child = command.arg("agent").arg(config).stdin(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        let address = loop {
            if let Ok(text) = fs::read(&serving) {
                let serving: Value = serde_json::from_slice(&text).unwrap();
                break serving["address"].as_str().unwrap().parse().unwrap();
            }
            assert!(began.elapsed() < Duration::from_secs(20), "the agent does not serve");
            std::thread::sleep(Duration::from_millis(5));
        };
        AgentProcess { child, address }
    }

    pub fn client(&self, address: SocketAddr) -> AgentClient {
        let files = TlsFiles::of(&self.certs(), DAEMON);
        AgentClient::new(self.config.node.clone(), address, &files, Duration::from_secs(10)).unwrap()
    }

    /// Changes the script of the accelerators.
    pub fn script(&self, change: impl FnOnce(&mut Value)) {
        let path = self.config.state_dir.join("devices/state.json");
        let mut state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut state);
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_vec(&state).unwrap()).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// A critical error.
    pub fn xid(&self, index: usize, code: u64) {
        use std::io::Write;
        let path = self.config.state_dir.join("devices/events");
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{index} 8 {code}").unwrap();
    }

    pub fn checkpoints(&self, job: &str) -> Vec<String> {
        let folder = self.config.checkpoint_root.join(job);
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Node {
    /// Ends what the test left running, by the numbers that keepers wrote down.
    fn drop(&mut self) {
        let attempts = fs::read_dir(self.config.state_dir.join("attempts"));
        for attempt in attempts.into_iter().flatten().flatten() {
            let read = |name: &str| fs::read(attempt.path().join(name)).ok();
            let exited = read("exit.json").is_some();
            let processes = read("processes.json").and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            if let (false, Some(processes)) = (exited, processes) {
                // A deadline long past: the keeper kills everything and leaves.
                fs::write(attempt.path().join("stop.json"), r#"{"kill_at_boot_ms":0}"#).unwrap();
                let keeper = processes["keeper"]["pid"].as_u64().unwrap();
                for _ in 0..200 {
                    if !is_alive(keeper as u32) {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }
}

pub struct AgentProcess {
    pub child: Child,
    pub address: SocketAddr,
}

impl AgentProcess {
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process lives and is not merely not waited for.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

pub fn bench(job: &BenchJob) -> Vec<String> {
    vec![NODE_PROGRAM.to_owned(), "bench-job".to_owned(), serde_json::to_string(job).unwrap()]
}

/// A job that runs for about so long on one accelerator.
pub fn lasting(seconds: f64) -> BenchJob {
    let job = BenchJob { report_ms: 50, ..BenchJob::default() };
    BenchJob { steps: (seconds / job.step_s(1, 1)) as u64, ..job }
}

pub fn launch(job: &str, attempt: u32, command: Vec<String>, grants: Vec<AcceleratorGrant>) -> Launch {
    let gang = GangPlan::alone(grants.len() as u32, 47_000);
    let program = Program { grace_s: 5, ..Program::new(name(job), command) };
    Launch {
        program,
        attempt,
        fence: Fence::random().unwrap(),
        grants,
        gang,
        limits: NodeLimits::default(),
        member: None,
    }
}

pub fn start(launch: Launch) -> Start {
    Start { term: 1, void_boot_ms: None, launch }
}

pub fn stop(grace_ms: u64) -> Stop {
    Stop { term: 1, grace_ms: Some(grace_ms), plan: None }
}

pub async fn renew(client: &AgentClient, term: u64, leader: &str) -> Result<(), ClientError> {
    let as_of_boot_ms = client.status().await?.boot_ms;
    client.renew(&LeaderLease { term, leader: leader.to_owned(), as_of_boot_ms }).await.map(|_| ())
}

/// Asks until the node is as wanted.
pub async fn until(client: &AgentClient, what: &str, wanted: impl Fn(&NodeStatus) -> bool) -> (NodeStatus, Duration) {
    let began = Instant::now();
    loop {
        let status = client.status().await.unwrap();
        if wanted(&status) {
            return (status, began.elapsed());
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: {}", text(&status));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn text(status: &NodeStatus) -> String {
    format!("{status:?}").chars().take(900).collect()
}

/// Asks until an attempt has ended, and says how.
pub async fn ended(client: &AgentClient, id: &str) -> (Exit, ExitMeaning, Duration) {
    let began = Instant::now();
    loop {
        let status = client.attempt(id).await.unwrap();
        if let AttemptState::Ended { exit, meaning, .. } = status.state {
            return (exit, meaning, began.elapsed());
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{id} does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asks until an attempt has reported.
pub async fn reported(client: &AgentClient, id: &str) -> AttemptStatus {
    let began = Instant::now();
    loop {
        let status = client.attempt(id).await.unwrap();
        if status.report.is_some() {
            return status;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{id} says nothing: {:?}", status.state);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asks an attempt for a checkpoint. A job may report before the agent knows its process.
pub async fn ask_for_checkpoint(client: &AgentClient, id: &str) {
    let began = Instant::now();
    while let Err(error) = client.checkpoint(id, 1).await {
        let late = began.elapsed() > Duration::from_secs(20);
        assert!(!late && code(error) == "not_started", "{id} has no process");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// UUIDs of the node's accelerators, once the driver has been read.
pub async fn uuids(client: &AgentClient) -> Vec<String> {
    let (status, _) = until(client, "accelerators", |status| !status.accelerators.is_empty()).await;
    status.accelerators.into_iter().map(|device| device.uuid).collect()
}

/// Processes that the driver sees on an accelerator.
pub async fn users(client: &AgentClient, index: usize) -> Vec<u32> {
    client.status().await.unwrap().accelerators[index].processes.clone()
}

pub fn code(error: ClientError) -> String {
    error.code().unwrap_or("unreachable").to_owned()
}
