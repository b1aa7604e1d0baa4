//! Drill 22: trained policies drive real processes on node agents while nodes are drained, fail and are added. Each
//! job has a witness, which takes locks of the kernel and so finds out whether the job runs twice at one time.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which prints what it counted")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::nodes::{Node, bench, lasting, name};
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::live::node_agent::Fencing;
use goodput_configs::live::tls::TlsFiles;
use goodput_configs::reader;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::seed::{Stream, rng};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use goodput_executor::agent::Running;
use goodput_executor::agent::tls::{self, DAEMON};
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::agents::AgentsEngine;
use goodput_executor::engine::{EngineAction, NodeHealth, NodeSeen, Submission};
use rand::RngExt;
use tempfile::TempDir;

/// Accelerators of a node; all but the last two of a site are there from the beginning.
const PER_NODE: u32 = 8;
/// Seconds of the policy's clock in a second, where nothing is slower.
const SPEEDUP: u32 = 60;

/// The witness of a job, around the command that follows. A part of an attempt is one node of the job. Each part locks
/// a file of its own, and looks whether a part of another attempt holds its file. The first part writes down that the
/// job ended well. Signals go on to the command.
const WITNESS: &str = r#"
cd "$SCHED_CHECKPOINT_DIR" || exit 1; mkdir -p witness; mine="witness/part-$SCHED_ATTEMPT-$NODE_RANK"
exec 9>>"$mine"; flock -n 9 || echo "part $SCHED_ATTEMPT-$NODE_RANK" >>witness/twice
for other in witness/part-*; do
  case $other in witness/part-$SCHED_ATTEMPT-*) continue;; esac
  flock -n -s "$other" true || echo "$mine beside $other" >>witness/twice
done
trap : TERM; trap 'kill -USR1 $job' USR1
"$@" & job=$!
wait $job; code=$?
while kill -0 $job 2>/dev/null; do wait $job; code=$?; done
test $code -gt 0 || test $NODE_RANK -gt 0 || echo "$SCHED_ATTEMPT" >>witness/ends
exit $code
"#;

/// Longest time in which the queue runs empty when nothing is submitted any more, where nothing is slower.
const EMPTY: Duration = Duration::from_secs(120);

/// Node agents with accelerators that do not exist, and a daemon under a bundle.
struct Churning {
    nodes: Vec<Node>,
    agents: Vec<Option<Running>>,
    daemon: Daemon<AgentsEngine>,
    /// Factor by which everything takes longer: jobs, changes of the nodes, silence, and the policy's clock. It divides
    /// `SPEEDUP`.
    slower: u32,
    /// Keys of the jobs that were accepted.
    keys: Vec<String>,
    shared: TempDir,
}

/// Counts of a live run.
#[derive(Debug, Default)]
struct LiveCounts {
    decisions: u32,
    of_fallback: u32,
    /// Decisions while a node was drained or gone.
    below_strength: u32,
    drains: u32,
    failures: u32,
    additions: u32,
    done: usize,
    moved: u64,
    /// Jobs that were accepted.
    jobs: usize,
    /// Jobs that never ended well.
    lost: usize,
    /// Jobs that ran twice at one time.
    doubled: usize,
    /// Jobs that ended well twice, one after the other.
    ended_again: usize,
}

