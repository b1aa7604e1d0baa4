//! Drills of a daemon over node agents: real processes that take a lock of the kernel each, so that a
//! job which runs twice at once is found out.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "drills tell their figures")]

mod certificates;
mod disk;
mod faults;
mod guarantees;
mod journal;
mod once;
mod standby;
mod stored;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::live::node_agent::Fencing;
use goodput_configs::live::tls::TlsFiles;
use goodput_configs::reader;
use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use goodput_executor::agent::Running;
use goodput_executor::agent::tls::DAEMON;
use goodput_executor::daemon::interface::status::DaemonStatus;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::Submission;
use goodput_executor::engine::agents::AgentsEngine;
use tempfile::TempDir;

use crate::nodes::*;

/// Longest time that a drill waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes with two accelerators each, what they share, and what their jobs write there.
struct Site {
    nodes: Vec<Node>,
    shared: TempDir,
}

impl Site {
    fn new(names: &[&str], fencing: Fencing) -> Self {
        let (nodes, shared) = cluster(names, fencing);
        Self { nodes, shared }
    }

    async fn agents(&self) -> Vec<Running> {
        let mut agents = Vec::new();
        for node in &self.nodes {
            agents.push(node.agent().await);
        }
        agents
    }

    fn at(&self, folder: &str) -> PathBuf {
        self.shared.path().join(folder)
    }

    /// Settings of a daemon of the site; `listen` is empty where it has no interface.
    fn settings(&self, addresses: &[SocketAddr], daemon: &str, listen: &str) -> Deployment {
        let TlsFiles { ca, cert, key } = TlsFiles::of(&self.at("certs"), DAEMON);
        let listed = self.nodes.iter().zip(addresses);
        let listed = listed.map(|(node, at)| format!("{{ name = \"{}\", address = \"{at}\" }}", node.config.node));
        let listed = listed.collect::<Vec<_>>().join(", ");
        let (engine, state) = (self.at("engine"), self.at("state"));
        let text = format!(
            "mode = \"act\"\n[engine.agents]\nfolder = {engine:?}\nnodes = [{listed}]\n\
             tls = {{ ca = {ca:?}, cert = {cert:?}, key = {key:?} }}\nleader = \"{daemon}\"\nsuspect_ms = 2000\n\
             lease_ms = 2500\npatience_ms = 1000\n[policy]\nname = \"fifo\"\n[reliance]\ntimeout_ms = 20000\n\
             fallback = \"fifo\"\n[state]\ndirectory = {state:?}\nname = \"{daemon}\"\nlease_secs = 1\n\
             [api]\nlisten = \"{listen}\"\n[cycle]\npoll_secs = 0.1\nround_secs = 1\n\
             [guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\nmass_failure_percent = 100\n",
        );
        reader::parse("site.toml", &text).unwrap()
    }

    fn daemon(&self, agents: &[Running], daemon: &str) -> Daemon<AgentsEngine> {
        let addresses: Vec<_> = agents.iter().map(|agent| agent.address).collect();
        open(self.settings(&addresses, daemon, "")).unwrap()
    }

    /// Lines that the attempts of a job wrote into a file: `starts`, `ends` or `twice`.
    fn lines(&self, key: &str, file: &str) -> usize {
        let path = self.at("checkpoints").join(key).join(file);
        fs::read_to_string(path).map_or(0, |text| text.lines().count())
    }

    /// Jobs that ran twice at once, and jobs that did not end, of all that were handed in.
    fn doubled_and_lost(&self, keys: &[String]) -> (usize, usize) {
        let doubled = keys.iter().filter(|key| self.lines(key, "twice") > 0 || self.lines(key, "ends") > 1).count();
        (doubled, keys.iter().filter(|key| self.lines(key, "ends") == 0).count())
    }
}

fn open(settings: Deployment) -> Result<Daemon<AgentsEngine>, String> {
    let EngineConfig::Agents(agents) = settings.engine.clone() else { panic!("it drives agents") };
    let engine = AgentsEngine::open(agents).map_err(|error| error.to_string())?;
    let opened = daemon::open(engine, settings, Vec::new(), Arc::new(Tenants::default()));
    opened.map_err(|error| error.to_string())
}

/// A job on one accelerator: it finds out whether another attempt of it runs, and sleeps.
fn job(name: &str, secs: f64) -> Submission {
    sized(name, 1, secs)
}

fn sized(name: &str, gpus: u32, secs: f64) -> Submission {
    let script = format!(
        "cd \"$SCHED_CHECKPOINT_DIR\"; exec 9>lock; flock -n 9 || echo $SCHED_ATTEMPT >> twice; \
         echo $SCHED_ATTEMPT >> starts; sleep {secs}; echo $SCHED_ATTEMPT >> ends"
    );
    told(name, gpus, &script)
}

fn told(name: &str, gpus: u32, script: &str) -> Submission {
    let request = JobRequest { name: name.into(), gpus, ..JobRequest::default() };
    let spec = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(60) } };
    let command = ["/bin/sh", "-c", script].map(ToOwned::to_owned).to_vec();
    Submission { grace_s: 2, ..Submission::new(spec, command) }
}

/// Cycles until the status is as wanted.
async fn until(
    daemon: &mut Daemon<AgentsEngine>,
    what: &str,
    mut wanted: impl FnMut(&DaemonStatus) -> bool,
) -> DaemonStatus {
    let began = Instant::now();
    loop {
        let turn = daemon.cycle().await;
        let status = daemon.status().lock().unwrap().clone();
        if turn.is_ok() && wanted(&status) {
            return status;
        }
        let text: String = format!("{turn:?} {:?} {:?} {:?}", status.queue, status.nodes, status.alerts);
        assert!(began.elapsed() < PATIENCE, "{what}: {text}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// Cycles until all nodes are heard of.
async fn all_up(daemon: &mut Daemon<AgentsEngine>) {
    until(daemon, "all nodes", |status| !status.nodes.is_empty() && status.nodes.iter().all(|node| node.gpus == 2))
        .await;
}

/// Cycles until no job waits or runs.
async fn all_over(daemon: &mut Daemon<AgentsEngine>) -> DaemonStatus {
    until(daemon, "all jobs over", |status| status.queue.is_empty()).await
}

fn alerts<'a>(status: &'a DaemonStatus, kind: &str) -> Vec<&'a str> {
    let kind = format!("{kind}: ");
    status.alerts.iter().filter_map(|alert| alert.strip_prefix(&kind)).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

fn distinct(keys: &[String]) -> usize {
    keys.iter().collect::<BTreeSet<_>>().len()
}
