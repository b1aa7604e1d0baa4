//! The engine over agents: real sockets, real certificates, real processes, several nodes in one
//! machine.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::{Duration, Instant};

use crate::nodes::*;
use goodput_configs::live::engine::AgentsConfig;
use goodput_configs::live::node_agent::Fencing;
use goodput_configs::live::tls::TlsFiles;
use goodput_env::cluster::Pool;
use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_executor::agent::Running;
use goodput_executor::agent::tls::DAEMON;
use goodput_executor::bench_job::{BenchJob, Misbehaviour};
use goodput_executor::engine::agents::AgentsEngine;
use goodput_executor::engine::{
    ClusterSnapshot, Engine, EngineAction, JobPhase, JobResources, JobSeen, NodeHealth, OnNode, Order, OrderId,
    OrderProgress, StepOutcome, Submission, verify,
};
use goodput_executor::job::{Learned, RetryBudget};
use rustix::process::Signal;
use tempfile::TempDir;

/// Nodes of one cluster, and where their agents are.
pub struct Site {
    pub nodes: Vec<Node>,
    pub shared: TempDir,
}

impl Site {
    pub fn new(names: &[&str], fencing: Fencing) -> Self {
        let (nodes, shared) = cluster(names, fencing);
        Self { nodes, shared }
    }

    pub fn settings(&self, addresses: &[std::net::SocketAddr]) -> AgentsConfig {
        let nodes = self.nodes.iter().zip(addresses);
        AgentsConfig {
            nodes: nodes.map(|(node, at)| node.at(*at, Pool::Shared)).collect(),
            tls: TlsFiles::of(&self.shared.path().join("certs"), DAEMON),
            folder: self.shared.path().join("engine"),
            leader: "d1".to_owned(),
            suspect_ms: 500,
            lease_ms: 2000,
            patience_ms: 300,
        }
    }

    pub async fn agents(&self) -> Vec<Running> {
        let mut agents = Vec::new();
        for node in &self.nodes {
            agents.push(node.agent().await);
        }
        agents
    }

    pub async fn engine(&self, agents: &[Running]) -> AgentsEngine {
        let addresses: Vec<_> = agents.iter().map(|agent| agent.address).collect();
        let mut engine = AgentsEngine::open(self.settings(&addresses)).unwrap();
        engine.lead(1).await.unwrap();
        look(&mut engine, "all nodes", |seen| seen.nodes.iter().all(|node| node.gpus == 2)).await;
        engine
    }
}

pub async fn look(engine: &mut AgentsEngine, what: &str, wanted: impl Fn(&ClusterSnapshot) -> bool) -> ClusterSnapshot {
    let began = Instant::now();
    loop {
        let snapshot = engine.snapshot().await.unwrap();
        if wanted(&snapshot) {
            return snapshot;
        }
        let text: String = format!("{:?} {:?}", snapshot.nodes, snapshot.jobs).chars().take(1500).collect();
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: {text}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

fn submission(job: &str, gpus: u32, what: &BenchJob) -> Submission {
    let request = JobRequest { name: job.to_owned(), gpus, ..JobRequest::default() };
    let spec = JobSpec { request, work: Work::Steps { class: 0, steps: what.steps as f64 } };
    Submission {
        tenant: "t".to_owned(),
        environment: [("HOME".to_owned(), "/tmp".to_owned())].into(),
        grace_s: 5,
        ..Submission::new(spec, bench(what))
    }
}

pub fn on(node: &str, gpus: u32) -> OnNode {
    OnNode { node: node.to_owned(), gpus, accelerators: Vec::new() }
}

pub fn order(job: &str, starts: u32, action: EngineAction) -> Order {
    Order { id: OrderId(format!("{job}-{starts}-{}", action.verb())), job: job.to_owned(), starts, action }
}

pub fn place(placement: Vec<OnNode>) -> EngineAction {
    EngineAction::Place { placement, share: None }
}

pub fn job<'a>(snapshot: &'a ClusterSnapshot, key: &str) -> &'a JobSeen {
    snapshot.jobs.iter().find(|job| job.key == key).unwrap()
}

