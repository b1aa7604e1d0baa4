//! The HTTP interface: which caller may do what, what is refused, and what monitoring finds there.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goodput_configs::live::token::{ApiVerb, Token};
use goodput_executor::daemon::interface::alert::KINDS;
use goodput_executor::daemon::interface::api::{Api, ApiCommand, Call, hash, router};
use goodput_executor::daemon::interface::health::DaemonHealth;
use goodput_executor::daemon::interface::metrics::Metrics;
use goodput_executor::daemon::interface::status::{DaemonStatus, QueueRow};
use goodput_executor::engine::NodeSeen;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A server with a few tokens and a daemon that says yes to everything; gives what it was told.
fn serve(runtime: &tokio::runtime::Runtime) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let row = QueueRow { key: "7".into(), name: "train-7".into(), owner: "anna".into(), ..QueueRow::default() };
    serve_queue(runtime, vec![row])
}

fn serve_queue(runtime: &tokio::runtime::Runtime, queue: Vec<QueueRow>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let (calls, mut called) = mpsc::channel::<Call>(8);
    let token = |name: &str, verbs: &[ApiVerb]| {
        let sha256 = hash(&format!("secret of {name}"));
        Token { name: name.into(), sha256, verbs: verbs.to_vec(), max_priority: 5, ..Token::default() }
    };
    let of = |tenants: &[&str], token| Token { tenants: tenants.iter().map(|t| (*t).to_owned()).collect(), ..token };
    let nodes = vec![NodeSeen { name: "n1".into(), ..NodeSeen::default() }];
    let status = Arc::new(Mutex::new(DaemonStatus { queue, nodes, ..DaemonStatus::default() }));
    let only = ApiVerb::ALL.map(|verb| {
        let token = of(&["*"], token(&format!("only-{}", verb.name()), &[verb]));
        Token { user: Some("anna".into()), ..token }
    });
    let tokens = [
        token("reader", &[ApiVerb::Read]),
        token("writer", &[ApiVerb::Admin]),
        of(&["poor", "vision"], token("anna", &[ApiVerb::Submit, ApiVerb::Cancel])),
        of(&["*"], token("ben", &[ApiVerb::Submit, ApiVerb::Cancel])),
        token("operator", &[ApiVerb::Operate]),
    ];
    let tokens = tokens.into_iter().chain(only).collect();
    let health = Arc::new(DaemonHealth::new(Duration::from_secs(30)));
    health.looked();
    let api = Api { health, status, metrics: Arc::new(Metrics::new()), calls, tokens, mailbox: None };
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = told.clone();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, router(api)).await });
    runtime.spawn(async move {
        while let Some(Call { who, command, answer }) = called.recv().await {
            let read = matches!(command, ApiCommand::Orders(_) | ApiCommand::PolicyHistory);
            log.lock().unwrap().push(format!("{who}: {command:?}"));
            let _ = answer.send(Ok(if read { json!([]) } else { json!({ "key": "8" }) }));
        }
    });
    (address, told)
}

