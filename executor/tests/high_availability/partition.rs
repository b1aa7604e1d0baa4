//! Drill 23: two daemons on two hosts, the wires between them and the rest cut at random, etcd and
//! daemons killed. Never two leaders that act, no accepted job lost, none doubled.
//!
//! Clients do as `goodput live submit` does: a daemon that stands by names the leader, and what was
//! not answered is tried again under its idempotency key, at either daemon. `GOODPUT_CUTS` says how
//! many faults; 10 in the suite.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::{AgentsConfig, EngineConfig};
use goodput_configs::live::leader::{LeaderConfig, LeaseKeeper};
use goodput_configs::live::node_agent::Fencing;
use goodput_configs::live::tls::TlsFiles;
use goodput_configs::reader;
use goodput_env::cluster::Pool;
use goodput_env::seed::{Stream, rng};
use goodput_env::tenant::Tenants;
use goodput_executor::agent::tls::{self, DAEMON};
use goodput_executor::daemon::{self, interface::api};
use goodput_executor::engine::agents::AgentsEngine;
use goodput_executor::etcd::Etcd;
use goodput_testkit::etcd::PrivateEtcd;
use rand::RngExt;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::network::{AGENTS, DAEMONS, ETCD, Ended, Network, outside};
use super::skipped;
use crate::nodes::{AgentProcess, Node, name};

const PORT: u16 = 7070;
const TOKEN: &str = "drill";

/// A job that holds a kernel lock for each of its parts and one for each of its accelerators, and writes down
/// where a lock is held by another: then something runs twice. The command runs once on each node of a job.
const JOB: &str = r#"
exec 9>>"$W/job-$1-$NODE_RANK.lock"; flock -n 9 || { echo "job $1" >>"$W/twice"; exit 0; }
for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
  ( exec 8>>"$W/gpu-$gpu.lock"; flock -n 8 || { echo "accelerator $gpu" >>"$W/twice"; exit 0; }; sleep "$2" ) 9>&- &
done
wait
test "$NODE_RANK" = 0 || exit 0
echo done >>"$W/done-$1"
"#;

struct Site {
    folder: TempDir,
    network: Network,
    etcd: PrivateEtcd,
    daemons: [Option<Ended>; 2],
    agents: Vec<AgentProcess>,
    nodes: Vec<Node>,
    submitted: u32,
    accepted: BTreeSet<String>,
    /// Jobs that no daemon has accepted yet.
    waiting: VecDeque<Value>,
    /// Answers to all tries, by kind.
    answers: BTreeMap<&'static str, u32>,
    /// Host that clients do not reach, or that has a dead daemon.
    gone: Option<usize>,
}

