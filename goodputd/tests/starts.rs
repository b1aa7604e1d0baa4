//! Predicted starts on the command line: `goodputd explain` and `goodputd submit --dry-run`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goodput_configs::live::token::{ApiVerb, Token};
use goodput_executor::daemon::interface::api::{Api, ApiCommand, Call, CallRefusal, hash, router};
use goodput_executor::daemon::interface::health::DaemonHealth;
use goodput_executor::daemon::interface::metrics::Metrics;
use goodput_executor::daemon::interface::status::{DaemonStatus, QueueRow};
use goodput_executor::daemon::predict::PredictedStart;
use goodput_executor::daemon::predict::answer::{
    FreeingJob, JobAhead, Quantiles, RoomMade, StartBasis, TriedSubmission,
};
use goodput_executor::engine::OnNode;
use goodput_executor::http::{self, Door};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

fn start() -> PredictedStart {
    let quantiles = |low, median, high| Quantiles { low: Some(low), median: Some(median), high: Some(high) };
    let placement = vec![OnNode { node: "n1".into(), gpus: 8, ..OnNode::default() }];
    let (key, name) = (String::from("3"), String::from("bert"));
    PredictedStart {
        policy: "easy".into(),
        at_ms: 20_000 * 86_400_000 + 10 * 3_600_000,
        basis: StartBasis::Futures { futures: 100, ended: 212, came: 240, calibrated_on: 31 },
        wait: Quantiles { high: None, ..quantiles(50.0, 1020.0, 0.0) },
        ahead: vec![JobAhead { key: "6".into(), name: "sweep".into(), gpus: 1, share: 0.97 }],
        ahead_in_most: 1,
        overtaking: 0.4,
        free: 2,
        frees: vec![FreeingJob { key, name, placement, share: 1.0, ends: quantiles(120.0, 360.0, 9000.0) }],
        room: Some(RoomMade { jobs: 1, gpus: 10, ahead: 1 }),
        ..PredictedStart::default()
    }
}

/// A daemon with a job that waits and one that runs. It would refuse jobs of more than eight accelerators.
fn serve(runtime: &Runtime) -> String {
    let (calls, mut called) = tokio::sync::mpsc::channel::<Call>(1);
    let row = |name: &str, phase: &str| QueueRow {
        key: format!("key-{name}"),
        name: name.into(),
        phase: phase.into(),
        gpus: [8, 8, 8],
        ..QueueRow::default()
    };
    let queue = vec![row("waits", "held"), row("runs", "running"), row("left", "held")];
    let look = json!({ "at_secs": 7200.0, "horizon_secs": 3600.0, "ways": [
        { "name": "srtf", "futures": 12, "cost_secs": 5000.0, "difference_secs": null, "chosen": false },
        { "name": "sia", "futures": 12, "cost_secs": 4400.4, "difference_secs": [-599.6, -900.2, -300.0], "chosen": true },
    ] });
    let look = serde_json::from_value(look).unwrap();
    let status = Arc::new(Mutex::new(DaemonStatus { queue, look, ..DaemonStatus::default() }));
    let health = Arc::new(DaemonHealth::new(Duration::from_secs(600)));
    let (verbs, tenants) = (vec![ApiVerb::Admin], vec!["*".to_owned()]);
    let token = Token { name: "me".into(), sha256: hash("secret"), verbs, tenants, ..Token::default() };
    let api = Api { health, status, metrics: Arc::new(Metrics::new()), calls, tokens: [token].into(), mailbox: None };
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(http::serve(listener, Door::Plain, router(api)));
    runtime.spawn(async move {
        while let Some(Call { command, answer, .. }) = called.recv().await {
            let _ = answer.send(match command {
                ApiCommand::Orders(_) => Ok(json!([])),
                ApiCommand::PredictStart(key) if key == "key-waits" => Ok(json!(start())),
                ApiCommand::TrySubmission(job) if job.spec.request.gpus > 8 => {
                    let refused = vec!["too large".into(), "the engine is away".into()];
                    Ok(json!(TriedSubmission { refused, ..TriedSubmission::default() }))
                }
                ApiCommand::TrySubmission(_) => {
                    Ok(json!(TriedSubmission { start: Some(start()), ..TriedSubmission::default() }))
                }
                _ => Err(CallRefusal::Refused("an administrator works on it".into())),
            });
        }
    });
    format!("http://{address}")
}