/// Status code and body of a call.
fn call(address: SocketAddr, method: &str, path: &str, token: Option<&str>, body: Option<String>) -> (u16, String) {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let mut request = ureq::http::Request::builder().method(method).uri(format!("http://{address}{path}"));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request = request.header("content-type", "application/json");
    let mut answer = match body {
        Some(body) => agent.run(request.body(body).unwrap()).unwrap(),
        None => agent.run(request.body(()).unwrap()).unwrap(),
    };
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

fn job(name: &str, gpus: u32) -> String {
    let request =
        json!({ "name": name, "tenant": 0, "submit": 0, "gpus": gpus, "batch_size": null, "elasticity": "rigid" });
    json!({ "spec": { "request": request, "work": { "fixed": { "duration": 0 } } }, "command": ["/bin/true"] })
        .to_string()
}

#[test]
fn nobody_gets_more_than_his_token_is_good_for() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (address, told) = serve(&runtime);
    let (reader, writer) = (Some("secret of reader"), Some("secret of writer"));
    let status = |method: &str, path: &str, token, body: Option<String>| call(address, method, path, token, body).0;
    assert_eq!(status("GET", "/healthz", None, None), 200);
    let reads = ["/metrics", "/v1/status", "/v1/queue", "/v1/nodes", "/v1/jobs/7", "/v1/jobs/7/start", "/v1/policy"];
    let mode = || Some(json!({ "mode": "act" }).to_string());
    let writes = [
        ("POST", "/v1/jobs", Some(job("a", 1))),
        ("DELETE", "/v1/jobs/7", None),
        ("POST", "/v1/nodes/n1/drain", Some("{}".into())),
        ("POST", "/v1/nodes/n1/undrain", Some("{}".into())),
        ("POST", "/v1/mode", mode()),
        ("POST", "/v1/policy", Some(json!({ "policy": "zoo:elastic" }).to_string())),
        ("POST", "/v1/policy/rollback", Some("{}".into())),
    ];
    let stored = hash("secret of reader");
    for path in reads {
        for token in [None, Some(""), Some("secret of nobody"), Some(stored.as_str())] {
            assert_eq!(status("GET", path, token, None), 401, "{path} {token:?}");
        }
        assert_eq!(status("GET", path, reader, None), 200, "{path}");
    }
    told.lock().unwrap().clear();
    for (method, path, body) in &writes {
        assert_eq!(status(method, path, None, body.clone()), 401, "{path}");
        assert_eq!(status(method, path, reader, body.clone()), 403, "{path}");
    }
    assert_eq!(told.lock().unwrap().len(), 0, "nothing reached the daemon");
    for (method, path, body) in &writes {
        let code = status(method, path, writer, body.clone());
        assert!((200..300).contains(&code), "{path}: {code}");
    }
    assert_eq!(told.lock().unwrap().len(), writes.len());
    assert!(told.lock().unwrap().iter().all(|call| call.starts_with("writer: ")));
}

