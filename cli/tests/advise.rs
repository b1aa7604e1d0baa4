//! Advice on a trace: figures worked by hand, one answer on any number of threads, and refusals.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{plain, run};

const HEADER: &str = "job_id,submit_secs,duration_secs,gpus,tenant\n";

fn advice(dir: &Path, more: &[&str]) -> Value {
    let args = [&["advise", "jobs.csv", "-q", "-o", "json"], more].concat();
    let (code, out, err) = run(dir, &args);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

fn wait(advice: &Value, policy: &str, change: &str) -> (f64, Option<f64>) {
    let rows = advice["rows"].as_array().unwrap();
    let of_change = |row: &&Value| row["change"].get(change).is_some() || row["change"] == change;
    let all = |row: &&Value| row["policy"] == policy && row["group"] == "all";
    let row = rows.iter().filter(all).find(of_change).unwrap();
    (
        row["figures"]["wait_mean_hours"]["value"].as_f64().unwrap(),
        row["difference"]["wait_mean_hours"]["value"].as_f64(),
    )
}

/// Two jobs of an hour on the whole cluster: one of them waits for an hour and the start of the other, and none does
/// with a second node.
#[test]
fn a_second_node_ends_the_wait_of_two_jobs() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), format!("{HEADER}a,0,3600,2,x\nb,0,3600,2,y\n")).unwrap();
    let found = advice(dir.path(), &["--cluster", "1x2", "--policies", "fifo,srtf", "--resamples", "0"]);
    let waits = 3630.0 / 3600.0 / 2.0;
    assert_eq!(wait(&found, "fifo", "nothing"), (waits, None));
    assert_eq!(wait(&found, "fifo", "one_more_node"), (0.0, Some(-waits)));
    assert_eq!(wait(&found, "srtf", "nothing"), (waits, Some(0.0)));
    assert_eq!(found["tenants"], json!(["x", "y"]));
    let cluster = &found["rows"][0]["figures"];
    assert_eq!(
        (cluster["utilisation_percent"]["value"].as_f64(), cluster["idle_gpu_hours"]["value"].as_f64()),
        (Some(100.0), Some(0.0))
    );
    assert_eq!(cluster["fragmentation_percent"]["value"].as_f64(), Some(0.0));
}

#[test]
fn free_accelerators_in_pieces_are_fragmentation() {
    let dir = tempfile::tempdir().unwrap();
    // Two nodes of three: each has a job of two and one free accelerator for an hour, while a job of three waits.
    fs::write(dir.path().join("jobs.csv"), format!("{HEADER}a,0,3570,2,x\nb,0,3570,2,x\nc,0,3570,3,x\n")).unwrap();
    let found = advice(dir.path(), &["--cluster", "2x3", "--policies", "fifo", "--resamples", "0"]);
    let figures = &found["rows"][0]["figures"];
    let percent = |name: &str| figures[name]["value"].as_f64().unwrap();
    // Of twelve accelerator-hours two are free in pieces, and seven are held.
    assert!((percent("fragmentation_percent") - 100.0 * 2.0 / 12.0).abs() < 0.1, "{figures}");
    assert!((percent("utilisation_percent") - 100.0 * 7.0 / 12.0).abs() < 0.1, "{figures}");
}

/// Five days with a burst in the morning of each.
fn days() -> String {
    let mut text = HEADER.to_owned();
    for job in 0..100 {
        let (day, nth) = (job / 20, job % 20);
        let (submit, secs) = (86_400 * day + 60 * nth, 300 + 1_700 * (nth * 7 % 11));
        writeln!(text, "j{job},{submit},{secs},{},t{}", [1, 2, 4, 8][nth % 4], nth % 3).unwrap();
    }
    text
}

