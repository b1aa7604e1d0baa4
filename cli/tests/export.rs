//! Runs in the files of MLflow and in OpenTelemetry.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{plain, run};

/// The only folder in a folder.
fn only(folder: &Path) -> PathBuf {
    let folders: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

/// A training of two generations in a folder.
fn trained() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let sets = [
        "workload.synthetic.diurnal.jobs=8",
        "agent.evolution.population=4",
        "agent.evolution.generations=2",
        "agent.evolution.episodes=1",
        "train.validation_seeds=1",
        "train.gate_percent=500",
        "evaluate.seeds=2",
        "evaluate.policies=[\"fifo\"]",
    ];
    assert_eq!(run(dir.path(), &["init", "quickstart"]).0, 0);
    let mut train = vec!["train", "quickstart.toml"];
    train.extend(sets.iter().flat_map(|set| ["--set", *set]));
    let (code, _, said) = run(dir.path(), &train);
    assert_eq!(code, 0, "{said}");
    dir
}

/// Collector that takes one request, answers it, and gives its first line and its body.
fn collector(answer: &'static str) -> (String, std::thread::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        write!(&stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
        (first, serde_json::from_slice(&body).unwrap())
    });
    (url, taken)
}

#[test]
fn a_training_becomes_gauges_of_opentelemetry() {
    let dir = trained();
    let (url, taken) = collector("{}");
    let (code, _, said) = run(dir.path(), &["export", "runs/quickstart/1", "--otlp", &url]);
    assert!(code == 0 && said.contains("quickstart/1 in the experiment quickstart"), "{said}");
    let (first, request) = taken.join().unwrap();
    assert!(first.starts_with("POST /v1/metrics "), "{first}");
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let points =
        |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap()["gauge"]["dataPoints"].clone();
    let curve = points("goodput.train.eval.jct_mean_secs");
    assert_eq!(curve[0]["attributes"][0], json!({ "key": "step", "value": { "intValue": "8" } }));
    let fifo = points("goodput.eval.jct_mean_secs");
    let fifo = fifo.as_array().unwrap().iter().find(|point| point["attributes"][0]["value"]["stringValue"] == "fifo");
    assert!(fifo.unwrap()["asDouble"].as_f64().unwrap() > 0.0);

    for (answer, is_taken) in [
        (r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}"#, false),
        (r#"{"partialSuccess":{"rejectedDataPoints":3,"errorMessage":"too old"}}"#, false),
        (r#"{"partialSuccess":{"rejectedDataPoints":0,"errorMessage":"too old soon"}}"#, true),
        (r#"{"partialSuccess":{}}"#, true),
    ] {
        let (url, _taken) = collector(answer);
        let (code, _, said) = run(dir.path(), &["export", "runs/quickstart/1", "--otlp", &url]);
        assert_eq!(code == 0, is_taken, "{answer}: {said}");
        assert!(!answer.contains("too old") || plain(&said).contains("too old"), "{answer}: {said}");
    }
    let (code, _, said) = run(dir.path(), &["export", "runs/quickstart/1", "--otlp", "http://127.0.0.1:9"]);
    assert!(code != 0 && plain(&said).contains("--otlp http://localhost:4318"), "{said}");
    let (code, _, said) = run(dir.path(), &["export", "runs/quickstart/1", "--otlp", "localhost:4318"]);
    assert!(code == 2 && plain(&said).contains("expected http://HOST:PORT"), "{said}");
}

#[test]
fn a_training_becomes_a_run_of_mlflow_and_a_second_export_replaces_it() {
    let dir = trained();
    let export = || {
        let (code, _, said) = run(dir.path(), &["export", "runs/quickstart/1", "--mlflow", "mlruns"]);
        assert!(code == 0 && said.contains("quickstart/1 in the experiment quickstart"), "{said}");
        only(&dir.path().join("mlruns"))
    };
    let stale = only(&export()).join("params/stale");
    fs::write(&stale, "1").unwrap();
    let experiment = export();
    assert!(!stale.exists(), "{}", stale.display());
    let text = |path: PathBuf| fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text(experiment.join("meta.yaml")).contains("name: 'quickstart'"));
    let exported = only(&experiment);
    assert_eq!(text(exported.join("params/agent.evolution.population")), "4");
    assert_eq!(text(exported.join("params/cluster.groups.0.nodes")), "16");
    let curve = text(exported.join("metrics/eval/jct_mean_secs"));
    assert_eq!(curve.lines().filter_map(|line| line.split(' ').nth(2)).collect::<Vec<_>>(), ["8"], "{curve}");
    let jct: f64 = text(exported.join("metrics/fifo/jct_mean_secs")).split(' ').nth(1).unwrap().parse().unwrap();
    assert!(jct > 0.0);
    assert!(text(exported.join("tags/mlflow.source.name")).starts_with("goodput train quickstart.toml"));
    assert!(exported.join("artifacts/report.html").exists() && exported.join("artifacts/policy.bundle").exists());
}

#[test]
fn what_is_no_run_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, said) = run(dir.path(), &["export", "nowhere", "--mlflow", "mlruns"]);
    let said = plain(&said);
    assert!(code == 2 && said.contains("nowhere/summary.json") && said.contains("goodput eval"), "{said}");
    let (code, _, said) = run(dir.path(), &["export", "nowhere"]);
    assert!(code == 2 && said.contains("--to"), "{said}");
}