/// Review, finding 25: a write token named any tenant and any priority.
#[test]
fn a_token_is_bound_to_its_tenants_its_verbs_and_its_priority() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (address, told) = serve(&runtime);
    let submit = |who: &str, change: &dyn Fn(&mut Value)| {
        let mut body: Value = serde_json::from_str(&job("a", 1)).unwrap();
        change(&mut body);
        call(address, "POST", "/v1/jobs", Some(&format!("secret of {who}")), Some(body.to_string()))
    };
    let told_last = || told.lock().unwrap().last().cloned().unwrap_or_default();
    assert_eq!(submit("anna", &|_| ()).0, 201);
    assert!(told_last().contains(r#"tenant: "poor", owner: "anna""#), "{}", told_last());
    assert_eq!(submit("anna", &|body| body["tenant"] = json!("vision")).0, 201);
    assert_eq!(submit("ben", &|body| body["tenant"] = json!("rich")).0, 201);
    assert_eq!(submit("ben", &|body| body["owner"] = json!("anna")).0, 201);
    assert!(told_last().contains(r#"owner: "ben""#), "the owner follows from the token: {}", told_last());
    assert_eq!(submit("anna", &|body| body["spec"]["request"]["priority"] = json!(5)).0, 201);
    assert_eq!(submit("writer", &|body| body["spec"]["request"]["priority"] = json!(2_000_000_000)).0, 201);

    let before = told.lock().unwrap().len();
    let (code, text) = submit("anna", &|body| body["tenant"] = json!("rich"));
    assert!(code == 403 && text.contains("poor, vision"), "{code}: {text}");
    let (code, text) = submit("anna", &|body| body["spec"]["request"]["priority"] = json!(6));
    assert!(code == 403 && text.contains("priority"), "{code}: {text}");
    assert_eq!(submit("anna", &|body| body["spec"]["request"]["weight_milli"] = json!(1_000_000)).0, 403);
    assert_eq!(submit("operator", &|_| ()).0, 403);

    let ask = |who: &str, method: &str, path: &str, body: Option<&str>| {
        call(address, method, path, Some(&format!("secret of {who}")), body.map(str::to_owned)).0
    };
    assert_eq!(ask("anna", "GET", "/v1/queue", None), 403, "to read is a verb of its own");
    assert_eq!(ask("ben", "DELETE", "/v1/jobs/7", None), 403, "the job of another user");
    assert_eq!(ask("anna", "POST", "/v1/nodes/n1/drain", Some("{}")), 403);
    assert_eq!(ask("operator", "POST", "/v1/mode", Some(r#"{"mode":"act"}"#)), 403, "only to stop is to operate");
    assert_eq!(told.lock().unwrap().len(), before, "none of it reached the daemon");
    assert_eq!(ask("anna", "DELETE", "/v1/jobs/7", None), 200);
    assert_eq!(ask("operator", "DELETE", "/v1/jobs/7", None), 200);
    assert_eq!(ask("operator", "POST", "/v1/nodes/n1/drain", Some("{}")), 200);
    assert_eq!(ask("operator", "POST", "/v1/mode", Some(r#"{"mode":"observe"}"#)), 200);
}

/// The status of each call with a token of each verb: 403 without the verb, and never with it.
#[test]
fn each_verb_allows_its_calls_and_no_other() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (address, told) = serve(&runtime);
    let mode = |mode: &str| Some(json!({ "mode": mode }).to_string());
    let policy = || Some(json!({ "policy": "zoo:elastic" }).to_string());
    let calls = [
        ("GET", "/v1/queue", None, &["read"] as &[&str]),
        ("GET", "/metrics", None, &["read"]),
        ("GET", "/v1/policy", None, &["read"]),
        ("GET", "/v1/jobs/7/start", None, &["read"]),
        ("POST", "/v1/jobs", Some(job("a", 1)), &["submit"]),
        ("POST", "/v1/dry-run", Some(job("a", 1)), &["submit"]),
        ("DELETE", "/v1/jobs/7", None, &["cancel", "operate"]),
        ("POST", "/v1/nodes/n1/drain", Some("{}".to_owned()), &["operate"]),
        ("POST", "/v1/nodes/n1/undrain", Some("{}".to_owned()), &["operate"]),
        ("POST", "/v1/mode", mode("observe"), &["operate"]),
        ("POST", "/v1/mode", mode("act"), &[]),
        ("POST", "/v1/policy", policy(), &[]),
        ("POST", "/v1/policy/rollback", Some("{}".to_owned()), &[]),
    ];
    for verb in ApiVerb::ALL.map(ApiVerb::name) {
        for (method, path, body, allowed) in &calls {
            let before = told.lock().unwrap().len();
            let (code, text) = call(address, method, path, Some(&format!("secret of only-{verb}")), body.clone());
            let may = verb == "admin" || allowed.contains(&verb);
            assert_eq!((200..300).contains(&code), may, "{verb}: {method} {path}: {code} {text}");
            if !may {
                assert!(code == 403 && text.contains("needs the verb"), "{verb}: {method} {path}: {code} {text}");
                assert_eq!(told.lock().unwrap().len(), before, "{verb}: {method} {path} reached the daemon");
            }
        }
    }
}

/// A job may have the name that is the key of another one, and jobs of several users may share a name.
#[test]
fn a_key_means_its_job_and_a_shared_name_means_the_callers_own() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let row = |key: &str, name: &str, owner: &str| QueueRow {
        key: key.into(),
        name: name.into(),
        owner: owner.into(),
        ..QueueRow::default()
    };
    let queue = vec![
        row("1", "7", "ben"),
        row("2", "train", "ben"),
        row("7", "train", "anna"),
        row("8", "twin", "ben"),
        row("9", "twin", "ben"),
    ];
    let (address, told) = serve_queue(&runtime, queue);
    let cancel = |who: &str, job: &str| {
        let token = format!("secret of {who}");
        let code = call(address, "DELETE", &format!("/v1/jobs/{job}"), Some(&token), None).0;
        (code, told.lock().unwrap().last().cloned().unwrap_or_default())
    };
    for job in ["7", "train"] {
        let (code, last) = cancel("anna", job);
        assert!(code == 200 && last.contains(r#"Cancel("7")"#), "{job}: {code}: {last}");
    }
    assert_eq!(cancel("anna", "2").0, 403);
    let (code, last) = cancel("ben", "train");
    assert!(code == 200 && last.contains(r#"Cancel("2")"#), "{code}: {last}");
    let (code, text) = call(address, "DELETE", "/v1/jobs/twin", Some("secret of ben"), None);
    assert!(code == 409 && text.contains("2 jobs have the name") && text.contains("8, 9"), "{code}: {text}");
}

#[test]
fn what_is_not_a_job_is_refused_with_what_is_wrong() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (address, told) = serve(&runtime);
    let post = |body: String| call(address, "POST", "/v1/jobs", Some("secret of writer"), Some(body));
    for name in
        ["", "../../etc/passwd", "a/b", ".hidden", "-rf", "a b", "a\nb", "a;reboot", "$(reboot)", &"x".repeat(65)]
    {
        let (code, text) = post(job(name, 1));
        assert_eq!(code, 422, "{name:?}: {text}");
        assert!(text.contains("name"), "{text}");
    }
    let (code, text) = post(job("zero", 0));
    assert!(code == 422 && text.contains("accelerators"), "{text}");
    let unknown: Value = serde_json::from_str(&job("a", 1)).unwrap();
    let mut unknown = unknown;
    unknown["privileged"] = json!(true);
    assert_eq!(post(unknown.to_string()).0, 422, "an unknown key");
    assert!((400..500).contains(&post("{".into()).0), "no JSON");
    assert_eq!(post(format!("{{\"command\":[\"{}\"]}}", "x".repeat(100_000))).0, 413, "an oversized body");
    for path in ["/v1/jobs/..%2f..%2fetc%2fpasswd", "/v1/jobs/8", "/v1/nodes/..%2fn1/drain"] {
        let method = if path.ends_with("drain") { "POST" } else { "GET" };
        let body = (method == "POST").then(|| "{}".into());
        assert_eq!(call(address, method, path, Some("secret of writer"), body).0, 404, "{path}");
    }
    assert_eq!(told.lock().unwrap().len(), 0, "nothing reached the daemon");
}

#[test]
fn the_dashboard_and_the_reference_page_show_the_metrics_that_exist() {
    let metrics = Metrics::new();
    Metrics::count(&metrics.orders, &[("verb", "place"), ("result", "done")]);
    Metrics::count(&metrics.guard, &[("rule", "canary")]);
    Metrics::count(&metrics.fallbacks, &[("reason", "panic")]);
    Metrics::count(&metrics.alerts, &[("kind", "journal")]);
    Metrics::set(&metrics.jobs, &[("state", "held")], 1);
    Metrics::set(&metrics.accelerators, &[("type", "a100"), ("state", "free")], 1);
    metrics.jct.observe(1.0);
    metrics.compared(&Default::default());
    for family in [&metrics.service_load, &metrics.load_age] {
        Metrics::set_real(family, &[("service", "web")], Some(1.0));
    }
    Metrics::set_real(&metrics.load_forecast, &[("service", "web"), ("level", "high")], Some(1.0));
    Metrics::count(&metrics.load_forecasts, &[("service", "web"), ("result", "above")]);
    let text = metrics.text();
    for name in Metrics::NAMES {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} is not exported:\n{text}");
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/metrics-live.md");
    let page = std::fs::read_to_string(page).unwrap();
    let names = Metrics::NAMES.into_iter().chain(KINDS);
    let missing: Vec<&str> = names.filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "{missing:?} are not on the reference page");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("grafana/live.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let expressions = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap());
    let mut shown = BTreeSet::new();
    for expression in expressions {
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for word in words.filter(|word| word.starts_with("goodput_")) {
            let exported = text
                .lines()
                .any(|line| line.starts_with(&format!("{word}{{")) || line.starts_with(&format!("{word} ")));
            assert!(exported, "{word} is shown and not exported");
            shown.insert(
                Metrics::NAMES.into_iter().filter(|name| word.starts_with(name)).max_by_key(|name| name.len()).unwrap(),
            );
        }
    }
    assert_eq!(shown, BTreeSet::from(Metrics::NAMES), "every metric is on the dashboard");
}