#[test]
fn threads_change_nothing_and_the_best_policy_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    let of = |threads: &str, output: &str| {
        let args = ["advise", "jobs.csv", "--cluster", "2x4", "--resamples", "5", "-q", "-j", threads, "-o", output];
        let (code, out, err) = run(dir.path(), &args);
        assert_eq!(code, 0, "{err}");
        plain(&out)
    };
    assert_eq!(of("1", "csv"), of("2", "csv"));
    let page = of("2", "table");
    for words in
        ["100 jobs over 96 hours on 8 accelerators", "never stop a job", "one more node of gpu", "twice the weight for"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    let found = advice(dir.path(), &["--cluster", "2x4", "--resamples", "5"]);
    assert!(wait(&found, found["best"].as_str().unwrap(), "nothing").0 < wait(&found, "fifo", "nothing").0);
}

/// The figures of the page are those that are worked by hand above.
#[test]
fn a_page_says_in_sentences_what_each_policy_would_have_done() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), format!("{HEADER}a,0,3600,2,x\nb,0,3600,2,y\n")).unwrap();
    let asked = ["advise", "jobs.csv", "--cluster", "1x2", "--policies", "fifo,srtf", "--resamples", "0"];
    let (code, _, said) = run(dir.path(), &[&asked[..], &["--report", "advice.html"]].concat());
    assert!(code == 0 && said.contains("page: advice.html"), "{said}");
    let page = fs::read_to_string(dir.path().join("advice.html")).unwrap();
    for sentence in [
        "<title>Other schedulers for the jobs of jobs.csv</title>",
        "<b>fifo:</b> Oldest first, at the requested size; no job passes one that does not fit. It never stops a job. A \
         job waits for 30 min on average. ",
        "A job waits for 30 min on average, as long as under fifo.",
        "Jobs hold 100.0\u{a0}% of the accelerators, 0 accelerator-hours are idle, and 0.0\u{a0}% of all accelerator",
        "<b>One more node of gpu:</b> under fifo, a job waits for 0 s on average, 30 min less than without it.",
        "Mean wait by tenant, hours",
        "Mean wait of a job by policy",
    ] {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }
    assert!(page.len() < 1_000_000 && page.contains("@page"), "one file, also for paper");
    assert!(!page.contains("src=") && !page.contains("@import") && !page.contains("url("), "it fetches nothing");
    fs::remove_file(dir.path().join("advice.html")).unwrap();
    run(dir.path(), &[&asked[..], &["--report", "advice.html"]].concat());
    assert_eq!(fs::read_to_string(dir.path().join("advice.html")).unwrap(), page, "equal advice, equal bytes");
}

/// A range that leaves out zero is certain, and one that does not may be chance.
#[test]
fn a_page_has_ranges_and_says_what_may_be_chance() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    let asked = ["advise", "jobs.csv", "--cluster", "2x4", "--resamples", "5", "--format", "json", "-q"];
    let (code, out, said) = run(dir.path(), &[&asked[..], &["--report", "advice.html"]].concat());
    assert_eq!(code, 0, "{said}");
    let found: Value = serde_json::from_str(&out).unwrap();
    let page = fs::read_to_string(dir.path().join("advice.html")).unwrap();
    let rows = found["rows"].as_array().unwrap();
    for policy in found["policies"].as_array().unwrap() {
        let row = rows.iter().find(|row| row["policy"] == *policy && row["group"] == "all").unwrap();
        let wait = &row["figures"]["wait_mean_hours"];
        let [value, low, high] = [&wait["value"], &wait["ci"]["low"], &wait["ci"]["high"]].map(|v| v.as_f64().unwrap());
        let cell = format!("{value:.2}<small>{low:.2}–{high:.2}</small>");
        assert!(page.contains(&cell), "{policy}: {cell}");
    }
    let unsure = rows.iter().any(|row| {
        let range = &row["difference"]["wait_mean_hours"]["ci"];
        row["group"] == "all" && range["low"].as_f64() < Some(0.0) && range["high"].as_f64() > Some(0.0)
    });
    assert_eq!(page.contains("which may be chance"), unsure, "{found}");
    assert!(page.contains("A job of ") && page.contains("Twice the weight for "));
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    for (more, words) in [
        (["--cluster", "1x4", "--resamples", "2"], "needs 8 accelerators"),
        (["--cluster", "2x4", "--block-hours", "999"], "single block"),
        (["--cluster", "2x4", "--policies", "fifth"], "there is no policy"),
        (["--cluster", "2x4", "--policies", "easy,easy(order=fcfs)"], "easy is named twice"),
        (["--cluster", "2x4", "--policies", "gavel-per-watt"], "watts"),
        (["--cluster", "2x4", "--estimate-sigma", "9"], "expected from 0 to 5"),
    ] {
        let (code, _, said) = run(dir.path(), &[&["advise", "jobs.csv"], &more[..]].concat());
        assert!(code == 2 && plain(&said).contains(words), "{more:?}: {said}");
    }
}

