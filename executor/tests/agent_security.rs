//! Peers that are not answered, and calls that are refused.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use crate::nodes::*;
use goodput_configs::live::name::JobName;
use goodput_configs::live::tls::TlsFiles;
use goodput_executor::agent::tls::{self, DAEMON};
use goodput_executor::agent::{AgentClient, ClientError};
use goodput_executor::job::AcceleratorGrant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Says something over TLS and returns the answer; `None`: there was none. `shows` is the
/// certificate shown, if any.
async fn say(address: SocketAddr, ca: &TlsFiles, shows: Option<&TlsFiles>, request: &str) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&ca.ca).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match shows {
        None => config.with_no_client_auth(),
        Some(files) => {
            let chain = vec![CertificateDer::from_pem_file(&files.cert).unwrap()];
            config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&files.key).unwrap()).unwrap()
        }
    };
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = connector.connect(ServerName::try_from("n1").unwrap(), stream).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).await;
    read.ok().filter(|_| !answer.is_empty()).map(|_| String::from_utf8_lossy(&answer).into_owned())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: n1\r\nconnection: close\r\n\r\n")
}

fn send(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: n1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_daemon_is_answered() {
    let node = Node::new("n1");
    let agent = node.agent().await;
    let daemon = TlsFiles::of(&node.certs(), DAEMON);
    let own = TlsFiles::of(&node.certs(), "n1");
    let elsewhere = tempfile::tempdir().unwrap();
    tls::create(elsewhere.path(), &[name("n1")]).unwrap();
    let unknown_tenant = TlsFiles::of(elsewhere.path(), DAEMON);

    let request = get("/v1/node");
    let answer = say(agent.address, &daemon, Some(&daemon), &request).await.unwrap();
    assert_eq!(status(&answer), 200);
    assert_eq!(say(agent.address, &daemon, None, &request).await, None, "no certificate");
    assert_eq!(say(agent.address, &daemon, Some(&unknown_tenant), &request).await, None, "of another authority");
    assert_eq!(say(agent.address, &daemon, Some(&own), &request).await, None, "of a node");
    assert_eq!(
        say(agent.address, &unknown_tenant, Some(&unknown_tenant), &request).await,
        None,
        "nor does a client trust the agent"
    );

    let mut plain = TcpStream::connect(agent.address).await.unwrap();
    plain.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "without TLS");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_certificates_count_on_both_sides() {
    let mut node = Node::new("n1");
    tls::create(&node.certs(), &[name("n2")]).unwrap();
    let daemon = TlsFiles::of(&node.certs(), DAEMON);
    let patience = std::time::Duration::from_secs(5);
    let agent = node.agent().await;
    let meant = AgentClient::new(name("n2"), agent.address, &daemon, patience).unwrap();
    assert!(matches!(meant.status().await, Err(ClientError::Unreachable { .. })), "n1 answers where n2 is meant");
    drop(agent);

    node.config.daemon = "goodput-daemon-of-another-cluster".to_owned();
    let agent = node.agent().await;
    let client = node.client(agent.address);
    assert!(client.status().await.is_err(), "a good certificate with another name");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_or_climbs_is_refused() {
    let node = Node::new("n1");
    let agent = node.agent().await;
    let daemon = TlsFiles::of(&node.certs(), DAEMON);
    let client = node.client(agent.address);
    let uuids = uuids(&client).await;
    let ask = async |request: String| {
        let answer = say(agent.address, &daemon, Some(&daemon), &request).await.unwrap();
        (status(&answer), answer)
    };

    let good = start(launch("a", 0, bench(&lasting(1.0)), vec![AcceleratorGrant::whole(&uuids[0])]));
    let text = serde_json::to_string(&good).unwrap();
    for bad in ["../../../etc/cron.d/x", "a/b", "..", ".ssh", ""] {
        let (code, answer) =
            ask(send("POST", "/v1/attempts", &text.replace(r#""name":"a""#, &format!(r#""name":"{bad}""#)))).await;
        assert_eq!(code, 400, "{answer}");
    }
    let mut climbing = good.clone();
    climbing.launch.program.checkpoint_dir = Some("/tmp/../etc".into());
    assert_eq!(code(client.start(&climbing).await.unwrap_err()), "program");
    let mut large = good.clone();
    large.launch.program.env.insert("A".to_owned(), "x".repeat(100_000));
    let Err(ClientError::Refused { status: 413, .. }) = client.start(&large).await else { panic!("too large") };
    for path in ["/v1/attempts/..%2f..%2fetc%2fpasswd", "/v1/attempts/%2e%2e", "/v1/../../etc/passwd", "/etc/passwd"] {
        assert_eq!(ask(get(path)).await.0, 404, "{path}");
    }
    assert_eq!(ask(send("POST", "/v1/attempts", "{")).await.0, 400);
    assert_eq!(ask(send("POST", "/v1/lease", "null")).await.0, 400);
    assert_eq!(ask(get("/v1/lease")).await.0, 405);
    assert!(client.status().await.unwrap().attempts.is_empty(), "and none of it did anything");
    assert!(!node.folder.path().parent().unwrap().join("etc").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_may_report_by_http_with_their_fence_and_nothing_else() {
    let node = Node::new("n1");
    let agent = node.agent().await;
    let client = node.client(agent.address);
    let uuids = uuids(&client).await;
    let a = launch("a", 0, vec!["sleep".to_owned(), "60".to_owned()], vec![AcceleratorGrant::whole(&uuids[0])]);
    let b = launch("b", 0, vec!["sleep".to_owned(), "60".to_owned()], vec![AcceleratorGrant::whole(&uuids[1])]);
    client.start(&start(a.clone())).await.unwrap();
    client.start(&start(b.clone())).await.unwrap();
    let ask = async |request: String| {
        let mut stream = TcpStream::connect(agent.jobs).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        status(&answer)
    };
    let line = |fence: &str, attempt: u32| format!(r#"{{"fence":"{fence}","attempt":{attempt},"step":7}}"#);
    let (of_a, of_b) = (a.fence.as_str(), b.fence.as_str());
    let path = "/v1/jobs/a/report";
    assert_eq!(ask(send("PUT", path, &line(of_b, 0))).await, 409, "another job's fence");
    assert_eq!(ask(send("PUT", path, &line(of_a, 1))).await, 409, "another attempt's number");
    assert_eq!(ask(send("PUT", path, &line("0123456789abcdef0123456789abcdef", 0))).await, 409);
    assert_eq!(ask(send("PUT", path, "{}")).await, 400);
    assert_eq!(ask(send("PUT", path, &"x".repeat(100_000))).await, 413);
    assert_eq!(ask(send("POST", "/v1/attempts", "{}")).await, 404, "orders are not taken here");
    assert_eq!(client.attempt("a.0").await.unwrap().report, None);
    assert_eq!(ask(send("PUT", path, &line(of_a, 0))).await, 204);
    assert_eq!(client.attempt("a.0").await.unwrap().report.unwrap().step, 7);
    assert_eq!(client.attempt("b.0").await.unwrap().report, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_secret_is_readable_by_nobody_else() {
    let node = Node::new("n1");
    let state = &node.config.state_dir;
    // As versions before this one left it.
    std::fs::create_dir_all(state).unwrap();
    std::fs::write(state.join("term.json"), r#"{"term":0,"leader":""}"#).unwrap();
    std::fs::set_permissions(state.join("term.json"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let agent = node.agent().await;
    let client = node.client(agent.address);
    let accelerator = AcceleratorGrant::whole(&uuids(&client).await[0]);
    client.start(&start(launch("a", 0, vec!["sleep".into(), "60".into()], vec![accelerator]))).await.unwrap();
    until(&client, "a process", |seen| !seen.accelerators[0].processes.is_empty()).await;
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in ["", "attempts", "attempts/a.0", "output"] {
        assert_eq!(mode(state.join(folder)), 0o700, "{folder}");
    }
    let of_attempt = ["launch.json", "order.json", "processes.json", "claim", "output.log"];
    for file in of_attempt.map(|name| format!("attempts/a.0/{name}")).iter().map(String::as_str).chain(["term.json"]) {
        assert_eq!(mode(state.join(file)), 0o600, "{file}");
    }
    for key in ["ca.key", "n1.key", "goodput-daemon.key"] {
        assert_eq!(mode(node.certs().join(key)), 0o600, "{key}");
    }
    let second = goodput_executor::agent::serve(node.config.clone()).await;
    assert!(second.err().unwrap().to_string().contains("another agent serves"));
    let mut open = node.config.clone();
    open.jobs = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = goodput_executor::agent::serve(open).await.err().unwrap().to_string();
    assert!(refused.contains("loopback"), "{refused}");
    assert!(JobName::new("n1/../n2").is_err());
}
