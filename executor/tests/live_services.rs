//! Services of a deployment beside training jobs, on node agents: a mixed policy starts and ends
//! replicas that are real processes, lends nodes to training and calls them back.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::forecasts::double::Double;
use crate::nodes::*;
use crate::replica::{CLIENTS, REPLICA, ready};
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::live::tls::TlsFiles;
use goodput_configs::reader;
use goodput_env::cluster::Pool;
use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_env::tenant::Tenants;
use goodput_executor::agent::Running;
use goodput_executor::agent::api::AttemptState;
use goodput_executor::agent::tls::{self, DAEMON};
use goodput_executor::daemon::interface::status::DaemonStatus;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::agents::AgentsEngine;
use goodput_executor::engine::{DeclaredService, ReplicaStage, ServiceSeen, Submission};
use goodput_executor::machine::wall_ms;
use serde_json::Value;
use tempfile::TempDir;

/// Three nodes with two accelerators each: one for training, two for inference.
struct Site {
    agents: Vec<Running>,
    settings: Deployment,
    load: PathBuf,
    // Nodes end what runs on them before their folders go.
    _nodes: Vec<Node>,
    shared: TempDir,
}

impl Site {
    async fn new(services: &str) -> Self {
        Self::under("fifo+reactive", services).await
    }

    async fn under(policy: &str, services: &str) -> Self {
        let shared = tempfile::tempdir().unwrap();
        let certs = shared.path().join("certs");
        let names = ["n1", "n2", "n3"];
        tls::create(&certs, &names.map(name)).unwrap();
        let (mut nodes, mut agents, mut listed) = (Vec::new(), Vec::new(), Vec::new());
        for node in names {
            let mut node = Node::with_certs(node, tempfile::tempdir().unwrap(), &certs);
            node.config.checkpoint_root = shared.path().join("checkpoints");
            let agent = node.agent().await;
            let pool = if node.config.node.as_str() == "n1" { "training" } else { "inference" };
            listed.push(format!(
                "{{ name = \"{}\", address = \"{}\", pool = \"{pool}\" }}",
                node.config.node, agent.address
            ));
            nodes.push(node);
            agents.push(agent);
        }
        let TlsFiles { ca, cert, key } = TlsFiles::of(&certs, DAEMON);
        let place = |name: &str| shared.path().join(name).display().to_string();
        let text = format!(
            "mode = \"act\"\n[engine.agents]\nfolder = {:?}\nnodes = [{}]\ntls = {{ ca = {ca:?}, cert = {cert:?}, key = {key:?} }}\n\
             suspect_ms = 2000\n[policy]\nname = \"{policy}\"\n[reliance]\ntimeout_ms = 5000\n[state]\ndirectory = {:?}\n\
             name = \"d1\"\n[api]\nlisten = \"\"\n[cycle]\nround_secs = 30\nspeedup = 60\n[guard]\nmin_run_secs = 0\n\
             preempt_every_secs = 0\npreempt_percent = 100\n{services}",
            place("engine"),
            listed.join(", "),
            place("state"),
        );
        let load = shared.path().join("load");
        let text = text.replace("LOAD_FILE", &load.display().to_string());
        let settings = reader::parse("live.toml", &text).unwrap();
        Self { agents, settings, load, _nodes: nodes, shared }
    }

    fn daemon(&self) -> Daemon<AgentsEngine> {
        let EngineConfig::Agents(agents) = self.settings.engine.clone() else { panic!("it drives agents") };
        let engine = AgentsEngine::open(agents).unwrap().with_services(DeclaredService::of(&self.settings).unwrap());
        daemon::open(engine, self.settings.clone(), Vec::new(), Arc::new(Tenants::default())).unwrap()
    }

    /// Shares `total` requests per second among the replicas that are ready.
    fn share(&self, total: f64, service: &ServiceSeen) {
        let new = self.shared.path().join("load.new");
        std::fs::write(&new, (total / ready(service).max(1) as f64).to_string()).unwrap();
        std::fs::rename(new, &self.load).unwrap();
    }

    /// Names of the attempts of replicas that run, as their agents tell them.
    fn replicas(&self) -> Vec<String> {
        let attempts = self.agents.iter().flat_map(|agent| agent.agent.status().attempts);
        let running = attempts.filter(|attempt| attempt.job.as_str().starts_with("web-"));
        running.filter(|attempt| attempt.state == AttemptState::Running).map(|attempt| attempt.id).collect()
    }
}

