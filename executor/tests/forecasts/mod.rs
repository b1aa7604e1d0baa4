//! Forecasts as a service: a Prometheus that can be told to be late, silent or without values; a real Prometheus; and
//! real clients of KEDA's and Dynamo's protocols.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod clients;
pub mod double;
mod grpc;
mod real;
mod serving;
mod tls;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use goodput_configs::forecast::ForecastServerConfig;
use goodput_configs::reader;
use goodput_executor::forecasts::{ForecastServer, ForecastServerError};
use goodput_executor::machine::wall_ms;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Seconds in a short season, each of which is a step.
const SEASON: i64 = 20;

/// Load that one replica serves.
const PER_REPLICA: f64 = 10.0;

/// Load of a second: a wave around 100.
fn wave(second: i64) -> f64 {
    let phase = std::f64::consts::TAU * second.rem_euclid(SEASON) as f64 / SEASON as f64;
    (100.0 + 40.0 * phase.sin()).round()
}

/// Server of one service, `chat`, with steps of a second.
fn config(prometheus: &str, query: &str, state_dir: &Path) -> ForecastServerConfig {
    let state_dir = state_dir.display();
    let text = format!(
        "listen = \"127.0.0.1:0\"\ngrpc = \"127.0.0.1:0\"\nstate_dir = \"{state_dir}\"\n\
         prometheus = {{ url = \"{prometheus}\", settle_secs = 0.0, timeout_secs = 2.0 }}\ndynamo = {{ service = \"chat\" }}\n\
         [[services]]\nname = \"chat\"\nquery = '{query}'\nstep_secs = 1.0\nseason_secs = {SEASON}.0\n\
         history_seasons = 6.0\ncold_start_secs = 2.0\nviolated_share = 0.05\nload_per_replica = {PER_REPLICA}\n\
         max_replicas = 1000\n"
    );
    reader::parse("serve.toml", &text).unwrap()
}

/// A server that runs.
struct Running {
    runtime: Runtime,
    http: SocketAddr,
    grpc: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(config: &ForecastServerConfig) -> Result<Self, ForecastServerError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let server = runtime.block_on(ForecastServer::open(config))?;
        let (http, grpc) = (server.http, server.grpc.unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = runtime.spawn(server.run(async move { drop(stopped.await) }));
        Ok(Self { runtime, http, grpc, stop, task })
    }

    /// Ends the server as a signal does: it writes its state.
    fn stop(self) {
        drop(self.stop);
        self.runtime.block_on(self.task).unwrap();
    }

    fn get(&self, path: &str) -> (u16, String) {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut answer = agent.get(format!("http://{}{path}", self.http)).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    /// The service with its past.
    fn chat(&self) -> Value {
        serde_json::from_str(&self.get("/v1/forecast/chat?past=288").1).unwrap()
    }

    fn replicas(&self) -> u64 {
        self.chat()["replicas"].as_u64().unwrap()
    }

    /// Waits until the service stands on `standing`, and gives it.
    fn stands(&self, standing: &str) -> Value {
        until(
            || Some(self.chat()).filter(|chat| chat["standing"] == standing),
            || format!("the service is not {standing}: {}", self.chat()),
        )
    }
}

/// Waits up to twenty seconds for a value.
fn until<T>(mut look: impl FnMut() -> Option<T>, problem: impl Fn() -> String) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{}", problem());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Present second of the Unix epoch.
fn second() -> i64 {
    wall_ms() / 1000
}

/// Seconds and loads of the past steps, each second once and in order.
fn past(chat: &Value) -> Vec<(i64, Option<f64>)> {
    let past = chat["past"].as_array().unwrap();
    let step = |step: &Value| (step["epoch_millis"].as_i64().unwrap() / 1000, step["load"].as_f64());
    let past: Vec<_> = past.iter().map(step).collect();
    assert!(past.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "a step is lost or doubled: {past:?}");
    past
}
