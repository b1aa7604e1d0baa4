//! The commands of `goodputd` against an interface with HTTPS, and the tokens that `token` makes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goodput_configs::live::token::{ApiVerb, Token};
use goodput_executor::agent::tls::INTERFACE;
use goodput_executor::daemon::durability::leader::DaemonName;
use goodput_executor::daemon::interface::api::{Api, Call, CallRefusal, hash, router};
use goodput_executor::daemon::interface::health::DaemonHealth;
use goodput_executor::daemon::interface::metrics::Metrics;
use goodput_executor::daemon::interface::status::{DaemonStatus, QueueRow};
use goodput_executor::http::{self, Door, identity};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Output and success of the program, in a clean environment.
fn goodputd(arguments: &[&str], variables: &[(&str, &str)]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodputd"));
    command.args(arguments).env_clear().envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// An interface with the certificate in `files`. The daemon behind it stands by: another one leads at an
/// address with plain HTTP.
fn serve(runtime: &Runtime, files: &Path, token: &str) -> SocketAddr {
    let (calls, mut called) = tokio::sync::mpsc::channel::<Call>(1);
    let row = QueueRow { key: "7".into(), name: "train-7".into(), owner: "anna".into(), ..QueueRow::default() };
    let status = Arc::new(Mutex::new(DaemonStatus { queue: vec![row], ..DaemonStatus::default() }));
    let health = Arc::new(DaemonHealth::new(Duration::from_secs(600)));
    let sha256 = hash(token);
    let token = Token { name: "me".into(), sha256, verbs: vec![ApiVerb::Admin], ..Token::default() };
    let tokens = [token].into();
    let api = Api { health, status, metrics: Arc::new(Metrics::new()), calls, tokens, mailbox: None };
    let file = |end: &str| files.join(format!("{INTERFACE}.{end}"));
    let door = Door::Tls(identity::acceptor(&file("pem"), &file("key")).unwrap());
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(http::serve(listener, door, router(api)));
    runtime.spawn(async move {
        while let Some(Call { answer, .. }) = called.recv().await {
            let leader = DaemonName { name: "head2".into(), address: Some("http://127.0.0.1:9".into()) };
            let _ = answer.send(Err(CallRefusal::Standby(Some(leader), "head2 leads".into())));
        }
    });
    address
}

#[test]
fn commands_speak_https_with_the_authority_that_they_are_given() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&own, &other] {
        let (done, _, said) = goodputd(&["certs", folder.path().to_str().unwrap(), "--api", "127.0.0.1"], &[]);
        assert!(done && said.contains("[api] tls"), "{said}");
    }
    let address = serve(&runtime, own.path(), "secret");
    let url = format!("https://{address}");
    let path = |folder: &tempfile::TempDir| folder.path().join("ca.pem").display().to_string();
    let (ca, stranger) = (path(&own), path(&other));
    let token = ("GOODPUT_TOKEN", "secret");

    let (done, queue, said) = goodputd(&["queue", "--url", &url, "--ca", &ca], &[token]);
    assert!(done && queue.contains("train-7"), "{queue}{said}");
    let variables = [token, ("GOODPUT_URL", url.as_str()), ("GOODPUT_CA", ca.as_str())];
    let (done, queue, said) = goodputd(&["queue"], &variables);
    assert!(done && queue.contains("train-7"), "{queue}{said}");

    let (done, _, said) = goodputd(&["queue", "--url", &url, "--ca", &stranger], &[token]);
    assert!(!done && said.contains("invalid peer certificate") && said.contains("authority in the file"), "{said}");
    let (done, _, said) = goodputd(&["queue", "--url", &url], &[token]);
    assert!(!done && said.contains("--ca"), "{said}");
    let (done, _, said) = goodputd(&["queue", "--url", &url, "--ca", "/nowhere/ca.pem"], &[token]);
    assert!(!done && said.contains("/nowhere/ca.pem"), "{said}");
    let (done, _, said) = goodputd(&["queue", "--url", &format!("http://{address}"), "--ca", &ca], &[token]);
    assert!(!done, "plain HTTP gets no answer: {said}");

    // The leader would get the token in clear.
    let (done, _, said) = goodputd(&["cancel", "7", "--url", &url, "--ca", &ca], &[token]);
    assert!(!done && said.contains("http://127.0.0.1:9 leads, and its interface has no certificate"), "{said}");
}

#[test]
fn a_token_is_made_with_its_table() {
    let all = ["token", "--name", "anna", "--verb", "read", "submit", "--tenant", "vision", "--max-priority", "5"];
    let (done, token, said) = goodputd(&all, &[]);
    assert!(done, "{said}");
    let (_, table) = said.split_once("[[api.tokens]]\n").unwrap();
    let made: Token = toml::from_str(table).unwrap();
    let expected = Token {
        name: "anna".into(),
        sha256: hash(token.trim()),
        verbs: vec![ApiVerb::Read, ApiVerb::Submit],
        tenants: vec!["vision".into()],
        max_priority: 5,
        ..Token::default()
    };
    assert_eq!(made, expected, "{said}");
    let (done, _, said) = goodputd(&["token", "--name", "anna", "--verb", "submit"], &[]);
    assert!(!done && said.contains("tenants"), "a token that the deployment file would refuse: {said}");
    let (done, _, said) = goodputd(&["token", "--name", "anna", "--verb", "raed"], &[]);
    assert!(!done && said.contains("read, submit, cancel, operate, admin (did you mean \"read\"?)"), "{said}");
    for (arguments, why) in
        [(&["token"][..], "--name"), (&["token", "--name", "anna", "--max-priority", "-1"], "-1 is not in 0..")]
    {
        let (done, token, said) = goodputd(arguments, &[]);
        assert!(!done && token.is_empty() && said.contains(why), "{said}");
    }
}

/// Mistakes that a client can see are not sent, and nothing is said of a daemon that may be well.
#[test]
fn wrong_words_and_addresses_are_refused_with_the_right_ones() {
    let token = ("GOODPUT_TOKEN", "x");
    let (done, _, said) = goodputd(&["mode", "actt"], &[token]);
    assert!(!done && said.contains("expected observe, canary, act (did you mean \"act\"?)"), "{said}");
    for (wrong, right) in [
        ("127.0.0.1:7070", "http://127.0.0.1:7070"),
        ("head1", "http://head1"),
        ("htp://head1:7070/", "http://head1:7070"),
        ("http://", "http://127.0.0.1:7070"),
        ("http://head1:port", "http://127.0.0.1:7070"),
        ("", "http://127.0.0.1:7070"),
    ] {
        let (done, _, said) = goodputd(&["queue", "--url", wrong], &[token]);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!done && said.contains("expected http://HOST:PORT") && !said.contains("running"), "{wrong}: {said}");
        assert!(said.contains(&format!("as in {right}")), "{wrong}: {said}");
    }
    let (done, _, said) = goodputd(&["queue"], &[token, ("GOODPUT_URL", "http://127.0.0.1:1/")]);
    assert!(!done && said.contains("is the daemon running?"), "a good address of no daemon: {said}");
}