/// Gives an order again and again until a snapshot shows that it is carried out.
pub async fn carry_out(engine: &mut AgentsEngine, order: &Order) -> ClusterSnapshot {
    let began = Instant::now();
    loop {
        let receipts = engine.apply(std::slice::from_ref(order)).await.unwrap();
        assert!(!matches!(receipts[0].outcome, StepOutcome::Refused { .. }), "{receipts:?}");
        let snapshot = engine.snapshot().await.unwrap();
        match verify(order, &snapshot) {
            OrderProgress::Done => return snapshot,
            OrderProgress::Pending => {}
            OrderProgress::Lost { reason } => panic!("{order:?}: {reason}"),
        }
        let text: String = format!("{receipts:?} {:?}", snapshot.jobs).chars().take(1500).collect();
        assert!(began.elapsed() < Duration::from_secs(60), "{text}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_on_two_nodes_is_resized_and_ends() {
    let site = Site::new(&["n1", "n2"], Fencing::Keep);
    let agents = site.agents().await;
    let mut engine = site.engine(&agents).await;
    let work = BenchJob { steps: 3000, ..lasting(1.0) };
    let key = engine.submit(&submission("resnet", 4, &work)).await.unwrap();
    let seen = engine.snapshot().await.unwrap();
    assert_eq!((job(&seen, &key).phase, seen.nodes[0].free), (JobPhase::Held, 2));

    let everywhere = order(&key, 0, place(vec![on("n1", 2), on("n2", 2)]));
    carry_out(&mut engine, &everywhere).await;
    let seen = look(&mut engine, "runs", |seen| {
        job(seen, &key).phase == JobPhase::Running && job(seen, &key).done > Some(0.0)
    })
    .await;
    let attempt = job(&seen, &key).attempt.clone().unwrap();
    assert_eq!((attempt.number, attempt.placement.len(), seen.nodes[0].free, seen.nodes[1].free), (0, 2, 0, 0));
    assert!(attempt.placement.iter().all(|on| on.accelerators.len() == 2));
    let seen = look(&mut engine, "says how fast it is", |seen| !seen.said.is_empty()).await;
    let mut learned = Learned::default();
    for said in seen.said {
        assert_eq!((said.job.as_str(), said.accelerator.as_str()), (key.as_str(), "a100"));
        learned.take(&said.accelerator, &said.measured);
    }
    let learned = learned.throughput("a100").unwrap();
    let batch = goodput_env::model::BatchConfig { atomic: 32, accumulation: 0 };
    let off = learned.iter_time(2, 4, batch) / work.throughput.iter_time(2, 4, batch) - 1.0;
    assert!(off.abs() < 0.01, "its speed is known by now: {off}");

    let resize = order(&key, 1, EngineAction::Resize { placement: vec![on("n2", 1)], grace_s: 5 });
    let seen = carry_out(&mut engine, &resize).await;
    assert_eq!((job(&seen, &key).starts, job(&seen, &key).failures), (2, 0));
    let again = engine.apply(std::slice::from_ref(&resize)).await.unwrap();
    assert_eq!(again[0].outcome, StepOutcome::Accepted, "an order that is carried out is not begun again");
    let seen = look(&mut engine, "ends", |seen| job(seen, &key).phase == JobPhase::Done).await;
    assert_eq!((job(&seen, &key).starts, seen.nodes[0].free, seen.nodes[1].free), (2, 2, 2));
    look(&mut engine, "forgotten", |_| agents.iter().all(|agent| agent.agent.status().attempts.is_empty())).await;
}

/// Agents of one machine keep the parts of an attempt apart: the first part to end takes the other with it else,
/// and the job counts as failed and runs again though all went well.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_ends_leaves_the_part_on_another_node_alone() {
    let site = Site::new(&["n1", "n2"], Fencing::Keep);
    let agents = site.agents().await;
    let mut engine = site.engine(&agents).await;
    let command = ["/bin/sh", "-c", "test $NODE_RANK = 0 || sleep 1"].map(ToOwned::to_owned).to_vec();
    let two_parts = Submission { command, ..submission("uneven", 2, &lasting(1.0)) };
    let key = engine.submit(&two_parts).await.unwrap();
    engine.apply(&[order(&key, 0, place(vec![on("n1", 1), on("n2", 1)]))]).await.unwrap();
    let seen = look(&mut engine, "ends", |seen| job(seen, &key).attempt.is_none()).await;
    let ended = job(&seen, &key);
    assert_eq!((ended.phase, ended.starts, ended.failures), (JobPhase::Done, 1, 0), "{}", ended.note);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_waits_and_one_that_is_cancelled_is_gone() {
    let site = Site::new(&["n1"], Fencing::Keep);
    let agents = site.agents().await;
    let mut engine = site.engine(&agents).await;
    let bad = BenchJob { misbehave: Some(Misbehaviour::Exit1), ..lasting(1.0) };
    let key = engine.submit(&submission("bad", 1, &bad)).await.unwrap();
    engine.apply(&[order(&key, 0, place(vec![on("n1", 1)]))]).await.unwrap();
    let seen = look(&mut engine, "failed", |seen| job(seen, &key).failures == 1).await;
    assert_eq!((job(&seen, &key).phase, job(&seen, &key).starts), (JobPhase::Held, 1));
    assert!(job(&seen, &key).note.ends_with("is tried again: exit code 1 on n1"), "{}", job(&seen, &key).note);
    let receipts = engine.apply(&[order(&key, 1, place(vec![on("n1", 1)]))]).await.unwrap();
    assert!(matches!(&receipts[0].outcome, StepOutcome::Later { reason } if reason.contains("failed")), "{receipts:?}");

    let own = RetryBudget { failures: 1, first_wait_s: 0, ..RetryBudget::default() };
    let folder = site.shared.path().join("of-it-alone");
    let command = ["/bin/sh", "-c", "echo x >> $SCHED_CHECKPOINT_DIR/starts; exit 1"].map(ToOwned::to_owned).to_vec();
    let job_of = submission("twice", 1, &bad);
    let twice = Submission { retry: own, checkpoint_dir: Some(folder.clone()), command, ..job_of };
    let twice = engine.submit(&twice).await.unwrap();
    for start in 0..2 {
        engine.apply(&[order(&twice, start, place(vec![on("n1", 1)]))]).await.unwrap();
        look(&mut engine, "fails", |seen| job(seen, &twice).failures == start + 1).await;
    }
    let seen = engine.snapshot().await.unwrap();
    let note = &job(&seen, &twice).note;
    assert_eq!(job(&seen, &twice).phase, JobPhase::Failed, "its own budget is used up: {note}");
    assert!(note.contains("more than the 1 times forgiven"), "{note}");
    assert_eq!(std::fs::read_to_string(folder.join("starts")).unwrap().lines().count(), 2);

    let good = engine.submit(&submission("good", 1, &lasting(60.0))).await.unwrap();
    carry_out(&mut engine, &order(&good, 0, place(vec![on("n1", 1)]))).await;
    let full = engine.submit(&submission("full", 1, &lasting(60.0))).await.unwrap();
    let receipts = engine.apply(&[order(&full, 0, place(vec![on("n1", 2)]))]).await.unwrap();
    assert!(matches!(&receipts[0].outcome, StepOutcome::Later { reason } if reason.contains("1 of 2")), "{receipts:?}");
    carry_out(&mut engine, &order(&good, 1, EngineAction::Cancel { grace_s: 5 })).await;
    carry_out(&mut engine, &order(&key, 1, EngineAction::Cancel { grace_s: 5 })).await;
    let drain = EngineAction::Drain { node: "n1".to_owned(), reason: "a fan".to_owned() };
    let seen = carry_out(&mut engine, &order("", 0, drain)).await;
    assert_eq!((seen.nodes[0].health, seen.nodes[0].note.as_str()), (NodeHealth::Drained, "a fan"));
    let refused = engine.submit(&Submission { command: Vec::new(), ..submission("x", 1, &lasting(1.0)) }).await;
    assert!(refused.unwrap_err().to_string().contains("command"));
}

/// Of drills 1 and 5: another daemon takes over, sees what runs, and the first one is not obeyed
/// any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_takes_over_what_runs_and_the_first_is_refused() {
    let site = Site::new(&["n1"], Fencing::Keep);
    let agents = site.agents().await;
    let mut first = site.engine(&agents).await;
    let key = first.submit(&submission("a", 1, &lasting(60.0))).await.unwrap();
    carry_out(&mut first, &order(&key, 0, place(vec![on("n1", 1)]))).await;
    let pids = agents[0].agent.status().attempts.len();

    let mut second = AgentsEngine::open(site.settings(&[agents[0].address])).unwrap();
    let watching = second.snapshot().await.unwrap();
    assert_eq!(job(&watching, &key).starts, 1, "a standby only looks");
    let refused = second.apply(&[order(&key, 1, EngineAction::Stop { grace_s: 1 })]).await.unwrap();
    assert!(matches!(refused[0].outcome, StepOutcome::Refused { .. }));
    second.lead(2).await.unwrap();
    let seen = look(&mut second, "adopted", |seen| job(seen, &key).phase == JobPhase::Running).await;
    assert_eq!((job(&seen, &key).starts, pids), (1, 1), "and starts nothing again");

    first.apply(&[order(&key, 1, EngineAction::Stop { grace_s: 0 })]).await.unwrap();
    first.snapshot().await.unwrap();
    let refused = first.apply(&[order(&key, 1, EngineAction::Stop { grace_s: 0 })]).await.unwrap();
    assert!(matches!(refused[0].outcome, StepOutcome::Refused { .. }), "the first has learned that it does not lead");
    let seen = second.snapshot().await.unwrap();
    assert_eq!(job(&seen, &key).phase, JobPhase::Running, "and its order did nothing");
}

/// Passes connections on to `to` until it is cut.
async fn wire(to: std::net::SocketAddr) -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let passing = tokio::spawn(async move {
        let mut wires = tokio::task::JoinSet::new();
        while let Ok((mut near, _)) = listener.accept().await {
            wires.spawn(async move {
                let mut far = tokio::net::TcpStream::connect(to).await?;
                tokio::io::copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    (at, passing)
}

/// Drills 4 and 5 at once: the old leader still reaches a node when the new one, that stood by,
/// does not any more. What the old one renewed counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_leader_leaves_a_node_that_it_does_not_reach_the_lease_of_the_old_one() {
    let site = Site::new(&["n1"], Fencing::Kill { after_ms: 1500 });
    let agent = site.nodes[0].spawn();
    let mut old = AgentsEngine::open(site.settings(&[agent.address])).unwrap();
    let (through, passing) = wire(agent.address).await;
    let mut new = AgentsEngine::open(site.settings(&[through])).unwrap();
    old.lead(1).await.unwrap();
    look(&mut old, "nodes", |seen| seen.nodes[0].gpus == 2).await;
    let key = old.submit(&submission("a", 1, &lasting(60.0))).await.unwrap();
    carry_out(&mut old, &order(&key, 0, place(vec![on("n1", 1)]))).await;
    let client = site.nodes[0].client(agent.address);
    let (seen, _) = until(&client, "a process", |seen| seen.accelerators[0].processes.len() == 1).await;
    let pid = seen.accelerators[0].processes[0];
    look(&mut new, "heard", |seen| seen.nodes[0].health == NodeHealth::Up).await;

    passing.abort();
    let cut = Instant::now();
    while cut.elapsed() < Duration::from_millis(2500) {
        old.snapshot().await.unwrap();
        let seen = new.snapshot().await.unwrap();
        assert!(job(&seen, &key).phase.holds(), "who stands by gives nothing up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(is_alive(pid), "it is renewed");
    old.snapshot().await.unwrap();
    old.follow();
    new.lead(2).await.unwrap();
    let led = Instant::now();
    while job(&new.snapshot().await.unwrap(), &key).phase != JobPhase::Held {
        old.snapshot().await.unwrap();
        assert!(led.elapsed() < Duration::from_secs(15), "never given up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!is_alive(pid), "given up after {:?}, and it still runs", led.elapsed());
}

/// Review, finding 16: an agent that takes connections and says nothing cost each look its whole
/// patience, so that leases ran out on healthy nodes and their jobs died.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_delays_no_other() {
    let site = Site::new(&["n1", "n2"], Fencing::Kill { after_ms: 4000 });
    let agents = [site.nodes[0].spawn(), site.nodes[1].spawn()];
    let addresses: Vec<_> = agents.iter().map(|agent| agent.address).collect();
    let settings = AgentsConfig { patience_ms: 20_000, lease_ms: 60_000, ..site.settings(&addresses) };
    let mut engine = AgentsEngine::open(settings.clone()).unwrap();
    engine.lead(1).await.unwrap();
    look(&mut engine, "all nodes", |seen| seen.nodes.iter().all(|node| node.gpus == 2)).await;
    let key = engine.submit(&submission("a", 1, &lasting(60.0))).await.unwrap();
    carry_out(&mut engine, &order(&key, 0, place(vec![on("n1", 1)]))).await;
    let client = site.nodes[0].client(agents[0].address);
    let (seen, _) = until(&client, "a process", |seen| seen.accelerators[0].processes.len() == 1).await;
    let pid = seen.accelerators[0].processes[0];

    agents[1].signal(Signal::STOP);
    let (silent, mut looks) = (Instant::now(), 0);
    while silent.elapsed() < Duration::from_secs(10) {
        let seen = engine.snapshot().await.unwrap();
        assert!(is_alive(pid), "its lease ran out after {:?} and {looks} looks", silent.elapsed());
        assert_eq!(job(&seen, &key).phase, JobPhase::Running);
        looks += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(looks > 10, "{looks} looks in {:?}", silent.elapsed());
    let seen = engine.snapshot().await.unwrap();
    assert_eq!(seen.nodes[0].health, NodeHealth::Up);
    assert_eq!(seen.nodes[1].health, NodeHealth::Suspect);
    assert!(seen.nodes[1].note.starts_with("no answer for"), "{}", seen.nodes[1].note);
    // An order to the silent node does not hold up one to the other.
    let (b, c) = (submission("b", 1, &lasting(60.0)), submission("c", 1, &lasting(60.0)));
    let (b, c) = (engine.submit(&b).await.unwrap(), engine.submit(&c).await.unwrap());
    let began = Instant::now();
    engine.apply(&[order(&b, 0, place(vec![on("n2", 1)])), order(&c, 0, place(vec![on("n1", 1)]))]).await.unwrap();
    look(&mut engine, "c runs", |seen| job(seen, &c).phase == JobPhase::Running).await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    agents[1].signal(Signal::CONT);
    look(&mut engine, "n2 is back", |seen| seen.nodes[1].health == NodeHealth::Up).await;

    // Jobs of an agent that would die between two looks are not started in the first place.
    let mut hasty = AgentsEngine::open(settings).unwrap().polled_every(1.0);
    hasty.lead(2).await.unwrap();
    let seen = look(&mut hasty, "heard", |seen| seen.nodes.iter().all(|node| node.gpus == 2)).await;
    assert_eq!(seen.nodes[0].health, NodeHealth::Drained);
    assert!(seen.nodes[0].note.contains("raise after_ms in the agent's file"), "{}", seen.nodes[0].note);
}

/// A node without accelerators is down, and its note says why and what to do.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_finds_no_accelerators_is_down_with_the_reason() {
    let mut site = Site::new(&["n1", "n2"], Fencing::Keep);
    site.nodes[0].config.devices = "nvml:/nonexistent/libnvidia-ml.so.1".parse().unwrap();
    let agents = site.agents().await;
    let addresses: Vec<_> = agents.iter().map(|agent| agent.address).collect();
    let mut engine = AgentsEngine::open(site.settings(&addresses)).unwrap();
    engine.lead(1).await.unwrap();
    let told = |seen: &ClusterSnapshot| seen.nodes[0].note.contains("/nonexistent") && seen.nodes[1].gpus == 2;
    let seen = look(&mut engine, "the reason", told).await;
    assert_eq!((seen.nodes[0].health, seen.nodes[1].health), (NodeHealth::Down, NodeHealth::Up));
    assert!(seen.nodes[0].note.contains("install the NVIDIA driver"), "{}", seen.nodes[0].note);
}

/// Drill 4 where jobs live on: a silent node is suspect, and nothing of it is started elsewhere,
/// ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_is_suspect_and_its_jobs_are_not_started_twice() {
    let site = Site::new(&["n1", "n2"], Fencing::Keep);
    let (agent, other) = (site.nodes[0].spawn(), site.nodes[1].agent().await);
    let mut engine = AgentsEngine::open(site.settings(&[agent.address, other.address])).unwrap();
    engine.lead(1).await.unwrap();
    look(&mut engine, "nodes", |seen| seen.nodes.iter().all(|node| node.gpus == 2)).await;
    let key = engine.submit(&submission("a", 1, &lasting(60.0))).await.unwrap();
    carry_out(&mut engine, &order(&key, 0, place(vec![on("n1", 1)]))).await;
    look(&mut engine, "runs", |seen| job(seen, &key).phase == JobPhase::Running).await;

    agent.signal(Signal::STOP);
    let stopped = Instant::now();
    look(&mut engine, "suspect", |seen| seen.nodes[0].health == NodeHealth::Suspect).await;
    assert!(stopped.elapsed() >= Duration::from_millis(400));
    while stopped.elapsed() < Duration::from_millis(3000) {
        let seen = engine.snapshot().await.unwrap();
        assert!(job(&seen, &key).phase.holds() && job(&seen, &key).starts == 1, "it may run, so it does");
        let receipts = engine.apply(&[order(&key, 1, place(vec![on("n2", 1)]))]).await.unwrap();
        assert!(matches!(receipts[0].outcome, StepOutcome::Refused { .. }));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    agent.signal(Signal::CONT);
    let seen = look(&mut engine, "back", |seen| seen.nodes[0].health == NodeHealth::Up).await;
    assert_eq!((job(&seen, &key).starts, job(&seen, &key).phase), (1, JobPhase::Running));
}

/// Drill 4 where jobs die with the lease: started elsewhere after it, and not before; back again
/// there is no second one.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_fenced_node_are_started_elsewhere_after_the_lease_and_never_run_twice() {
    let site = Site::new(&["n1", "n2"], Fencing::Kill { after_ms: 1500 });
    let (agent, other) = (site.nodes[0].spawn(), site.nodes[1].agent().await);
    let mut engine = AgentsEngine::open(site.settings(&[agent.address, other.address])).unwrap();
    engine.lead(1).await.unwrap();
    look(&mut engine, "nodes", |seen| seen.nodes.iter().all(|node| node.gpus == 2)).await;
    let key = engine.submit(&submission("a", 1, &lasting(60.0))).await.unwrap();
    carry_out(&mut engine, &order(&key, 0, place(vec![on("n1", 1)]))).await;
    let client = site.nodes[0].client(agent.address);
    let (seen, _) = until(&client, "a process", |seen| seen.accelerators[0].processes.len() == 1).await;
    let pid = seen.accelerators[0].processes[0];
    engine.snapshot().await.unwrap();

    agent.signal(Signal::STOP);
    let stopped = Instant::now();
    let elsewhere = order(&key, 1, place(vec![on("n2", 1)]));
    let seen = look(&mut engine, "given up", |seen| job(seen, &key).phase == JobPhase::Held).await;
    let given_up = stopped.elapsed();
    assert!(given_up >= Duration::from_millis(1800), "the lease is 2 s: {given_up:?}");
    assert!(!is_alive(pid), "the keeper has ended it by then, whatever its agent does");
    assert_eq!((seen.nodes[0].health, job(&seen, &key).failures), (NodeHealth::Down, 0));
    carry_out(&mut engine, &elsewhere).await;
    agent.signal(Signal::CONT);
    let seen =
        look(&mut engine, "back", |seen| seen.nodes[0].health == NodeHealth::Up && seen.nodes[0].free == 2).await;
    assert_eq!((job(&seen, &key).starts, job(&seen, &key).phase), (2, JobPhase::Running));
    look(&mut engine, "forgotten", |_| true).await;
    let (seen, _) = until(&client, "nothing", |seen| seen.attempts.is_empty()).await;
    assert!(seen.accelerators.iter().all(|device| device.processes.is_empty()));
    println!("given up {given_up:?} after its last word");
}

/// A limit that is not kept would be a false promise.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_asks_for_processors_is_limited_or_refused() {
    let site = Site::new(&["n1"], Fencing::Keep);
    let agents = site.agents().await;
    let mut engine = site.engine(&agents).await;
    let asks = |resources| Submission { resources, ..submission("limited", 1, &lasting(600.0)) };
    let account = JobResources { account: Some("a".into()), ..JobResources::default() };
    let refused = engine.submit(&asks(account)).await.unwrap_err().to_string();
    assert!(refused.contains("leave out time limit, account"), "{refused}");

    let limits = JobResources { cpus_per_gpu: Some(1), memory_per_gpu_mib: Some(100), ..JobResources::default() };
    let submitted = engine.submit(&asks(limits)).await;
    if !agents[0].agent.status().keeps_limits {
        println!("SKIPPED: no limit is seen at work where cgroup v2 has no controllers for processors and memory");
        let refused = submitted.unwrap_err().to_string();
        assert!(refused.contains("node n1 keeps no limits"), "{refused}");
        return;
    }
    let key = submitted.unwrap();
    carry_out(&mut engine, &order(&key, 0, place(vec![on("n1", 1)]))).await;
    let used = |_: &ClusterSnapshot| agents[0].agent.status().accelerators.iter().any(|one| !one.processes.is_empty());
    look(&mut engine, "a process on an accelerator", used).await;
    let pid = agents[0].agent.status().accelerators.iter().find_map(|one| one.processes.first().copied()).unwrap();
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
    let limit = std::fs::read_to_string(std::path::Path::new("/sys/fs/cgroup").join(group).join("memory.max"));
    assert_eq!(limit.unwrap().trim(), "104857600");
}
