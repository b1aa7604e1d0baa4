//! `goodputd report --days 14` about a fortnight in which a daemon observed a cluster that starts its jobs itself.
//!
//! The cluster and its fortnight are simulated, the daemon and its audit log are real. The log has the time of the
//! machine, so each line is given the time of the simulation at which the daemon wrote it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stdout, reason = "a test, which prints what it counted")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::reader;
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use goodput_executor::daemon::interface::report::LiveReport;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::sim::SimEngine;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, OnNode, Order};
use goodput_executor::machine::wall_ms;
use serde_json::Value;

const HOUR: i64 = 3_600;
/// Length of the observation, seconds: a quarter of an hour less than a fortnight, so that the report has all of it.
const FORTNIGHT: i64 = 14 * 24 * HOUR - 900;

/// Jobs for four nodes of eight accelerators. Each day brings two long jobs on a whole node each, and every other hour
/// of the day a short one on half a node.
fn workload() -> Vec<JobSpec> {
    let job = |name: String, at: i64, gpus: u32, hours: i64| {
        let request = JobRequest { name, submit: SimTime::from_secs(at), gpus, ..JobRequest::default() };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(hours * HOUR) } }
    };
    let day = |day: i64| {
        (0..24).map(move |hour| {
            let at = (24 * day + hour) * HOUR + 60;
            match hour {
                2 | 3 => job(format!("long-{day}-{hour}"), at, 8, 26),
                _ => job(format!("short-{day}-{hour}"), at, 4, 4),
            }
        })
    };
    (0..14).flat_map(day).collect()
}

/// The operator's own scheduler: the first of the queue that fits on a node starts, and none is ever stopped.
async fn start_what_fits(cluster: &mut SimEngine) {
    let seen = cluster.snapshot().await.unwrap();
    let mut free: Vec<u32> = seen.nodes.iter().map(|node| node.free).collect();
    let mut orders = Vec::new();
    for job in seen.jobs.iter().filter(|job| job.phase == JobPhase::Held) {
        let gpus = job.spec.request.gpus;
        let Some(at) = free.iter().position(|free| *free >= gpus) else { continue };
        free[at] -= gpus;
        let placement = vec![OnNode { node: seen.nodes[at].name.clone(), gpus, ..OnNode::default() }];
        orders.push(Order::named("own", &job.key, job.starts, EngineAction::Place { placement, share: None }));
    }
    cluster.apply(&orders).await.unwrap();
}

