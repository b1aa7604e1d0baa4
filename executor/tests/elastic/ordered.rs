//! A policy that resizes an elastic job through the daemon: the job trains on, and the daemon says why.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::reader;
use goodput_env::tenant::Tenants;
use goodput_executor::daemon::interface::resize::{LastResize, OtherChange};
use goodput_executor::daemon::interface::status::{DaemonStatus, QueueRow};
use goodput_executor::daemon::{self, Daemon};
use serde_json::Value;

use super::*;
use crate::nodes::is_alive;

/// A daemon over three nodes with two accelerators each. A second of it is half a minute of its policy, so that a
/// policy decides each second, and what it assumes of a restart does not outweigh the short test.
struct Ordered {
    site: Site,
    _agents: Vec<Running>,
    daemon: Daemon<AgentsEngine>,
    log: SampleLog,
}

impl Ordered {
    async fn new(policy: &str) -> Self {
        let site = Site::new(&["n1", "n2", "n3"], Fencing::Keep);
        let agents = site.agents().await;
        let addresses: Vec<_> = agents.iter().map(|agent| agent.address).collect();
        let state = site.shared.path().join("state");
        let text = format!(
            "mode = \"act\"\n[engine.slurm]\n[policy]\n{policy}\n[reliance]\ntimeout_ms = 20000\nfallback = \"fifo\"\n\
             [state]\ndirectory = {state:?}\nname = \"d1\"\n[api]\nlisten = \"\"\n\
             [cycle]\npoll_secs = 0.1\nround_secs = 30\nspeedup = 30\n\
             [guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\n"
        );
        let mut settings = reader::parse::<Deployment>("ordered.toml", &text).unwrap();
        settings.engine = EngineConfig::Agents(site.settings(&addresses));
        let engine = AgentsEngine::open(site.settings(&addresses)).unwrap();
        let daemon = daemon::open(engine, settings, Vec::new(), Arc::new(Tenants::default())).unwrap();
        let log = SampleLog::of(site.shared.path().join("samples"), 240);
        Self { site, _agents: agents, daemon, log }
    }