impl Churning {
    async fn new(count: u32, bundle: &str, slower: u32) -> Self {
        let shared = tempfile::tempdir().unwrap();
        let certs = shared.path().join("certs");
        let names: Vec<_> = (0..count).map(|at| name(&format!("n{at}"))).collect();
        tls::create(&certs, &names).unwrap();
        let (mut nodes, mut agents, mut listed) = (Vec::new(), Vec::new(), Vec::new());
        for node in &names {
            let mut node = Node::with_certs(node.as_str(), tempfile::tempdir().unwrap(), &certs);
            node.config.checkpoint_root = shared.path().join("checkpoints");
            node.config.devices = format!("fake:{PER_NODE}xA100").parse().unwrap();
            node.config.fencing = Fencing::Kill { after_ms: 4000 * u64::from(slower) };
            node.config.pace.period_ms = 500 * u64::from(slower.min(8));
            let agent = node.agent().await;
            // An agent that comes back serves at the address of before.
            node.config.listen = agent.address;
            listed.push(format!("{{ name = \"{}\", address = \"{}\" }}", node.config.node, agent.address));
            nodes.push(node);
            agents.push(Some(agent));
        }
        let TlsFiles { ca, cert, key } = TlsFiles::of(&certs, DAEMON);
        let place = |name: &str| shared.path().join(name).display().to_string();
        let text = format!(
            "mode = \"act\"\n[engine.agents]\nfolder = {:?}\nnodes = [{}]\ntls = {{ ca = {ca:?}, cert = {cert:?}, key = {key:?} }}\n\
             suspect_ms = {}\nlease_ms = {}\npatience_ms = {}\n[policy]\nbundle = \"{bundle}\"\n\
             [reliance]\ntimeout_ms = 20000\n[state]\ndirectory = {:?}\nname = \"d1\"\n[api]\nlisten = \"\"\n\
             [cycle]\nround_secs = 60\nspeedup = {}\n[guard]\nmin_run_secs = 60\npreempt_every_secs = 120\npreempt_percent = 50\n",
            place("engine"),
            listed.join(", "),
            1500 * slower,
            5000 * slower,
            1000 * slower,
            place("state"),
            SPEEDUP / slower,
        );
        let settings: Deployment = reader::parse("churn.toml", &text).unwrap();
        let EngineConfig::Agents(of) = settings.engine.clone() else { panic!("it drives agents") };
        let engine = AgentsEngine::open(of).unwrap();
        let daemon = daemon::open(engine, settings, Vec::new(), Arc::new(Tenants::default())).unwrap();
        // The last two nodes are added later: nothing has heard of their accelerators yet.
        let first = agents.len().saturating_sub(2).max(1);
        agents[first..].iter_mut().for_each(|agent| *agent = None);
        Self { nodes, agents, daemon, slower, keys: Vec::new(), shared }
    }

    async fn submit(&mut self, index: u32, gpus: u32, seconds: f64) {
        let elasticity = Elasticity::Elastic { min: 1, max: 2 * gpus };
        let request = JobRequest { name: format!("job-{index}"), gpus, elasticity, ..JobRequest::default() };
        let work = Work::Fixed { duration: SimTime::from_secs_f64(seconds * f64::from(SPEEDUP)) };
        let mut job = lasting(seconds * f64::from(gpus * self.slower));
        job.report_ms = 500 * u64::from(self.slower);
        let witness = ["/bin/sh", "-c", WITNESS, "witness"].map(str::to_owned);
        let command = witness.into_iter().chain(bench(&job)).collect();
        let submission = Submission { grace_s: 2, ..Submission::new(JobSpec { request, work }, command) };
        self.keys.push(self.daemon.submit("test", &submission).await.unwrap());
    }

    /// Brings all nodes back and cycles until the queue is empty. Counts what the witnesses wrote.
    async fn run_empty(&mut self, counts: &mut LiveCounts) {
        for (node, agent) in self.nodes.iter().zip(&mut self.agents) {
            if agent.is_none() {
                *agent = Some(node.agent().await);
            }
            let node = node.config.node.to_string();
            self.daemon.order_by_hand("test", "", EngineAction::Undrain { node }).await.unwrap();
        }
        let began = Instant::now();
        while self.daemon.cycle().await.is_err() || !self.daemon.status().lock().unwrap().queue.is_empty() {
            if began.elapsed() >= EMPTY * self.slower {
                println!("the queue is not empty: {:?}", self.daemon.status().lock().unwrap().queue);
                break;
            }
            tokio::time::sleep(Duration::from_millis(100) * self.slower.min(10)).await;
        }
        let lines = |key: &String, file: &str| {
            let path = self.shared.path().join("checkpoints").join(key).join("witness").join(file);
            std::fs::read_to_string(path).unwrap_or_default().lines().count()
        };
        let count = |wrong: &dyn Fn(&String) -> bool| self.keys.iter().filter(|key| wrong(key)).count();
        counts.jobs = self.keys.len();
        counts.lost = count(&|key| lines(key, "ends") == 0);
        counts.doubled = count(&|key| lines(key, "twice") > 0);
        counts.ended_again = count(&|key| lines(key, "ends") > 1);
    }

