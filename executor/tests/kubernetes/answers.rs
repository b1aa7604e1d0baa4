//! Answers of an API server that fails or lags, played by `tower-test`: conflicts, too many
//! requests, forgotten versions, watches that end, and no answer at all.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use goodput_configs::live::engine::KubernetesConfig;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{Engine, EngineAction, EngineError, JobPhase, OnNode, Order, StepOutcome};
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::runtime;

/// Objects and answers of the played server.
#[derive(Default)]
struct Played {
    nodes: Vec<Value>,
    jobs: Vec<Value>,
    /// Version of the lists.
    version: u32,
    /// Bodies of the next watches of jobs; then watches stay open and silent.
    watches: Vec<Vec<Value>>,
    /// Status of every change.
    refuses: Option<u16>,
    /// Status of everything.
    down: Option<u16>,
    /// Requests so far.
    asked: Vec<String>,
    /// Changes so far.
    changes: Vec<Value>,
}

type Shared = Arc<Mutex<Played>>;

fn node(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name }, "resourceVersion": "1", "uid": name },
        "status": {
            "capacity": { "nvidia.com/gpu": "8" }, "allocatable": { "nvidia.com/gpu": "8" },
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": null }],
        },
    })
}

fn given(name: &str, version: u32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("{name}-uid"), "resourceVersion": version.to_string(),
            "labels": { "goodput.dev/managed": "true" },
        },
        "spec": {
            "suspend": true, "completionMode": "Indexed", "completions": 1, "parallelism": 1,
            "template": { "spec": { "restartPolicy": "Never", "containers": [
                { "name": "x", "image": "x", "resources": { "limits": { "nvidia.com/gpu": "2" } } }
            ] } },
        },
        "status": {},
    })
}

fn status(code: u16) -> (u16, Vec<Value>) {
    let reason = if code == 409 { "Conflict" } else { "Played" };
    (
        code,
        vec![json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                        "message": "as played", "metadata": {} })],
    )
}

/// Answer to a request; `None` where it stays open.
fn answer(played: &mut Played, request: &Request<Body>) -> Option<(u16, Vec<Value>)> {
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    played.asked.push(format!("{} {path}?{query}", request.method()));
    if let Some(code) = played.down {
        return Some(status(code));
    }
    if request.method() != Method::GET {
        return Some(played.refuses.map_or_else(|| (200, vec![given("a", 9)]), status));
    }
    let list =
        |items: &Vec<Value>| json!({ "metadata": { "resourceVersion": played.version.to_string() }, "items": items });
    match path.rsplit('/').next().unwrap_or_default() {
        "readyz" => Some((200, vec![json!("ok")])),
        "version" => Some((
            200,
            vec![json!({ "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "",
            "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": "" })],
        )),
        "jobs" if query.contains("watch=true") => {
            if played.watches.is_empty() {
                None
            } else {
                Some((200, played.watches.remove(0)))
            }
        }
        _ if query.contains("watch=true") => None,
        "jobs" => Some((200, vec![list(&played.jobs)])),
        "nodes" => Some((200, vec![list(&played.nodes)])),
        "pods" => Some((200, vec![list(&Vec::new())])),
        other => panic!("nothing is played for {other}"),
    }
}

fn body(lines: &[Value]) -> Body {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Body::from(text.into_bytes())
}

/// An engine over a played server with one node and the job `a`.
fn played() -> (KubernetesEngine, Shared) {
    let start = Played { nodes: vec![node("n0")], jobs: vec![given("a", 5)], version: 7, ..Played::default() };
    let shared: Shared = Arc::new(Mutex::new(start));
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let server = shared.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Some((request, send)) = handle.next_request().await {
            let change = (request.method() == Method::PATCH).then_some(());
            let answered = answer(&mut server.lock().unwrap(), &request);
            if change.is_some() {
                let bytes = request.into_body().collect_bytes().await.unwrap();
                server.lock().unwrap().changes.push(serde_json::from_slice(&bytes).unwrap());
            }
            match answered {
                Some((code, lines)) => {
                    send.send_response(Response::builder().status(code).body(body(&lines)).unwrap());
                }
                None => open.push(send),
            }
        }
    });
    let settings = KubernetesConfig { patience_ms: 1000, ..KubernetesConfig::default() };
    (KubernetesEngine::new(&settings).with_client(Client::new(service, "default")), shared)
}

fn place() -> Order {
    let placement = vec![OnNode { node: "n0".into(), gpus: 2, ..OnNode::default() }];
    Order::named("p", "default.a.a", 0, EngineAction::Place { placement, share: None })
}