    /// Cycles until the queue is as wanted.
    async fn until(&mut self, what: &str, wanted: impl Fn(&DaemonStatus) -> bool) -> DaemonStatus {
        let began = Instant::now();
        loop {
            let turn = self.daemon.cycle().await;
            let status = self.daemon.status().lock().unwrap().clone();
            assert_eq!(status.fallback, "", "the policy itself decides");
            if turn.is_ok() && wanted(&status) {
                return status;
            }
            let text: String = format!("{turn:?} {:?} {:?}", status.queue, status.alerts);
            assert!(began.elapsed() < Duration::from_secs(120), "{what}: {text}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Cycles until the job trains on so many accelerators.
    async fn trains_on(&mut self, gpus: u32) -> (QueueRow, BTreeMap<u32, u32>) {
        let began = Instant::now();
        loop {
            let status = self.until("size", |status| row(status, "line").is_some_and(|row| held(row) == gpus)).await;
            let members = self.members();
            let settled = self.log.steps().into_values().next_back().is_some_and(|step| step.members == gpus as usize);
            if settled && members.len() == gpus as usize {
                return (row(&status, "line").unwrap().clone(), members);
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{gpus} members never train: {members:?}");
        }
    }

    /// Process of each member that runs, by number of the member.
    fn members(&self) -> BTreeMap<u32, u32> {
        let mut members = BTreeMap::new();
        for node in &self.site.nodes {
            for attempt in std::fs::read_dir(node.config.state_dir.join("attempts")).into_iter().flatten().flatten() {
                let name = attempt.file_name().to_string_lossy().into_owned();
                let read = std::fs::read(attempt.path().join("processes.json")).ok();
                let processes = read.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
                let pid = processes.and_then(|processes| processes["job"]["pid"].as_u64());
                let number =
                    name.strip_prefix("line-").and_then(|name| name.rsplit_once('.')).map(|(_, number)| number);
                if let (Some(Ok(number)), Some(pid)) = (number.map(str::parse), pid)
                    && is_alive(pid as u32)
                {
                    members.insert(number, pid as u32);
                }
            }
        }
        members
    }
}

fn row<'a>(status: &'a DaemonStatus, name: &str) -> Option<&'a QueueRow> {
    status.queue.iter().find(|row| row.name == name)
}

fn held(row: &QueueRow) -> u32 {
    row.placement.iter().map(|on| on.gpus).sum()
}

/// A bundle says why it resized the job; a heuristic gives no reasons but what else changed.
fn explained(row: &QueueRow, policy: &str) {
    match policy.strip_prefix("bundle = \"").and_then(|rest| rest.strip_suffix('"')) {
        Some(bundle) => crate::explained::the_bundle_says_why("agents", row, bundle),
        None => assert_eq!(row.change, None),
    }
}

/// A job alone at full width makes way for another one and grows again, and its processes that stay keep their ids.
async fn a_policy_resizes_a_job_without_a_stop(policy: &str) {
    let mut lab = Ordered::new(policy).await;
    let all_up = |status: &DaemonStatus| status.nodes.len() == 3 && status.nodes.iter().all(|node| node.gpus == 2);
    lab.until("all nodes", all_up).await;
    let folder = lab.log.folder().to_string_lossy().into_owned();
    let words = ["python3", WORKER, &folder, "0.24", "0", "divided"].map(ToOwned::to_owned);
    let line = Submission { command: words.to_vec(), ..submission(&lab.log, 0.0) };
    let line_key = lab.daemon.submit("test", &line).await.unwrap();
    let (wide, before) = lab.trains_on(6).await;
    assert_eq!((wide.starts, wide.failures), (1, 0));
    explained(&wide, policy);
    let simulated = lab.daemon.status().lock().unwrap().look.clone();
    assert_eq!(simulated.is_some(), policy.contains("lookahead"), "{simulated:?}");
    simulated.iter().for_each(|look| println!("{}", look.sentence()));
    let grown = wide.resize.unwrap();
    assert!(grown.in_place && grown.to == 6 && grown.others.is_empty(), "{grown:?}");

    let ends = lab.site.shared.path().join("short-ends");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", ends.display());
    let request = JobRequest { name: "short".to_owned(), gpus: 2, ..JobRequest::default() };
    let spec = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(600) } };
    let short = Submission::new(spec, ["/bin/sh", "-c", &script].map(ToOwned::to_owned).to_vec());
    lab.daemon.submit("test", &short).await.unwrap();
    lab.until("short runs", |status| row(status, "short").is_some_and(|row| row.phase == "running")).await;
    let (narrow, during) = lab.trains_on(4).await;
    assert!(during.iter().all(|(number, pid)| before.get(number) == Some(pid)), "{before:?}, then {during:?}");
    assert_eq!((narrow.starts, narrow.failures), (1, 0));
    explained(&narrow, policy);
    let shrunk = narrow.resize.unwrap();
    let other = OtherChange { name: "short".to_owned(), from: 0, to: 2, left_out: false };
    let LastResize { from, to, in_place, free, others, .. } = shrunk.clone();
    assert_eq!((from, to, in_place, free, others), (6, 4, true, 0, vec![other]), "{}", shrunk.words());
    assert!(shrunk.words().ends_with("without a stop; 0 were free, and in the same decision short starts on 2"));

    std::fs::write(ends, "").unwrap();
    let (again, after) = lab.trains_on(6).await;
    assert!(during.iter().all(|(number, pid)| after.get(number) == Some(pid)), "{during:?}, then {after:?}");
    assert_eq!((again.starts, again.failures), (1, 0));
    explained(&again, policy);
    let regrown = again.resize.unwrap();
    assert!(regrown.in_place && regrown.from < regrown.to && regrown.to == 6, "{}", regrown.words());
    let orders = lab.daemon.journal().orders_of(&line_key).unwrap();
    let verbs: Vec<&str> = orders.iter().rev().map(|(verb, ..)| verb.as_str()).collect();
    assert!(verbs[0] == "place" && verbs[1..].iter().all(|verb| *verb == "resize"), "{verbs:?}");
    let restarts = lab.daemon.seen().unwrap().unwrap().view().jobs().map(|job| job.state.restarts).max();
    assert_eq!(restarts, Some(0), "the policy is told of no restart");

    lab.log.enough();
    lab.until("the end", |status| status.queue.is_empty()).await;
    lab.log.check();
    assert!(lab.log.steps().values().all(|step| step.made.0 == 0), "one attempt made all steps");
}

#[tokio::test(flavor = "multi_thread")]
async fn pollux_resizes_a_job_without_a_stop() {
    a_policy_resizes_a_job_without_a_stop("name = \"pollux-fast\"").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learned_policy_resizes_a_job_without_a_stop() {
    a_policy_resizes_a_job_without_a_stop("bundle = \"zoo:elastic\"").await;
}

/// A lookahead drives real processes on agents, and says what it simulated.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_looks_ahead_resizes_a_job_without_a_stop() {
    a_policy_resizes_a_job_without_a_stop("name = \"lookahead(pollux-fast)(every_secs=60, rivals=[sia], hold=false)\"")
        .await;
}
