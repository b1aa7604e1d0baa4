//! A real Prometheus (`prometheus` of Debian) that scrapes a known load, is killed, and starts again.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use goodput_executor::machine::wall_ms;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{Running, config, until, wave};

/// Milliseconds of a step, and of the interval at which Prometheus scrapes.
const STEP: i64 = 200;

/// Load in force: the last sample of two steps. A bare gauge would repeat its last sample for five minutes.
const QUERY: &str = "last_over_time(load[400ms])";

/// An exporter of the wave, or of no load at all.
struct Exporter {
    address: SocketAddr,
    idle: Arc<AtomicBool>,
    _runtime: Runtime,
}

impl Exporter {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, idle) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let resting = Arc::clone(&idle);
        let load = move || if resting.load(Ordering::Relaxed) { 0.0 } else { wave(wall_ms() / STEP) };
        let router = Router::new().route("/metrics", get(move || async move { format!("load {}\n", load()) }));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, idle, _runtime: runtime }
    }
}

/// A Prometheus that ends with the value.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Prometheus {
    fn start(folder: &Path, address: SocketAddr, target: SocketAddr) -> Option<Self> {
        let file = folder.join("prometheus.yml");
        let text = format!(
            "global: {{ scrape_interval: {STEP}ms, scrape_timeout: {STEP}ms }}\n\
             scrape_configs: [{{ job_name: load, static_configs: [{{ targets: [\"{target}\"] }}] }}]\n"
        );
        std::fs::write(&file, text).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Some(Self(child.ok()?))
    }
}

/// Values of the query at steps from `first` to `last`, milliseconds, as Prometheus has them now.
fn values(address: SocketAddr, first: i64, last: i64) -> BTreeMap<i64, f64> {
    let url = format!("http://{address}/api/v1/query_range");
    let (start, end) = (first as f64 / 1e3, last as f64 / 1e3);
    let step = STEP as f64 / 1e3;
    let mut answer = ureq::get(url)
        .query("query", QUERY)
        .query("start", format!("{start:.3}"))
        .query("end", format!("{end:.3}"))
        .query("step", format!("{step:.3}"))
        .call()
        .unwrap();
    let answer: Value = answer.body_mut().read_json().unwrap();
    let values = answer["data"]["result"][0]["values"].as_array().unwrap();
    let pair = |pair: &Value| {
        let at = (pair[0].as_f64().unwrap() * 1e3).round() as i64;
        (at, pair[1].as_str().unwrap().parse().unwrap())
    };
    values.iter().map(pair).collect()
}

#[test]
fn a_prometheus_that_dies_and_comes_back_loses_nothing_and_lowers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::start();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let Some(prometheus) = Prometheus::start(folder.path(), free, exporter.address) else {
        eprintln!("there is no `prometheus`: THE SERVER OF FORECASTS IS NOT TESTED WITH A REAL PROMETHEUS");
        return;
    };
    // The server finds eight seconds of the past.
    sleep(Duration::from_secs(8));
    let mut config = config(&format!("http://{free}"), QUERY, &folder.path().join("state"));
    config.prometheus.settle_secs = 0.4;
    let service = &mut config.services[0];
    (service.step_secs, service.season_secs, service.cold_start_secs) = (0.2, 4.0, 0.4);
    let server = Running::start(&config).unwrap();
    until(|| server.chat()["known_steps"].as_u64().filter(|steps| *steps >= 30), || "the past is not filled in".into());
    server.stands("fresh");

    drop(prometheus);
    exporter.idle.store(true, Ordering::Relaxed);
    let held = server.stands("silent")["replicas"].as_u64().unwrap();
    assert!(held >= 10, "the load is around 100, and a replica serves 10");
    for _ in 0..10 {
        sleep(Duration::from_millis(100));
        assert!(server.replicas() >= held);
    }
    let again = Prometheus::start(folder.path(), free, exporter.address).unwrap();
    let know = || {
        let chat = server.chat();
        let fresh = chat["standing"] == "fresh";
        assert!(fresh || chat["replicas"].as_u64().unwrap() >= held, "a step within reach is not known: {chat}");
        Some(chat).filter(|_| fresh)
    };
    let chat = until(know, || "nothing is known after the restart".into());

    // Every step is there once, and has the value that Prometheus has for it; those of its death are gaps.
    let past = chat["past"].as_array().unwrap();
    let at = |step: &Value| step["epoch_millis"].as_i64().unwrap();
    assert!(past.windows(2).all(|pair| at(&pair[1]) == at(&pair[0]) + STEP), "a step is lost or doubled: {past:?}");
    let truth = values(free, at(&past[0]), at(past.last().unwrap()));
    for step in past {
        assert_eq!(step["load"].as_f64(), truth.get(&at(step)).copied(), "{step}");
    }
    let gaps = past.iter().filter(|step| step["load"].is_null()).count() as u64;
    assert!(gaps >= 5 && chat["gaps"] == gaps, "{gaps} gaps");
    drop(again);
    server.stop();
}
