//! Connections that say nothing, and more of them than a server can hold.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::nodes::*;
use goodput_configs::live::node_agent::Fencing;
use goodput_configs::reader;
use goodput_executor::agent::api::AttemptState;
use goodput_executor::daemon::interface::api::{Api, router};
use goodput_executor::daemon::interface::health::DaemonHealth;
use goodput_executor::daemon::interface::metrics::Metrics;
use goodput_executor::daemon::interface::status::DaemonStatus;
use goodput_executor::http::{self, Door};
use goodput_executor::job::AcceleratorGrant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A request without the end of its headers.
const HALF: &str = "PUT /v1/jobs/a/report HTTP/1.1\r\nhost: x\r\ncontent-le";

/// So many peers that connect, say `says` and wait until they are sent away, again and again.
fn flood(address: SocketAddr, peers: u32, says: &'static str) -> JoinSet<()> {
    let peer = async move || {
        let Ok(mut stream) = TcpStream::connect(address).await else { return };
        let _ = stream.write_all(says.as_bytes()).await;
        let _ = stream.read(&mut [0; 64]).await;
    };
    let mut flood = JoinSet::new();
    for _ in 0..peers {
        flood.spawn(async move {
            loop {
                peer().await;
                sleep(Duration::from_millis(200)).await;
            }
        });
    }
    flood
}

/// Status of a GET, within half a minute. A call that gives way to other connections before it has said its
/// request is made again, as clients do.
async fn get(address: SocketAddr, path: &str) -> u16 {
    let once = async || -> Option<u16> {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    };
    let ask = async {
        loop {
            if let Some(status) = once().await {
                return status;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(30), ask).await.expect("no answer beside the flood")
}

/// Review, finding 22: 26 silent connections a second ended jobs, because each took a place for five
/// seconds before it had shown a certificate.
#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_keep_the_daemon_from_a_node() {
    let mut node = Node::new("n1");
    node.config.fencing = Fencing::Kill { after_ms: 6000 };
    let agent = node.spawn();
    let client = node.client(agent.address);
    let uuids = uuids(&client).await;
    renew(&client, 1, "d").await.unwrap();
    let launched = launch("a", 0, bench(&lasting(60.0)), vec![AcceleratorGrant::whole(&uuids[0])]);
    client.start(&start(launched)).await.unwrap();
    let _flood = flood(agent.address, 200, "");
    let (began, mut renewed) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(10) {
        renewed += u32::from(renew(&client, 1, "d").await.is_ok());
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(client.attempt("a.0").await.unwrap().state, AttemptState::Running, "after {renewed} renewals");
    assert!(renewed >= 3, "{renewed} renewals");
}

/// An agent that may have 128 files open, and its address for jobs.
async fn with_few_files(node: &Node) -> (AgentProcess, SocketAddr) {
    let config = node.folder.path().join("agent.toml");
    fs::write(&config, reader::resolved(&node.config).unwrap()).unwrap();
    let script = format!("ulimit -n 128; exec {NODE_PROGRAM} agent {}", config.display());
    let child = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap();
    let serving = node.config.state_dir.join("serving.json");
    let began = Instant::now();
    let at = loop {
        if let Ok(text) = fs::read(&serving) {
            break serde_json::from_slice::<serde_json::Value>(&text).unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the agent does not serve");
        sleep(Duration::from_millis(20)).await;
    };
    let address = |of: &str| -> SocketAddr { at[of].as_str().unwrap().parse().unwrap() };
    (AgentProcess { child, address: address("address") }, address("jobs"))
}

/// Review, finding 23, on the port for jobs: the file descriptors of the process ran out.
#[tokio::test(flavor = "multi_thread")]
async fn half_requests_do_not_use_up_the_files_of_an_agent() {
    let node = Node::new("n1");
    let (agent, jobs) = with_few_files(&node).await;
    let _flood = flood(jobs, 300, HALF);
    sleep(Duration::from_secs(1)).await;
    for _ in 0..5 {
        assert_eq!(get(jobs, "/healthz").await, 404, "an answer");
    }
    let client = node.client(agent.address);
    assert_eq!(client.status().await.unwrap().attempts.len(), 0, "and the daemon is answered on the other port");
}

/// A process that holds connections to the socket of jobs used up the files of the agent as well.
#[tokio::test(flavor = "multi_thread")]
async fn silent_processes_do_not_use_up_the_socket_of_jobs() {
    let node = Node::new("n1");
    let _agent = with_few_files(&node).await;
    let socket = node.config.state_dir.join("jobs.sock");
    let mut held = Vec::new();
    while held.len() < 300 {
        match UnixStream::connect(&socket).await {
            Ok(stream) => held.push(stream),
            // The agent has not taken the last ones yet.
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
    let report = async || -> Option<String> {
        let mut stream = UnixStream::connect(&socket).await.ok()?;
        stream.write_all(b"{}\n").await.ok()?;
        let mut answer = [0; 256];
        let read = timeout(Duration::from_secs(10), stream.read(&mut answer)).await.ok()?.ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&answer[..read]).into_owned())
    };
    let began = Instant::now();
    let answer = loop {
        match report().await {
            Some(answer) => break answer,
            None => assert!(began.elapsed() < Duration::from_secs(60), "no answer beside 300 silent connections"),
        }
    };
    assert!(answer.contains("\"ok\":false"), "{answer}");
}

/// Review, finding 23, on the daemon's interface: 1,020 half requests silenced it.
#[tokio::test(flavor = "multi_thread")]
async fn half_requests_do_not_silence_the_interface() {
    let (calls, _called) = tokio::sync::mpsc::channel(1);
    let status = Arc::new(Mutex::new(DaemonStatus::default()));
    let health = Arc::new(DaemonHealth::new(Duration::from_secs(600)));
    health.looked();
    let api = Api { health, status, metrics: Arc::new(Metrics::new()), calls, tokens: [].into(), mailbox: None };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let _server = tokio::spawn(http::serve(listener, Door::Plain, router(api)));
    let mut held = Vec::new();
    for _ in 0..1020 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(HALF.as_bytes()).await.unwrap();
        held.push(stream);
    }
    for _ in 0..5 {
        assert_eq!(get(address, "/healthz").await, 200);
    }
    let mut ended = 0;
    for stream in &mut held {
        let read = timeout(Duration::from_secs(30), stream.read(&mut [0; 1])).await;
        ended += u32::from(matches!(read, Ok(Ok(0) | Err(_))));
    }
    assert_eq!(ended, 1020, "whether there is pressure or not, headers have their time");
    assert_eq!(get(address, "/healthz").await, 200);
}