/// Lines of a log so far.
fn lines(log: &Path) -> Vec<String> {
    std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Observes the fortnight, and gives the lines of the audit log with the time of the simulation, seconds.
async fn observe(mut daemon: Daemon<SimEngine>, log: &Path) -> Vec<(i64, String)> {
    let mut told: Vec<(i64, String)> = Vec::new();
    let compared =
        |told: &[(i64, String)]| told.iter().filter(|(_, line)| line.contains("\"kind\":\"outlook\"")).count();
    for half_hours in 0..=FORTNIGHT / 1800 {
        let at = SimTime::from_secs(half_hours * 1800);
        while daemon.engine_mut().advance(at).unwrap() < at {
            start_what_fits(daemon.engine_mut()).await;
        }
        start_what_fits(daemon.engine_mut()).await;
        let began = Instant::now();
        loop {
            assert_eq!(daemon.cycle().await.unwrap().open, 0, "nothing is done in the mode observe");
            let new = lines(log).into_iter().skip(told.len()).map(|line| (half_hours * 1800, line));
            told.extend(new.collect::<Vec<_>>());
            // At least one comparison by simulation each day.
            if compared(&told) as i64 >= half_hours / 48 {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no comparison on day {}", half_hours / 48);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    daemon.resign().await;
    let new: Vec<String> = lines(log).split_off(told.len());
    told.extend(new.into_iter().map(|line| (FORTNIGHT, line)));
    told
}

fn report(folder: &Path, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodputd"));
    let output = command.arg("report").arg(folder).args(["--days", "14"]).args(more).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_report_about_a_fortnight_says_what_would_have_changed() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "mode = \"observe\"\n[engine.slurm]\n[policy]\nname = \"srtf\"\n\
         [reliance]\ntimeout_ms = 20000\n[state]\ndirectory = {:?}\nname = \"a\"\n[api]\nlisten = \"\"\n\
         [report]\nevery_secs = 0.001\nbaseline = \"fifo\"\n",
        directory.path()
    );
    let settings: Deployment = reader::parse("observes.toml", &text).unwrap();
    let jobs = workload();
    let cluster = Arc::new(Cluster::parse("gpu:4x8").unwrap());
    let workload = Arc::new(Workload::new(Vec::new(), jobs));
    let engine = SimEngine::new(Scenario::new(cluster, workload, SimOptions::standard(), 0));
    let daemon = daemon::open(engine, settings, Vec::new(), Arc::new(Tenants::default())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = runtime.block_on(observe(daemon, &directory.path().join("audit.jsonl")));

    // What really happened is in the log, line by line.
    let begin_ms = wall_ms() - 14 * 24 * HOUR * 1000 + 450_000;
    let copy = tempfile::tempdir().unwrap();
    let (mut log, mut starts, mut ends, mut delays) = (String::new(), 0, 0, Vec::new());
    for (at, line) in &told {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["at_ms"] = (begin_ms + at * 1000).into();
        let body = &mut line["body"];
        for job in body["started"].as_array().into_iter().flatten() {
            starts += 1;
            delays.push((job["start_ms"].as_f64().unwrap() - job["submit_ms"].as_f64().unwrap()) / 1000.0);
        }
        ends += body["ended"].as_array().map_or(0, Vec::len);
        if line["kind"] == "tally" {
            line["body"]["since_ms"] = begin_ms.into();
        }
        log += &format!("{line}\n");
    }
    std::fs::write(copy.path().join("audit.jsonl"), log).unwrap();

    let json = report(copy.path(), &["--format", "json"]);
    let said: LiveReport = serde_json::from_str(&json).unwrap();
    assert_eq!((said.days, said.policies.as_slice()), (14.0, ["srtf".to_owned()].as_slice()));
    assert_eq!(said.too_little, Vec::<String>::new(), "{json}");
    assert!((said.observed_hours - 335.75).abs() < 0.1 && said.watched_hours == said.observed_hours, "{json}");
    assert_eq!((said.jobs.started, said.jobs.done, said.jobs.not_done), (starts, ends, 0), "{json}");
    assert!(starts > 300 && ends > 280, "{starts} jobs began and {ends} ended");
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((said.jobs.mean_delay_secs.unwrap() - mean).abs() < 1e-6, "{json}");
    // A policy that serves short jobs first stops long ones, which the mode kept back.
    let kept = &said.kept_back;
    assert!(kept.decisions > 600 && kept.orders["place"] > 0 && kept.orders["stop"] > 0, "{json}");
    assert!(kept.preempted_jobs >= 1 && kept.most_preempted.iter().any(|(job, _)| job.contains("long")), "{json}");
    let [of] = said.completions.as_slice() else { panic!("{json}") };
    assert_eq!((of.policy.as_str(), of.against.as_str(), of.as_it_is), ("srtf", "fifo", true));
    let interval = of.difference.unwrap();
    assert!(of.comparisons >= 13 && interval.low <= interval.mean && interval.mean <= interval.high, "{json}");
    assert_eq!((said.risks.failed_cycles[0], said.risks.unreadable_lines), (0, 0), "{json}");

    let text = report(copy.path(), &[]);
    println!("{text}");
    let row = |what: &str, value: String| {
        let line =
            text.lines().find(|line| line.trim_start().starts_with(what)).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(line.ends_with(&value), "{line:?} does not end with {value:?}");
    };
    assert!(text.starts_with("Report about 14 days, lines of the log from ") && text.contains("The data suffices."));
    row("policy srtf; watched for", format!("{:.1} h in the mode observe", said.observed_hours));
    row("began", said.jobs.started.to_string());
    row("ended well; failed or cancelled", format!("{}; 0", said.jobs.done));
    row("decisions in the mode observe", kept.decisions.to_string());
    row("jobs moved, resized or stopped while they ran", kept.preempted_jobs.to_string());
    row("Completion by simulation: srtf against fifo", "the cluster as it is".into());
    row("different jobs sooner; later", format!("{}; {}", of.jobs[0], of.jobs[1]));
    row("cycles that ended early, of all", format!("0 of {}", said.risks.failed_cycles[1]));
}