/// Success and output of the program.
fn goodputd(url: &str, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodputd"));
    command.args(arguments).env_clear().env("GOODPUT_URL", url).env("GOODPUT_TOKEN", "secret");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

const WORDS: &str = "predicted start: in 17 min; one in ten is earlier than 50 s, and one in ten later than more than two months
  by 100 simulated futures under easy, with run times of 212 jobs that have ended and arrivals of 240 that came; calibrated on 31 earlier predictions
  ahead of it: sweep (1 accelerator) in 97 % of futures
  jobs that come later and start earlier: 0.4 on average
  10 accelerators are free after bert ends, with the 2 that are free now; jobs ahead of it ask for 1
  bert (8 on n1) ends in 6 min (2 min to 2.5 h), between 10:02 and 12:30 UTC
";

#[test]
fn explain_says_when_a_job_will_start() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let url = serve(&runtime);
    let (done, said, problem) = goodputd(&url, &["explain", "waits"]);
    assert!(done && said.ends_with(WORDS), "{said}{problem}");
    let (done, said, _) = goodputd(&url, &["explain", "runs"]);
    assert!(done && !said.contains("predicted"), "{said}");
    let plan = "plan: At 7200 s the policy simulated 2 ways to go on, 1 h each. sia is played since then: jobs spend 600 s \
                less in the system than under srtf, 95 % interval 300 to 900 s.\n  srtf: 5000 s in 12 futures\n  sia: \
                4400 s in 12 futures, -600 s [-900, -300]; chosen\n";
    assert!(said.contains(plan), "{said}");
    let (done, said, _) = goodputd(&url, &["explain", "left"]);
    assert!(done && said.ends_with("predicted start: none: an administrator works on it\n"), "{said}");
    let (done, said, _) = goodputd(&url, &["explain", "waits", "-o", "json"]);
    let told: Value = serde_json::from_str(&said).unwrap();
    assert!(done && told["job"]["name"] == "waits" && told["start"]["wait"]["median"] == 1020.0, "{said}");
    assert_eq!(
        told["start"]["basis"],
        json!({ "by": "futures", "futures": 100, "ended": 212, "came": 240, "calibrated_on": 31 })
    );
    assert_eq!(told["start"]["wait"]["high"], Value::Null);
    assert_eq!(told["look"]["ways"][1]["chosen"], true);
    assert_eq!(told["start"]["room"], json!({ "jobs": 1, "gpus": 10, "ahead": 1 }));
}

#[test]
fn a_dry_run_says_what_would_become_of_a_job() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let url = serve(&runtime);
    let dry_run = |more: &[&str]| {
        let words = ["submit", "--dry-run", "--name", "new"].into_iter().chain(more.iter().copied());
        goodputd(&url, &words.chain(["--", "true"]).collect::<Vec<_>>())
    };
    let (done, said, problem) = dry_run(&["--gpus", "8"]);
    assert!(done && said == format!("the job would be taken\n{WORDS}"), "{said}{problem}");
    let (done, said, problem) = dry_run(&["--gpus", "9"]);
    assert!(!done && said.is_empty(), "{said}");
    assert!(problem.contains("the job would be refused: too large; the engine is away"), "{problem}");
    let (done, said, _) = dry_run(&["--gpus", "9", "-o", "json"]);
    assert!(!done && serde_json::from_str::<Value>(&said).unwrap()["refused"][0] == "too large", "{said}");
    let (done, _, problem) = goodputd(&url, &["submit", "--name", "new", "--output", "json", "--", "true"]);
    assert!(!done && problem.contains("--dry-run"), "{problem}");
}