    /// Runs for `span` times the factor, with a change of the nodes every few seconds times the factor.
    async fn run(&mut self, span: Duration) -> LiveCounts {
        let mut random = rng(7, Stream::Faults);
        let mut counts = LiveCounts::default();
        // A daemon takes jobs once it leads.
        self.daemon.cycle().await.unwrap();
        let began = Instant::now();
        let (mut next_job, mut next_change, mut jobs) = (Duration::ZERO, Duration::from_secs(4), 0);
        let mut drained: Vec<(usize, Duration)> = Vec::new();
        while began.elapsed() < span * self.slower {
            let now = began.elapsed() / self.slower;
            while next_job <= now {
                let (gpus, seconds) = (random.random_range(1..=4), random.random_range(4.0..16.0));
                self.submit(jobs, gpus, seconds).await;
                jobs += 1;
                next_job += Duration::from_secs_f64(40.0 / f64::from(PER_NODE * self.nodes.len() as u32));
            }
            if next_change <= now {
                next_change = now + Duration::from_secs(3);
                self.change(random.random_range(0..self.nodes.len()), now, &mut drained, &mut counts).await;
            }
            for (at, _) in drained.extract_if(.., |(_, since)| now - *since > Duration::from_secs(8)) {
                let node = self.nodes[at].config.node.to_string();
                self.daemon.order_by_hand("test", "", EngineAction::Undrain { node }).await.unwrap();
            }
            let report = self.daemon.cycle().await.unwrap();
            if report.decided {
                let status = self.daemon.status();
                let status = status.lock().unwrap();
                counts.decisions += 1;
                counts.of_fallback += u32::from(!status.fallback.is_empty());
                let whole = |node: &NodeSeen| node.health == NodeHealth::Up && node.gpus == PER_NODE;
                counts.below_strength += u32::from(!status.nodes.iter().all(whole));
            }
            tokio::time::sleep(Duration::from_millis(100) * self.slower.min(10)).await;
        }
        let status = self.daemon.status();
        counts.done = status.lock().unwrap().ended.iter().filter(|row| row.phase == "done").count();
        counts.moved = self.daemon.journal().counts().unwrap()[1];
        counts
    }

    /// An agent that is gone comes back, or is added; one that serves is drained or ends.
    async fn change(
        &mut self,
        at: usize,
        now: Duration,
        drained: &mut Vec<(usize, Duration)>,
        counts: &mut LiveCounts,
    ) {
        let gone = self.agents.iter().filter(|agent| agent.is_none()).count();
        if let Some(back) = self.agents.iter().position(Option::is_none).filter(|_| gone > 1 || at.is_multiple_of(3)) {
            self.agents[back] = Some(self.nodes[back].agent().await);
            counts.additions += 1;
        } else if drained.iter().any(|(other, _)| *other == at) || self.agents[at].is_none() {
        } else if at.is_multiple_of(2) {
            let node = self.nodes[at].config.node.to_string();
            let order = EngineAction::Drain { node, reason: "test".into() };
            self.daemon.order_by_hand("test", "", order).await.unwrap();
            drained.push((at, now));
            counts.drains += 1;
        } else {
            // The agent ends without a word; keepers end its jobs after the lease.
            self.agents[at] = None;
            counts.failures += 1;
        }
    }
}

/// `span` is the time of the run where nothing is slower.
async fn live(nodes: u32, bundle: &str, span: Duration, slower: u32) -> LiveCounts {
    let mut site = Churning::new(nodes, bundle, slower).await;
    // Only a daemon that leads accepts jobs.
    assert!(site.daemon.cycle().await.unwrap().leads);
    let mut counts = site.run(span).await;
    let running = site.daemon.status().lock().unwrap().queue.iter().filter(|row| row.phase == "running").count();
    site.run_empty(&mut counts).await;
    println!("{bundle} on {nodes} nodes of {PER_NODE} for {} s, {slower} times slower: {counts:?}", span.as_secs());
    assert!(100 * counts.of_fallback <= counts.decisions, "{bundle}, {nodes} nodes: {counts:?}");
    assert!(counts.decisions as u64 > span.as_secs() / 2 && 4 * counts.below_strength > counts.decisions, "{counts:?}");
    assert!(counts.done > 0 && counts.moved > 10, "jobs ran to their end: {counts:?}");
    assert!(counts.drains > 0 && counts.additions > 0, "{counts:?}");
    assert!(running > 0, "jobs run at the end: {counts:?}");
    assert_eq!((counts.lost, counts.doubled), (0, 0), "{bundle}, {nodes} nodes: {counts:?}");
    counts
}

/// Half an hour of the policy's clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bundle_decides_live_while_nodes_come_and_go() {
    live(4, "zoo:elastic", Duration::from_secs(30), 1).await;
}

/// An hour of the policy's clock for each bundle and size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half an hour"]
async fn every_bundle_decides_live_for_an_hour_while_nodes_come_and_go() {
    for bundle in crate::capacity::of_every_size() {
        for nodes in [4, 7, 8] {
            live(nodes, &bundle, Duration::from_secs(60), 1).await;
        }
    }
}

/// An hour of the policy's clock on 512 accelerators, three times as fast as the clock of the wall: 64 agents and
/// hundreds of processes leave two cores no time for more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes twenty minutes"]
async fn a_bundle_decides_live_on_512_accelerators_for_an_hour_while_nodes_come_and_go() {
    live(64, "zoo:elastic", Duration::from_secs(60), 20).await;
}
