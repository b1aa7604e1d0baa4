//! The report of a daemon that observes.

use std::path::Path;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Mode;
use goodput_env::time::SimTime;
use goodput_executor::daemon::Daemon;
use goodput_executor::daemon::interface::audit::{Audit, AuditLine, AuditSize};
use goodput_executor::daemon::interface::report::LiveReport;
use goodput_executor::engine::{Attempt, JobPhase, OnNode};
use goodput_executor::machine::wall_ms;

use super::lab::{DOES_NOT, Lab, SCALES, block, open_with};

const DAY_MS: i64 = 86_400_000;

fn begin(lab: &mut Lab, key: &str, gpus: u32) {
    let since_ms = lab.at_ms;
    let seen = &mut lab.jobs.get_mut(key).unwrap().seen;
    let placement = vec![OnNode { node: "n0".into(), gpus, ..OnNode::default() }];
    seen.attempt = Some(Attempt { placement, since_ms, ..Attempt::default() });
    (seen.starts, seen.phase) = (1, JobPhase::Running);
}

/// A daemon that observes a cluster which starts jobs by itself: a job runs on all of a node and does not
/// scale, another one waits, and a third ends.
fn observed(directory: &Path) -> Daemon<Lab> {
    let mut lab = Lab::new();
    for (key, law) in [("runs", DOES_NOT), ("waits", SCALES), ("ends", SCALES)] {
        lab.add(key, law, None);
    }
    lab.jobs.get_mut("runs").unwrap().seen.spec.request.gpus = 8;
    begin(&mut lab, "runs", 8);
    let more = "[report]\nevery_secs = 0.001\nbaseline = \"fifo\"\n[canary]\n";
    let mut daemon = open_with(lab, directory, "pollux-fast", more);
    block(daemon.set_mode("test", Mode::Observe)).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let log = directory.join("audit.jsonl");
    let compared = || std::fs::read_to_string(&log).unwrap().matches("\"kind\":\"outlook\"").count();
    for round in 0.. {
        daemon.engine_mut().at_ms += 60_000;
        assert_eq!(block(daemon.cycle()).unwrap().open, 0, "nothing is done in the mode observe");
        match round {
            4 => begin(daemon.engine_mut(), "ends", 4),
            8 => daemon.engine_mut().jobs.get_mut("ends").unwrap().seen.phase = JobPhase::Done,
            12.. if compared() >= 3 => break,
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
        assert!(Instant::now() < until, "no comparison was made");
    }
    daemon
}

#[test]
fn a_report_tells_what_the_mode_observe_kept_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = observed(directory.path());
    // The daemon runs on while the report is made.
    let report = LiveReport::read(directory.path(), 14.0, wall_ms()).unwrap();
    assert!(!report.rests_on_enough(), "a minute is no fortnight");
    let said = report.too_little.join("\n");
    assert!(said.contains("observed for 0.0 hours") && said.contains("fewer than 20"), "{said}");
    assert_eq!(report.kept_back.orders["place"], 2, "an order that every round repeats counts once: {report:?}");
    assert!(report.kept_back.preempted_jobs >= 1, "the job that does not scale would be made smaller: {report:?}");
    let [completion] = &report.completions[..] else { panic!("{report:?}") };
    assert_eq!((completion.policy.as_str(), completion.against.as_str()), ("pollux-fast", "fifo"));
    assert!(completion.as_it_is && completion.comparisons >= 3 && completion.difference.is_none(), "{completion:?}");
    assert_eq!((report.jobs.started, report.jobs.done), (2, 1));
    assert!(report.jobs.mean_delay_secs.is_some_and(|secs| secs > 0.0), "{:?}", report.jobs);

    block(daemon.resign());
    let report = LiveReport::read(directory.path(), 14.0, wall_ms()).unwrap();
    assert!(report.kept_back.decisions > 10 && report.risks.failed_cycles[1] > 10, "{report:?}");
    assert_eq!(report.policies, ["pollux-fast"]);
}

/// Fourteen days of the lines of one, in a folder of rotated files as an operator copies it.
#[test]
fn two_weeks_have_intervals_also_in_a_copied_folder_of_rotated_files() {
    let directory = tempfile::tempdir().unwrap();
    drop(observed(directory.path()));
    let text = std::fs::read_to_string(directory.path().join("audit.jsonl")).unwrap();
    let lines: Vec<AuditLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let copy = tempfile::tempdir().unwrap();
    let log = copy.path().join("audit.jsonl");
    let mut audit = Audit::open(&log, AuditSize::default()).unwrap();
    let now = wall_ms();
    for day in (0..20).rev() {
        let at_ms = now - day * DAY_MS;
        for line in &lines {
            let mut body = line.body.clone();
            if line.kind == "outlook" {
                // No two days are equal.
                let mean = &mut body["compared"]["incumbent"]["mean_jct_secs"];
                *mean = serde_json::json!(mean.as_f64().unwrap() - 10.0 * day as f64);
            }
            audit.write(at_ms, &line.kind, body).unwrap();
        }
        let tally = serde_json::json!({ "since_ms": at_ms - DAY_MS, "mode": "observe", "policy": "pollux-fast",
            "cycles": 1000, "failed": 1, "decisions": 100, "of_fallback": 2 });
        audit.write(at_ms, "tally", tally).unwrap();
        let key = |n: i64| format!("{day}-{n}");
        let started: Vec<_> = (0..3)
            .map(|n| serde_json::json!({ "key": key(n), "name": "x", "gpus": 1, "submit_ms": at_ms, "start_ms": at_ms + 60_000 * (n + 1) }))
            .collect();
        audit.write(at_ms, "jobs", serde_json::json!({ "started": started })).unwrap();
        audit.write(at_ms, "alert", serde_json::json!({ "kind": "stale", "text": "old" })).unwrap();
    }
    drop(audit);
    // Rotation as a tool does it that knows nothing of the log: cut at lines, the older part renamed.
    let text = std::fs::read_to_string(&log).unwrap();
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let (old, new) = all.split_at(all.len() / 2);
    std::fs::write(copy.path().join("audit-2026-11-10.jsonl"), old.concat()).unwrap();
    std::fs::write(&log, new.concat() + "{\"seq\":").unwrap();

    let report = LiveReport::read(copy.path(), 14.0, now + 1).unwrap();
    assert_eq!(report.too_little, Vec::<String>::new());
    assert_eq!(report.jobs.started, 14 * 3 + 2);
    assert_eq!((report.kept_back.decisions, report.risks.decisions_of_fallback), (1400, 28));
    assert_eq!((report.risks.failed_cycles, report.risks.alerts["stale"].count), ([14, 14_000], 14));
    assert_eq!(report.risks.unreadable_lines, 1, "the line that is being written");
    let interval = report.completions[0].difference.unwrap();
    assert!(interval.low < interval.mean && interval.mean < interval.high, "{interval:?}");
    let per_day = report.kept_back.preemptions_per_day;
    assert!(per_day > 0.0 && per_day < 1.0, "{per_day}");
    let nothing = tempfile::tempdir().unwrap();
    let error = LiveReport::read(nothing.path(), 14.0, now).unwrap_err().to_string();
    assert!(error.contains("state directory"), "{error}");
    assert_eq!(SimTime::from_millis(report.period_ms[1] - report.period_ms[0]).as_secs_f64() / 86_400.0, 13.0);
}
