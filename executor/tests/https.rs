//! The daemon's interface over HTTPS, and its clients.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goodput_executor::agent::tls::{Authority, INTERFACE};
use goodput_executor::daemon::interface::api::{Api, router};
use goodput_executor::daemon::interface::health::DaemonHealth;
use goodput_executor::daemon::interface::metrics::Metrics;
use goodput_executor::daemon::interface::status::DaemonStatus;
use goodput_executor::http::{self, Door, identity};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// An authority that has signed the interface's certificate for 127.0.0.1.
fn authority() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    Authority::open(folder.path()).unwrap().of_interface(&["127.0.0.1".to_owned()], 1).unwrap();
    folder
}

fn serve(runtime: &Runtime, files: &Path) -> SocketAddr {
    let (calls, _) = tokio::sync::mpsc::channel(1);
    let status = Arc::new(Mutex::new(DaemonStatus::default()));
    let health = Arc::new(DaemonHealth::new(Duration::from_secs(30)));
    health.looked();
    let api = Api { health, status, metrics: Arc::new(Metrics::new()), calls, tokens: [].into(), mailbox: None };
    let file = |end: &str| files.join(format!("{INTERFACE}.{end}"));
    let door = Door::Tls(identity::acceptor(&file("pem"), &file("key")).unwrap());
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(http::serve(listener, door, router(api)));
    address
}

/// Status of `GET /healthz`, where the authorities of a file are trusted.
fn ask(scheme: &str, address: SocketAddr, ca: &Path) -> Result<u16, String> {
    let roots: Vec<_> = identity::certificates(ca).unwrap();
    let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&roots));
    let tls = tls.unversioned_rustls_crypto_provider(identity::provider()).build();
    let agent = ureq::Agent::config_builder().tls_config(tls).build().new_agent();
    let answer = agent.get(format!("{scheme}://{address}/healthz")).call();
    answer.map(|answer| answer.status().as_u16()).map_err(|error| error.to_string())
}

/// Report of the Python client to the interface, which has no mailbox here and says 404.
fn report(address: SocketAddr, ca: &Path) -> String {
    let script = format!(
        "import goodput_job\n\
         job = goodput_job.Job({{'SCHED_JOB_ID': '7', 'SCHED_URL': 'https://{address}', 'SCHED_CA': '{}'}})\n\
         try: print(job._put('{{}}')['status'])\n\
         except OSError as error: print(error)\n",
        ca.display()
    );
    let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python");
    let mut python = Command::new("python3");
    let python = python.args(["-c", &script]).env("PYTHONPATH", clients).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = python.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
}

#[test]
fn the_interface_is_reached_over_https_by_clients_that_trust_its_authority() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (own, other) = (authority(), authority());
    let (ca, stranger) = (own.path().join("ca.pem"), other.path().join("ca.pem"));
    let address = serve(&runtime, own.path());
    assert_eq!(ask("https", address, &ca), Ok(200));
    assert_eq!(report(address, &ca), "404", "the Python client got an answer");
    let refused = ask("https", address, &stranger).unwrap_err();
    assert!(refused.contains("UnknownIssuer") || refused.contains("certificate"), "{refused}");
    assert!(report(address, &stranger).contains("CERTIFICATE_VERIFY_FAILED"));
    assert!(ask("http", address, &ca).is_err(), "nothing is said in clear");

    // The certificate is renewed by another authority, while the server runs.
    for end in ["pem", "key"] {
        let file = format!("{INTERFACE}.{end}");
        std::fs::copy(other.path().join(&file), own.path().join(&file)).unwrap();
    }
    assert_eq!(ask("https", address, &stranger), Ok(200));
    assert!(ask("https", address, &ca).is_err(), "the old one is gone");
}