/// Answer to a try.
enum Answer {
    Accepted,
    /// Another host leads.
    Elsewhere(usize),
    /// None leads, or the leader accepts nothing now.
    NotNow,
    /// The connection broke, or time was over: the daemon may have accepted the job.
    Silence,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let network = Network::new();
        let etcd = PrivateEtcd::start_in(folder.path(), &["env"], ETCD).unwrap();
        assert!(etcd.wait(Duration::from_secs(60)), "etcd does not serve");
        let certs = folder.path().join("certs");
        let names = ["n0", "n1", "n2"];
        tls::create(&certs, &names.map(name)).unwrap();
        let nodes = names.map(|node| {
            let mut node = Node::with_certs(node, tempfile::tempdir().unwrap(), &certs);
            node.config.listen = SocketAddr::new(AGENTS.parse().unwrap(), 0);
            node.config.checkpoint_root = folder.path().join("checkpoints");
            node.config.fencing = Fencing::Keep;
            node
        });
        let nodes = Vec::from(nodes);
        let agents = nodes.iter().map(Node::spawn).collect();
        fs::create_dir_all(folder.path().join("witness")).unwrap();
        let (submitted, accepted, waiting, answers) = (0, BTreeSet::new(), VecDeque::new(), BTreeMap::new());
        let daemons = [None, None];
        let mut site =
            Self { folder, network, etcd, daemons, agents, nodes, submitted, accepted, waiting, answers, gone: None };
        (0..2).for_each(|host| site.start(host));
        site
    }

    fn state(&self, host: usize) -> PathBuf {
        self.folder.path().join(format!("host{host}"))
    }

    fn settings(&self, host: usize) -> Deployment {
        let (state, sha256) = (self.state(host), api::hash(TOKEN));
        let text = format!(
            "mode = \"act\"\n[engine.slurm]\n[policy]\nname = \"fifo\"\n[reliance]\ntimeout_ms = 20000\nfallback = \"fifo\"\n[state]\ndirectory = \"{}\"\nname = \"host{host}\"\nlease_secs = 3\n[api]\nlisten = \"{}:{PORT}\"\n[[api.tokens]]\nname = \"drill\"\nrole = \"write\"\nsha256 = \"{sha256}\"\n[cycle]\npoll_secs = 0.2\nround_secs = 1.0\n[guard]\nmin_run_secs = 0\npreempt_every_secs = 0\npreempt_percent = 100\n",
            state.join("state").display(),
            DAEMONS[host],
        );
        let mut settings = reader::parse::<Deployment>("drill.toml", &text).unwrap();
        settings.engine = EngineConfig::Agents(AgentsConfig {
            nodes: self
                .nodes
                .iter()
                .zip(&self.agents)
                .map(|(node, agent)| node.at(agent.address, Pool::Shared))
                .collect(),
            tls: TlsFiles::of(&self.folder.path().join("certs"), DAEMON),
            folder: state.join("jobs"),
            leader: format!("host{host}"),
            suspect_ms: 3000,
            lease_ms: 30_000,
            patience_ms: 1000,
        });
        let address = Some(format!("http://{}:{PORT}", DAEMONS[host]));
        settings.leader = LeaderConfig { address, lease: LeaseKeeper::Etcd(self.etcd.config(None)) };
        settings
    }

    /// Starts the daemon of a host, again where it was killed.
    fn start(&mut self, host: usize) {
        let directory = self.state(host);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("drill.toml"), toml::to_string(&self.settings(host)).unwrap()).unwrap();
        let mut command = self.network.command(host, &std::env::current_exe().unwrap());
        command.args(["high_availability::partition::child", "--exact", "--ignored", "--nocapture"]);
        let log = fs::File::options().create(true).append(true).open(directory.join("log")).unwrap();
        let child = command.env("GOODPUT_DRILL", &directory).stderr(log).spawn().unwrap();
        self.daemons[host] = Some(Ended(child));
    }

    fn call(&self, host: usize, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let timeout = Some(Duration::from_millis(1500));
        let agent =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(timeout).build().new_agent();
        let uri = format!("http://{}:{PORT}{path}", DAEMONS[host]);
        let request = ureq::http::Request::builder().method(method).uri(uri);
        let request = request.header("authorization", format!("Bearer {TOKEN}"));
        let request = request.header("content-type", "application/json");
        let key = body.map_or("none", |body| body["spec"]["request"]["name"].as_str().unwrap_or("none"));
        let request = request.header("idempotency-key", key);
        let mut answer = match body {
            Some(body) => agent.run(request.body(body.to_string()).ok()?).ok()?,
            None => agent.run(request.body(()).ok()?).ok()?,
        };
        let text = answer.body_mut().read_to_string().ok()?;
        Some((answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    /// The host with a daemon that says that it leads.
    fn leader(&self) -> Option<usize> {
        (0..2)
            .find(|&host| self.call(host, "GET", "/v1/status", None).is_some_and(|(_, status)| status["term"].is_u64()))
    }

    /// Makes a job, and has a client hand it in at a host.
    fn submit(&mut self, host: usize, gpus: u32, secs: f64) {
        self.submitted += 1;
        let job = format!("j{}", self.submitted);
        let request =
            json!({ "name": job, "tenant": 0, "submit": 0, "gpus": gpus, "batch_size": null, "elasticity": "rigid" });
        let body = json!({
            "spec": { "request": request, "work": { "fixed": { "duration": 1000 } } },
            "command": ["/bin/sh", "-c", JOB, "job", job, secs.to_string()],
            "environment": { "W": self.folder.path().join("witness") },
        });
        self.waiting.push_front(body);
        self.hand_in(host);
    }

    /// Hands the first job that waits in at a host, and where that one stands by at the leader that it names.
    fn hand_in(&mut self, host: usize) {
        let Some(body) = self.waiting.pop_front() else { return };
        let answer = match self.offer(host, &body) {
            Answer::Elsewhere(leader) => self.offer(leader, &body),
            answer => answer,
        };
        match answer {
            Answer::Accepted => {
                self.accepted.insert(body["spec"]["request"]["name"].as_str().unwrap().to_owned());
            }
            Answer::Elsewhere(_) | Answer::NotNow | Answer::Silence => self.waiting.push_back(body),
        }
    }

    fn offer(&mut self, host: usize, body: &Value) -> Answer {
        let (kind, answer) = match self.call(host, "POST", "/v1/jobs", Some(body)) {
            None if self.gone == Some(host) => ("no answer of a host that is cut off or dead", Answer::Silence),
            None => ("no answer in time", Answer::Silence),
            Some((200, _)) => ("accepted by an earlier try", Answer::Accepted),
            Some((201, _)) => ("accepted", Answer::Accepted),
            Some((421, refusal)) => {
                let named = |host: &usize| refusal["leader"]["name"] == format!("host{host}");
                ("sent to the leader", Answer::Elsewhere((0..2).find(named).unwrap()))
            }
            Some((503, refusal)) if refusal["leader"].is_null() && refusal.get("leader").is_some() => {
                ("none leads", Answer::NotNow)
            }
            Some((503, _)) => ("not now", Answer::NotNow),
            Some(other) => panic!("host{host}: {other:?}"),
        };
        *self.answers.entry(kind).or_default() += 1;
        answer
    }

    fn witness(&self) -> PathBuf {
        self.folder.path().join("witness")
    }

    /// Lines of the audit logs about the first job that a witness names.
    fn told_of(&self, witness: &str) -> String {
        let job = witness.split_whitespace().nth(1).unwrap_or_default();
        let logs =
            [0, 1].map(|host| fs::read_to_string(self.state(host).join("state/audit.jsonl")).unwrap_or_default());
        let told = |line: &&str| line.contains(&format!("\"{job}-")) || line.contains("\"kind\":\"start\"");
        logs.each_ref().map(|log| log.lines().filter(told).collect::<Vec<_>>().join("\n")).join("\n--\n")
    }

    fn left(&self) -> Vec<&String> {
        self.accepted.iter().filter(|job| !self.witness().join(format!("done-{job}")).exists()).collect()
    }
}

#[test]
fn two_hosts_and_a_wire_that_is_cut_lose_and_double_nothing() {
    if skipped() || outside("high_availability::partition::two_hosts_and_a_wire_that_is_cut_lose_and_double_nothing") {
        return;
    }
    let cuts: u32 = std::env::var("GOODPUT_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(10);
    let mut site = Site::new();
    let mut random = rng(5, Stream::Faults);
    let began = Instant::now();
    while site.leader().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "no daemon leads");
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut faults = BTreeMap::<&str, u32>::new();
    for _ in 0..cuts {
        (0..3).for_each(|_| {
            let (host, gpus, secs) =
                (random.random_range(0..2), random.random_range(1..=2), random.random_range(0.1..1.5));
            site.submit(host, gpus, secs);
        });
        let (leader, other) = (site.leader().unwrap_or(0), random.random_range(0..2));
        let fault = match random.random_range(0..8) {
            0 | 1 => (site.network.cut(leader), "wire of the leader cut").1,
            2 => (site.network.cut(other), "a wire cut").1,
            3 => (site.network.mute(leader, AGENTS), "agents do not hear the leader").1,
            4 => (site.network.deafen(leader), "the leader hears nothing").1,
            5 => (site.network.mute(leader, ETCD), "etcd does not hear the leader").1,
            6 => (site.etcd.kill(), "etcd killed").1,
            _ => (site.daemons[leader] = None, "the leader killed").1,
        };
        *faults.entry(fault).or_default() += 1;
        site.gone = match fault {
            "a wire cut" => Some(other),
            "wire of the leader cut" | "the leader hears nothing" | "the leader killed" => Some(leader),
            _ => None,
        };
        // Shorter than a lease, and longer.
        let heals = Instant::now() + Duration::from_millis(random.random_range(300..6000));
        while Instant::now() < heals {
            let gpus = random.random_range(1..=2);
            site.submit(random.random_range(0..2), gpus, random.random_range(0.1..1.0));
            site.hand_in(random.random_range(0..2));
            std::thread::sleep(Duration::from_millis(300));
        }
        site.network.heal();
        if fault == "etcd killed" {
            site.etcd.run().unwrap();
        }
        for host in 0..2 {
            if site.daemons[host].is_none() {
                site.start(host);
            }
        }
        site.gone = None;
        std::thread::sleep(Duration::from_millis(random.random_range(0..1500)));
    }
    let healed = Instant::now();
    let at_once = site.accepted.len();
    while !site.waiting.is_empty() {
        assert!(healed.elapsed() < Duration::from_secs(60), "not accepted: {:?}\n{:?}", site.waiting, site.answers);
        site.hand_in(random.random_range(0..2));
    }
    while !site.left().is_empty() {
        let logs: Vec<String> =
            (0..2).map(|host| fs::read_to_string(site.state(host).join("log")).unwrap_or_default()).collect();
        assert!(
            healed.elapsed() < Duration::from_secs(120),
            "lost: {:?} of {}\n{}\n{}",
            site.left(),
            site.accepted.len(),
            logs[0],
            logs[1]
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    let twice = fs::read_to_string(site.witness().join("twice")).unwrap_or_default();
    assert_eq!(twice, "", "ran twice at once; {}", site.told_of(&twice));
    for job in &site.accepted {
        let ends = fs::read_to_string(site.witness().join(format!("done-{job}"))).unwrap();
        assert_eq!(ends, "done\n", "{job} ran to its end more than once; {}", site.told_of(&format!("job {job}")));
    }
    let terms = terms(&[0, 1].map(|host| site.state(host).join("state/audit.jsonl")));
    assert_eq!(site.accepted.len(), site.submitted as usize);
    eprintln!(
        "{cuts} faults {faults:?}: {} jobs accepted, {at_once} of them while faults went on, 0 lost, 0 doubled; answers {:?}; {terms} terms; {:.0} s, the last job {:.1} s after the last fault",
        site.submitted,
        site.answers,
        began.elapsed().as_secs_f64(),
        healed.elapsed().as_secs_f64(),
    );
}

/// Number of terms in the audit logs of all daemons. What two leaders did must not overlap in time:
/// all hosts read one clock here.
fn terms(logs: &[PathBuf]) -> usize {
    let mut spans = BTreeMap::<u64, (usize, i64, i64)>::new();
    for (host, log) in logs.iter().enumerate() {
        let mut term = None;
        for line in fs::read_to_string(log).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let (kind, at_ms) = (line["kind"].as_str().unwrap(), line["at_ms"].as_i64().unwrap());
            match kind {
                "start" => term = line["body"]["term"].as_u64(),
                "decision" | "verified" | "api" => {}
                _ => continue,
            }
            let Some(term) = term else { continue };
            let span = spans.entry(term).or_insert((host, at_ms, at_ms));
            assert_eq!(span.0, host, "two daemons led term {term}");
            span.2 = span.2.max(at_ms);
        }
    }
    let all: Vec<_> = spans.iter().collect();
    for pair in all.windows(2) {
        let ((before, (.., end)), (after, (_, begin, _))) = (pair[0], pair[1]);
        assert!(end <= begin, "term {before} acted until {end}, and term {after} from {begin} on");
    }
    spans.len()
}

/// The daemon of a host, as a process of its own in the network of that host.
#[test]
#[ignore = "a part of the drill above"]
fn child() {
    let directory = PathBuf::from(std::env::var("GOODPUT_DRILL").unwrap());
    run(&directory);
}

fn run(directory: &Path) {
    let settings = reader::read::<Deployment>(&directory.join("drill.toml"), &[]).unwrap().0;
    let EngineConfig::Agents(agents) = settings.engine.clone() else { panic!("it drives agents") };
    let etcd = Etcd::new(settings.leader.etcd().unwrap()).unwrap();
    let engine = AgentsEngine::open(agents).unwrap().shared(etcd);
    let daemon = daemon::open(engine, settings, Vec::new(), Arc::new(Tenants::default())).unwrap();
    let (_stop, stopped) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(api::run(daemon, stopped)).unwrap();
}