#[test]
fn a_change_names_the_version_it_was_made_from_and_a_refusal_is_no_act() {
    runtime().block_on(async {
        let (mut engine, server) = played();
        let seen = engine.snapshot().await.unwrap();
        assert_eq!((seen.jobs[0].key.as_str(), seen.jobs[0].phase), ("default.a.a", JobPhase::Held));
        let mut outcome = async |code: u16| {
            server.lock().unwrap().refuses = Some(code);
            engine.apply(&[place()]).await.map(|receipts| receipts[0].outcome.clone())
        };
        // A storm of conflicts: the order stays, and every try is made from what is seen.
        for _ in 0..100 {
            assert!(
                matches!(outcome(409).await, Ok(StepOutcome::Later { reason }) if reason.starts_with("409 Conflict"))
            );
        }
        assert!(matches!(outcome(429).await, Ok(StepOutcome::Later { reason }) if reason.starts_with("429")));
        assert!(matches!(outcome(422).await, Ok(StepOutcome::Refused { reason }) if reason.starts_with("422")));
        assert!(matches!(outcome(500).await, Err(EngineError::Unreachable { .. })), "it may have been carried out");
        let played = server.lock().unwrap();
        assert_eq!(played.changes.len(), 103);
        assert!(played.changes.iter().all(|change| change["metadata"]["resourceVersion"] == "5"));
        assert!(played.changes.iter().all(|change| change["metadata"]["annotations"]["goodput.dev/starts"] == "1"));
    });
}

#[test]
fn a_watch_goes_on_from_its_version_and_lists_anew_where_that_is_forgotten() {
    runtime().block_on(async {
        let (mut engine, server) = played();
        {
            let mut played = server.lock().unwrap();
            let bookmark = json!({ "type": "BOOKMARK", "object": { "apiVersion": "batch/v1", "kind": "Job",
                "metadata": { "resourceVersion": "20" }, "spec": { "template": {} } } });
            let added = json!({ "type": "ADDED", "object": given("b", 12) });
            let gone = json!({ "type": "ERROR", "object": status(410).1[0] });
            played.watches = vec![vec![added, bookmark], vec![gone]];
            // What is listed after the watch is refused.
            played.jobs = vec![given("a", 5)];
        }
        let began = std::time::Instant::now();
        loop {
            let asked = server.lock().unwrap().asked.join("\n");
            if asked.contains("watch=true") && asked.matches("/apis/batch/v1/jobs?").count() >= 5 {
                break;
            }
            if asked.matches("resourceVersion=20").count() == 1 {
                // The version is forgotten now, and another job has come meanwhile.
                server.lock().unwrap().jobs = vec![given("a", 5), given("c", 30)];
            }
            let _ = engine.snapshot().await;
            assert!(began.elapsed() < Duration::from_secs(60), "{asked}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let asked = server.lock().unwrap().asked.clone();
        let watches: Vec<&String> =
            asked.iter().filter(|line| line.contains("jobs?") && line.contains("watch=true")).collect();
        assert!(watches[0].contains("resourceVersion=7"), "{watches:?}");
        assert!(watches[1].contains("resourceVersion=20"), "it resumes after the last bookmark: {watches:?}");
        // The view is not believed at once, and then is complete.
        let began = std::time::Instant::now();
        loop {
            let seen = engine.snapshot().await;
            if seen.is_ok_and(|seen| seen.jobs.iter().any(|job| job.key.starts_with("default.c."))) {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

#[test]
fn nothing_is_seen_and_nothing_done_while_the_server_is_down() {
    runtime().block_on(async {
        let (mut engine, server) = played();
        engine.snapshot().await.unwrap();
        for code in [500, 503, 401] {
            server.lock().unwrap().down = Some(code);
            let error = engine.snapshot().await.unwrap_err();
            assert!(
                matches!(&error, EngineError::Unreachable { problem, .. } if problem.contains(&code.to_string())),
                "{error}"
            );
            let error = engine.apply(&[place()]).await;
            assert!(code == 401 || error.is_err(), "{error:?}");
        }
        server.lock().unwrap().down = None;
        // The watch of an object may have failed a moment ago; it is begun anew after a pause.
        let began = Instant::now();
        let snapshot = loop {
            match engine.snapshot().await {
                Ok(snapshot) => break snapshot,
                Err(error) => assert!(began.elapsed() < Duration::from_secs(20), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(snapshot.jobs.len(), 1, "it is there again");
    });
}
