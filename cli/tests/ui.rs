//! The local page, over HTTP: runs of a folder, a training as it goes, and a daemon behind it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::run;

/// A page that is served until the test ends.
pub struct Page {
    process: Child,
    /// Address of the page.
    pub url: String,
}

impl Page {
    /// The page of a folder, with more options.
    pub fn serve(folder: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        command.args(["ui", folder.to_str().unwrap(), "--port", "0"]).args(more);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }

    /// Status and text of an answer, to a call that names the host `host`.
    fn asked(&self, path: &str, host: &str) -> (u16, String) {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut answer = agent.get(format!("{}{path}", self.url)).header("host", host).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.asked(path, "127.0.0.1")
    }

    /// An answer in JSON.
    pub fn json(&self, path: &str) -> Value {
        let (status, text) = self.get(path);
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn runs_of_a_folder_are_listed_and_read() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run(dir.path(), &["init", "quickstart", "--to", "x.toml"]).0, 0);
    let few = ["eval", "x.toml", "--policies", "fifo,srtf", "--seeds", "1", "--run-dir", "runs/a", "-q"];
    let (code, _, said) = run(dir.path(), &[&few[..], &["--set", "workload.synthetic.diurnal.jobs=10"]].concat());
    assert_eq!(code, 0, "{said}");
    let page = Page::serve(&dir.path().join("runs"), &[]);
    let (status, text) = page.get("/");
    assert!(status == 200 && text.contains("uPlot") && !text.contains("$S"), "the page is whole");
    let runs = page.json("/api/runs");
    assert_eq!((&runs["runs"][0]["name"], &runs["runs"][0]["state"]), (&Value::from("a"), &Value::from("finished")));
    let summary = page.json("/api/summary?run=a");
    assert_eq!(summary["policies"].as_array().unwrap().len(), 2);
    assert_eq!(
        runs["runs"][0]["jct_secs"].as_f64(),
        ["fifo", "srtf"]
            .iter()
            .filter_map(|name| {
                let policies = summary["policies"].as_array().unwrap();
                policies.iter().find(|policy| policy["name"] == *name)?["metrics"]["jct_mean_secs"]["value"].as_f64()
            })
            .min_by(f64::total_cmp)
    );
    assert!(page.get("/report?run=a").1.contains("<title>"));

    assert_eq!(page.get("/report?run=..%2F..%2Fetc").0, 404, "a name leads nowhere else");
    assert_eq!(page.asked("/api/runs", "elsewhere.example").0, 403, "another site's name reads nothing");
    assert_eq!(page.get("/api/daemon").0, 404);
}

#[test]
fn a_training_is_told_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t/progress.csv");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "time/total_timesteps,eval/jct_mean_secs\n100,50.5\n").unwrap();
    let page = Page::serve(dir.path(), &[]);
    assert_eq!(page.json("/api/runs")["runs"][0]["state"], "running");
    let mut answer = ureq::get(format!("{}/api/progress?run=t", page.url)).call().unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut lines = BufReader::new(answer.body_mut().as_reader())
        .lines()
        .map(Result::unwrap)
        .filter(|line| line.starts_with("data:"));
    assert_eq!(lines.next().unwrap(), "data: time/total_timesteps,eval/jct_mean_secs");
    assert_eq!(lines.next().unwrap(), "data: 100,50.5");
    fs::write(&file, "time/total_timesteps,eval/jct_mean_secs\n100,50.5\n200,40\n").unwrap();
    assert_eq!(lines.next().unwrap(), "data: 200,40", "only what is new");
}

/// A daemon that is asked by a page, and its questions so far.
pub struct AskedDaemon {
    /// Address of the daemon.
    pub url: String,
    questions: Arc<Mutex<Vec<String>>>,
}

impl AskedDaemon {
    /// A daemon that answers until the tests end.
    pub fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let questions: Arc<Mutex<Vec<String>>> = Arc::default();
        let asked = questions.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut bytes = [0; 4096];
                let length = stream.read(&mut bytes).unwrap();
                let question = String::from_utf8_lossy(&bytes[..length]).to_lowercase();
                let body = Self::answer(question.split(' ').nth(1).unwrap_or_default());
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                asked.lock().unwrap().push(question);
                let _ = write!(stream, "{head}{body}");
            }
        });
        Self { url, questions }
    }

    /// The status has no nodes, services and jobs: each of them has a path of its own.
    fn answer(path: &str) -> String {
        let answer = match path {
            "/v1/status" => json!({
                "engine": "agents", "policy": "srtf+forecast", "mode": "act", "term": 1, "fallback": "", "now_secs": 0.0,
                "at_ms": 0, "decisions": 7, "decision_ms": 1.0, "open_orders": 0, "alerts": [], "nodes": [], "queue": [],
            }),
            "/v1/nodes" => json!([{
                "name": "n0", "accelerator": "a100", "gpus": 8, "free": 3, "pool": "shared", "lent": false, "health": "up",
            }]),
            "/v1/services" => json!([{
                "name": "web", "rate": 12.5, "replicas": [{ "node": "n0", "phase": "ready" }],
                "spec": {
                    "tenant": "", "gpus_per_replica": 1, "profiles": {}, "reference": "",
                    "slo": { "class": "interactive", "latency": 1000, "target": 0.99 }, "cold_start_ms": 0, "drain_ms": 0,
                    "min_replicas": 0, "max_replicas": 4, "arrival_cv2": 1.0, "work_cv2": 0.0, "rate_step_ms": 60000,
                },
                "forecast": {
                    "made_ms": 0, "until_ms": 60000, "usual": 14.0, "high": 21.0, "windows": 40, "above_high": 2,
                },
            }]),
            "/v1/queue" => json!([{
                "key": "1", "name": "a", "tenant": "", "phase": "held", "gpus": [1, 1, 1], "placement": [], "starts": 0,
                "age_secs": 5.0, "attained_gpu_secs": 0.0, "progress": null, "reason": "no-capacity",
                "detail": "it waits", "score": null,
            }]),
            path => panic!("{path} is not asked for"),
        };
        answer.to_string()
    }
}

#[test]
fn the_daemon_is_asked_with_the_token_and_its_state_is_handed_on() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, "secret\n").unwrap();
    let daemon = AskedDaemon::serve();
    let page = Page::serve(dir.path(), &["--daemon", &daemon.url, "--token-file", token.to_str().unwrap()]);
    let state = page.json("/api/daemon");
    assert_eq!((&state["queue"][0]["detail"], &state["status"]["decisions"]), (&"it waits".into(), &7.into()));
    assert_eq!((&state["nodes"][0]["name"], &state["services"][0]["forecast"]["high"]), (&"n0".into(), &21.0.into()));
    let asked = daemon.questions.lock().unwrap();
    let with_token = |asked: &String| asked.contains("authorization: bearer secret");
    assert!(asked.len() == 4 && asked.iter().all(with_token), "{asked:?}");
    assert!(!page.get("/").1.contains("secret"), "the token stays with the program");
}