/// Cycles, with `load` requests per second, until the status is as wanted.
async fn until(
    site: &Site,
    daemon: &mut Daemon<AgentsEngine>,
    load: Option<f64>,
    what: &str,
    wanted: impl Fn(&DaemonStatus) -> bool,
) -> DaemonStatus {
    let began = Instant::now();
    loop {
        daemon.cycle().await.unwrap();
        let status = daemon.status().lock().unwrap().clone();
        if let (Some(load), Some(service)) = (load, status.services.first()) {
            site.share(load, &service.seen);
        }
        if wanted(&status) {
            return status;
        }
        let text: String = format!("{:?} {:?} {:?}", status.services, status.nodes, status.alerts);
        assert!(began.elapsed() < Duration::from_secs(40), "{what}: {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn service(more: &str) -> String {
    format!(
        "[[services]]\nname = \"web\"\ncommand = [\"python3\", \"-c\", {REPLICA:?}]\n\
         environment = {{ LOAD = \"LOAD_FILE\", PYTHONPATH = {CLIENTS:?}, PYTHONDONTWRITEBYTECODE = \"1\" }}\n\
         profiles = {{ a100 = [[1, 10.0]] }}\nslo = {{ latency_ms = 100 }}\ncold_start_secs = 20\nmax_replicas = 4\n{more}"
    )
}

fn training(job: &str) -> Submission {
    let work = lasting(600.0);
    let request = JobRequest { name: job.to_owned(), ..JobRequest::default() };
    let spec = JobSpec { request, work: Work::Steps { class: 0, steps: work.steps as f64 } };
    Submission { grace_s: 5, ..Submission::new(spec, bench(&work)) }
}

/// Load of a second: low and high in turn.
fn wave(second: i64) -> f64 {
    if second.rem_euclid(24) < 12 { 20.0 } else { 200.0 }
}

fn lent(status: &DaemonStatus) -> Vec<&str> {
    status.nodes.iter().filter(|node| node.lent).map(|node| node.name.as_str()).collect()
}

fn running(status: &DaemonStatus) -> usize {
    status.queue.iter().filter(|row| row.phase == "running").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_policy_scales_a_service_and_lends_what_it_does_not_need() {
    let site = Site::new(&service("")).await;
    let mut daemon = site.daemon();
    until(&site, &mut daemon, None, "nodes", |status| status.nodes.iter().all(|node| node.gpus == 2)).await;
    for job in ["a", "b", "c", "d"] {
        daemon.submit("test", &training(job)).await.unwrap();
    }
    // The smallest number of replicas runs before any load is known, and no load is invented.
    let silent = |status: &DaemonStatus| site.replicas().len() == 1 && running(status) == 2;
    let status = until(&site, &mut daemon, None, "one replica", silent).await;
    assert_eq!((status.services[0].seen.rate, status.services[0].seen.replicas[0].node.as_str()), (None, "n2"));
    assert!(matches!(status.services[0].seen.replicas[0].phase, ReplicaStage::Starting { .. }), "it has not reported");
    assert_eq!((status.nodes[1].pool, lent(&status)), (Pool::Inference, vec![]), "no load is not little load");

    // With little load, the node that the service does not need trains.
    let lends = |status: &DaemonStatus| lent(status) == ["n3"] && running(status) == 4;
    let status = until(&site, &mut daemon, Some(20.0), "lends", lends).await;
    assert_eq!((ready(&status.services[0].seen), status.services[0].seen.rate), (1, Some(20.0)));

    // More load calls the node back; training gives way, and replicas run on both nodes.
    let scaled = |status: &DaemonStatus| ready(&status.services[0].seen) == 4 && lent(status).is_empty();
    let status = until(&site, &mut daemon, Some(260.0), "scales up", scaled).await;
    assert_eq!(running(&status), 2, "two jobs wait: {:?}", status.queue);
    let by_agents = site.replicas();
    assert_eq!(by_agents.len(), 4);

    // Another daemon finds the replicas, and starts none again.
    daemon.resign().await;
    drop(daemon);
    let mut daemon = site.daemon();
    until(&site, &mut daemon, Some(260.0), "taken over", |status| {
        status.services.first().is_some_and(|service| ready(&service.seen) == 4 && service.seen.rate.is_some())
    })
    .await;
    assert_eq!(site.replicas(), by_agents);

    // Less load again: replicas end, and the node is lent once more.
    let status = until(&site, &mut daemon, Some(20.0), "scales down", lends).await;
    assert_eq!(ready(&status.services[0].seen), 1);
    assert_eq!(site.replicas().len(), 1);
    assert_eq!(status.fallback, "", "{:?}", status.alerts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_from_prometheus_scales_a_service_and_its_silence_ends_no_replica() {
    // The clock of the policy is sixty times as fast, so a step of a minute is a second. The wave has a day of 24 s.
    let prometheus = Double::start(|second| Some(wave(second)));
    let asked = "load = { query = \"rate\", history_hours = 0.02 }\nmin_replicas = 0\n";
    let server = format!("[prometheus]\nurl = \"{}\"\nsettle_secs = 0\n", prometheus.url);
    let site = Site::new(&format!("{}{server}", service(asked))).await;
    let mut daemon = site.daemon();
    until(&site, &mut daemon, None, "a load", |status| {
        status.services.first().is_some_and(|service| service.seen.rate.is_some())
    })
    .await;
    // The first look asked for the steps of now, and then went back by the history of the file.
    let asked = prometheus.facts.lock().unwrap().asked.clone();
    assert!(asked[0].1 - asked[0].0 == 2 && (71..=73).contains(&(asked[1].1 - asked[1].0)), "{asked:?}");

    // No replica has reported anything, and the service runs for its load.
    prometheus.set(|facts| facts.load = Box::new(|_| Some(260.0)));
    let status = until(&site, &mut daemon, None, "scales up", |status| {
        status.services.first().is_some_and(|service| ready(&service.seen) == 4)
    })
    .await;
    assert_eq!(status.services[0].seen.rate, Some(260.0));

    // Prometheus is silent while there is no load: nothing is ended, and an alert says why.
    let silence = wall_ms() / 1000;
    prometheus.set(|facts| (facts.up, facts.load) = (false, Box::new(|_| Some(0.0))));
    let unknown = |status: &DaemonStatus| status.services[0].seen.rate.is_none();
    let status = until(&site, &mut daemon, None, "an unknown load", unknown).await;
    assert!(
        status.alerts.iter().any(|alert| alert.starts_with("load: service web: Prometheus")),
        "{:?}",
        status.alerts
    );
    for _ in 0..20 {
        daemon.cycle().await.unwrap();
        assert_eq!(site.replicas().len(), 4, "a replica was ended for a load that is not known");
    }

    // It answers again: it is asked for every step of its silence, and the service goes down to nothing.
    let mut silent = silence + 1..=wall_ms() / 1000;
    let before = prometheus.facts.lock().unwrap().asked.len();
    prometheus.set(|facts| facts.up = true);
    let until_none = |status: &DaemonStatus| status.services[0].seen.rate == Some(0.0) && site.replicas().is_empty();
    until(&site, &mut daemon, None, "scales down to nothing", until_none).await;
    let after = prometheus.facts.lock().unwrap().asked[before..].to_vec();
    assert!(!silent.is_empty(), "the silence has no step: {silent:?}");
    let is_asked = |step: i64| after.iter().any(|asked| (asked.0..=asked.1).contains(&step));
    assert!(silent.all(is_asked), "{after:?} since {silence}");
    let metrics = daemon.metrics().text();
    assert!(metrics.contains("goodput_service_load{service=\"web\"} 0"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn forecasts_of_a_load_are_shown_beside_what_came() {
    // A window of the policy, a cold start and a step, is a second and a third.
    let prometheus = Double::start(|second| Some(wave(second)));
    let asked = "load = { query = \"rate\", history_hours = 2.0 }\n";
    let server = format!("[prometheus]\nurl = \"{}\"\nsettle_secs = 0\n", prometheus.url);
    let site = Site::under("fifo+forecast", &format!("{}{server}", service(asked))).await;
    let mut daemon = site.daemon();
    let judged = |status: &DaemonStatus| {
        status.services.first().and_then(|service| service.forecast).is_some_and(|record| record.windows >= 3)
    };
    let status = until(&site, &mut daemon, None, "forecasts", judged).await;
    let record = status.services[0].forecast.unwrap();
    assert!(record.last.usual <= record.last.high && record.last.high > 0.0, "{record:?}");
    assert!(record.last.made_ms < status.at_ms + 1 && status.at_ms <= record.last.until_ms, "{record:?}");
    let metrics = daemon.metrics().text();
    for level in ["usual", "high"] {
        let name = format!("goodput_load_forecast{{service=\"web\",level=\"{level}\"}}");
        assert!(metrics.contains(&name), "{metrics}");
    }
    let lines = std::fs::read_to_string(site.settings.state.directory.join("audit.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_load: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "load").map(|line| &line["body"]).collect();
    assert_eq!(of_load.len() as u64, record.windows);
    assert!(of_load.iter().all(|body| body["service"] == "web"), "{of_load:?}");
    // Windows do not overlap, and each is judged by the loads of its own seconds.
    let span = |body: &Value| ["made_ms", "until_ms"].map(|key| body["forecast"][key].as_i64().unwrap());
    assert!(of_load.windows(2).all(|pair| span(pair[0])[1] < span(pair[1])[0]), "{of_load:?}");
    for body in &of_load {
        let [made_ms, until_ms] = span(body);
        let loads = (made_ms.div_euclid(1000) - 1..=until_ms.div_euclid(1000)).map(wave);
        let came = body["forecast"]["came"].as_f64().unwrap();
        assert!(loads.clone().any(|load| load == came), "{body}");
        let whole = (made_ms.div_euclid(1000) + 1..=until_ms.div_euclid(1000)).map(wave).fold(0.0, f64::max);
        assert!(came >= whole, "{body}: {whole} came");
    }
}