/// A job that asks for the whole cluster, where the trace ends.
#[test]
fn the_start_of_a_job_is_predicted_with_what_is_ahead_of_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    let asked = ["advise", "job", "jobs.csv", "--cluster", "1x8", "--policy", "fifo-backfill", "--gpus", "8", "-q"];
    let (code, out, err) = run(dir.path(), &asked);
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(plain(&out));
    let (code, out, _) = run(dir.path(), &[&asked[..], &["-o", "json"]].concat());
    let found: Value = serde_json::from_str(&out).unwrap();
    let of = |end: &str| found["wait"][end].as_f64().unwrap();
    assert!(code == 0 && of("low") <= of("median") && of("median") <= of("high") && of("low") > 0.0, "{found}");
    let (one, other) = (run(dir.path(), &[&asked[..], &["-j", "1"]].concat()), run(dir.path(), &asked));
    assert_eq!(one, other, "any number of threads gives one answer");
}

/// `squeue --json` of Slurm 22.05 with two jobs that run, one that waits and one that is held, on two nodes of four.
fn queue() -> String {
    let job = |id: u32, name: &str, state: &str, more: &str| {
        format!(
            r#"{{"job_id":{id},"name":"{name}","job_state":"{state}","account":"t1","submit_time":1795536000,
            "start_time":1795536000,"time_limit":120,"node_count":1,{more}}}"#
        )
    };
    let jobs = [
        job(7, "bert", "RUNNING", r#""priority":9,"nodes":"gpu2","gres_detail":["gpu:a100:4(IDX:0-3)"]"#),
        job(8, "gpt", "RUNNING", r#""priority":9,"nodes":"gpu10","gres_detail":["gpu:a100:3(IDX:0-2)"]"#),
        job(9, "large", "PENDING", r#""priority":9,"tres_per_job":"gres:gpu:8","state_reason":"Resources""#),
        job(10, "later", "PENDING", r#""priority":0,"tres_per_job":"gres:gpu:1","state_reason":"JobHeldUser""#),
    ];
    let moment = r#"{"set":true,"infinite":false,"number":1795537800}"#;
    format!(r#"{{"errors":[],"last_update":{moment},"jobs":[{}]}}"#, jobs.join(","))
}

/// The trace is the past of a queue that Slurm told.
#[test]
fn the_start_of_a_job_in_a_queue_of_slurm_is_predicted() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    fs::write(dir.path().join("queue.json"), queue()).unwrap();
    let asked = ["advise", "job", "jobs.csv", "--cluster", "2x4", "--policy", "easy", "--snapshot", "queue.json", "-q"];
    let ask = |more: &[&str]| run(dir.path(), &[&asked[..], more].concat());
    let (code, out, err) = ask(&["--job", "9"]);
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(plain(&out));
    let (_, out, err) = ask(&["--job", "large", "-o", "json"]);
    let found: Value = serde_json::from_str(&out).expect(&err);
    assert_eq!(found["queue"]["at_ms"], 1_795_537_800_000_i64);
    assert_eq!((&found["running"], &found["waiting"], &found["free"]), (&json!([2, 7]), &json!([0, 0]), &json!(1)));
    assert_eq!(found["room"], json!({ "jobs": 2, "gpus": 8, "ahead": 0 }));
    let on: Vec<&Value> = found["frees"].as_array().unwrap().iter().map(|job| &job["on"][0]).collect();
    for held in [json!({ "node": "gpu2", "gpus": 4 }), json!({ "node": "gpu10", "gpus": 3 })] {
        assert!(on.contains(&&held), "{found}");
    }
    // A job that is submitted now is behind the large one, or passes it on the accelerator that is free.
    let (_, out, _) = ask(&["--gpus", "4", "--limit-hours", "1", "-o", "json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(found["wait"]["median"].as_f64().unwrap() > 0.0 && found["waiting"] == json!([1, 8]), "{found}");
    for (more, said) in [
        (&["--job", "7"][..], "it runs"),
        (&["--job", "10"], "no job of queue.json that may start"),
        (&["--gpus", "4"], "add --limit-hours"),
        (&["--cluster", "1x8"], "no node left that can be gpu10"),
        (&["--cluster", "4x2"], "no node left that can be gpu2"),
        (&["--snapshot", "jobs.csv"], "squeue --json"),
    ] {
        let kept: Vec<&str> = match more[0] {
            "--cluster" => asked.iter().copied().filter(|word| !["--cluster", "2x4"].contains(word)).collect(),
            "--snapshot" => asked.iter().copied().filter(|word| !["--snapshot", "queue.json"].contains(word)).collect(),
            _ => asked.to_vec(),
        };
        let (code, _, err) = run(dir.path(), &[&kept[..], more].concat());
        assert!(code == 2 && plain(&err).contains(said), "{more:?}: {code} {err}");
    }
}

/// Queues of Slurm that do not say enough.
#[test]
fn a_queue_that_does_not_say_enough_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    let ask = |queue: &str, cluster: &str, job: &str, policy: &str| {
        fs::write(dir.path().join("queue.json"), queue).unwrap();
        let of_queue = ["--snapshot", "queue.json", "--job", job, "-q"];
        let asked = ["advise", "job", "jobs.csv", "--cluster", cluster, "--policy", policy];
        let (code, _, said) = run(dir.path(), &[&asked[..], &of_queue].concat());
        (code, plain(&said))
    };
    let untyped = queue().replace("gpu:a100:", "gpu:");
    let twice = queue().replace(r#""priority":0"#, r#""priority":9"#).replace("JobHeldUser", "Priority");
    let twice = twice.replace("later", "large");
    let hidden = queue().replace(r#""gres_detail""#, r#""tres_per_job":"gres:gpu:3","hidden""#);
    let unlimited = queue().replace(r#""time_limit":120"#, r#""time_limit":0"#);
    for (queue, cluster, job, policy, said) in [
        (&untyped, "v100:2x4,a100:2x4", "9", "fifo", &["several types", "goodput live plan"][..]),
        (&queue(), "v100:3x4,a100:1x4", "9", "fifo", &["no node left that can be gpu10", "of type a100"]),
        (&twice, "2x4", "large", "fifo", &["2 waiting jobs have that name", "ask by number: 9, 10"]),
        (&queue(), "2x4", "later", "fifo", &["has that number, key or name", "are left out"]),
        (&hidden, "2x4", "9", "fifo", &["job 7 runs and asks for 3 accelerators", "gres_detail"]),
        (&unlimited, "2x4", "large", "easy", &["plans by run times", "scontrol update JobId"]),
    ] {
        let (code, err) = ask(queue, cluster, job, policy);
        assert!(code == 2 && said.iter().all(|words| err.contains(words)), "{said:?}: {code} {err}");
    }
}

/// A snapshot of a daemon at a moment of its clock. On three nodes of four a job holds one node, a replica two
/// accelerators of the next one, and the last one is drained. A job that a user gave to Slurm waits, and one is held.
fn snapshot(at_ms: i64) -> String {
    let job = |key: &str, name: &str, phase: &str, hands_off: bool, attempt: Value| {
        let request = json!({ "name": name, "tenant": 0, "submit": at_ms - 600_000, "gpus": 4, "batch_size": null,
            "elasticity": "rigid", "limit": 7_200_000 });
        let spec = json!({ "request": request, "work": { "fixed": { "duration": 7_200_000 } } });
        json!({ "key": key, "spec": spec, "tenant": "t1", "phase": phase, "starts": 0, "hands_off": hands_off,
            "attempt": attempt })
    };
    let on = json!({ "number": 0, "placement": [{ "node": "gpu1", "gpus": 4 }], "since_ms": at_ms - 600_000 });
    let node = |name: &str, free: u32, health: &str| json!({ "name": name, "accelerator": "gpu", "gpus": 4, "free": free, "health": health });
    let snapshot = json!({
        "version": 1,
        "at_ms": at_ms,
        "nodes": [node("gpu1", 0, "up"), node("gpu2", 2, "up"), node("gpu3", 4, "drained")],
        "jobs": [
            job("7", "bert", "running", false, on),
            job("8", "plain", "released", true, Value::Null),
            job("9", "later", "held", true, Value::Null),
        ],
    });
    snapshot.to_string()
}

/// Neither a drained node nor the accelerators of a replica are room for a job.
#[test]
fn the_start_of_a_job_in_a_snapshot_is_predicted() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    let ask = |at_ms: i64, job: &str, output: &str| {
        fs::write(dir.path().join("seen.json"), snapshot(at_ms)).unwrap();
        let asked = ["advise", "job", "jobs.csv", "--cluster", "3x4", "--policy", "fifo", "--snapshot", "seen.json"];
        run(dir.path(), &[&asked[..], &["--job", job, "-q", "-o", output]].concat())
    };
    let (code, out, err) = ask(1_795_537_800_000, "plain", "json");
    assert_eq!(code, 0, "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&found["running"], &found["waiting"], &found["free"]), (&json!([1, 4]), &json!([0, 0]), &json!(2)));
    assert_eq!((&found["job"], &found["queue"]["left_out"]), (&json!("8 plain"), &json!(1)));
    assert_eq!(found["room"], json!({ "jobs": 1, "gpus": 6, "ahead": 0 }));
    assert_eq!(found["frees"][0]["on"], json!([{ "node": "gpu1", "gpus": 4 }]));
    assert!(found["wait"]["median"].as_f64().unwrap() > 0.0, "{found}");
    let (code, _, err) = ask(1_795_537_800_000, "later", "json");
    assert!(code == 2 && plain(&err).contains("no job of seen.json that may start"), "{err}");
    // A time of day is told of a real clock only.
    let [real, simulated] = [1_795_537_800_000, 900_000].map(|at_ms| plain(&ask(at_ms, "8", "table").1));
    assert!(real.contains("seen.json at 2026-11-24 16:30 UTC") && real.matches("UTC").count() == 2, "{real}");
    assert!(simulated.contains("in the queue of seen.json. At") && !simulated.contains("UTC"), "{simulated}");
}

#[test]
fn a_start_that_cannot_be_predicted_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    for (more, said) in [
        (&["--policy", "easy"][..], "add --limit-hours"),
        (&["--policy", "fifo", "--gpus", "9"], "expected from 1 to 8"),
        (&["--policy", "fifo", "--tenant", "t9"], "--tenant t9"),
        (&["--policy", "fifo,srtf"], "expected one policy"),
        (&["--policy", "fifo", "--futures", "1"], "at least 2"),
        (&["--policy", "fifo", "--check", "--gpus", "2"], "cannot be used with"),
    ] {
        let (code, _, err) =
            run(dir.path(), &[&["advise", "job", "jobs.csv", "--cluster", "1x8", "-q"], more].concat());
        assert!(code == 2 && plain(&err).contains(said), "{code} {err}");
    }
}

#[test]
fn predictions_are_checked_against_what_came() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.csv"), days()).unwrap();
    let asked = ["advise", "job", "jobs.csv", "--cluster", "1x8", "--policy", "easy", "--check", "-q", "-o", "json"];
    let (code, out, err) = run(dir.path(), &asked);
    assert_eq!(code, 0, "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(found["waiting"].as_u64().unwrap() > 20, "{found}");
    // Where no job waits there is nothing to check, and no figure is made up.
    fs::write(dir.path().join("jobs.csv"), format!("{HEADER}a,0,60,1,x\nb,90,60,1,x\n")).unwrap();
    let (code, out, err) = run(dir.path(), &asked);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(code == 0 && found["coverage"].is_null() && err.contains("too few jobs had to wait"), "{err}{found}");
    let (code, _, err) = run(dir.path(), &["advise", "--policies", "fifo"]);
    assert!(code == 2 && err.contains("TRACE"), "{err}");
}
