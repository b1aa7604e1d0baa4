//! `goodput explain` as a user sees it: reasons of trained policies, of programs and of lookaheads, and what is
//! refused.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use super::cli::{HEADER, run, with};

/// Output of `explain` about a decision, with what holds of every explanation checked.
pub(super) fn explain(dir: &Path, args: &[&str]) -> serde_json::Value {
    let args: Vec<&str> = ["explain"].into_iter().chain(args.iter().copied()).chain(["-o", "json"]).collect();
    let said = run(dir, &args);
    let json = said.strip_prefix("exit: 0\n--- stdout\n").unwrap_or_else(|| panic!("{said}"));
    let value: serde_json::Value = serde_json::from_str(json.split("--- stderr").next().unwrap()).unwrap();
    let why = &value["explained"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let parts: f64 = why["features"].as_array().unwrap().iter().map(|part| number(&part["contribution"])).sum();
    let difference = number(&why["score"]) - number(&why["usual_score"]);
    assert!((difference - parts).abs() <= 2e-3 * difference.abs().max(1e-3), "{difference} {parts}");
    let queue = value["queue"].as_array().unwrap();
    assert_eq!(queue.len(), value["active"].as_u64().unwrap() as usize);
    let ranks: Vec<u64> = queue.iter().filter_map(|row| row["own"]["rank"].as_u64()).collect();
    assert!(ranks.iter().copied().eq(1..=ranks.len() as u64), "{ranks:?}");
    let beside: Vec<&str> = value["beside"].as_array().unwrap().iter().filter_map(|b| b["policy"].as_str()).collect();
    assert_eq!(beside, ["tiresias", "srtf", "pollux"]);
    value
}

/// The experiment of a shipped policy, cut down to seconds.
pub(super) fn elastic() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/elastic-16.toml");
    fs::read_to_string(path).unwrap().replace("jobs = 40", "jobs = 14\nhours = 1")
}

#[test]
fn a_shipped_policy_says_why() {
    let dir = with("x.toml", elastic());
    let value = explain(dir.path(), &["zoo:elastic-16", "--config", "x.toml", "--report", "why.html"]);
    assert_eq!(value["kind"], "utility");
    assert!(value["explained"]["residual"].as_f64().unwrap().abs() < 1e-9, "{value}");
    let page = fs::read_to_string(dir.path().join("why.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("log_speed_per_gpu") && page.ends_with("</html>\n"), "{page}");
    let asked = value["queue"][0]["job"].as_str().unwrap().to_owned();
    let at = value["at_secs"].as_f64().unwrap().to_string();
    let args = ["explain", "zoo:elastic-16", "--config", "x.toml", "--at", &at, "--job", &asked];
    let said = run(dir.path(), &args);
    assert!(said.contains(&format!("{asked}: logarithm of its worth")) && said.contains("TAU_ORDER"), "{said}");
    assert_eq!(said, run(dir.path(), &args), "the same twice");
}

/// A lookahead around a published and a trained policy shows the ways that it simulated, not the rule of its base.
#[test]
fn a_lookahead_says_what_it_simulated() {
    let dir = with("x.toml", elastic());
    for (name, kind) in [("lookahead(tiresias)", "published"), ("lookahead(zoo:elastic-16)(futures=4)", "lookahead")] {
        let args = ["explain", name, "--config", "x.toml", "--report", "why.html"];
        let said = run(dir.path(), &args);
        assert!(said.contains("ways to go on, 2 h each.") && said.contains("DIFFERENCE_SECS"), "{said}");
        assert!(!said.contains("Its rule"), "{said}");
        let page = fs::read_to_string(dir.path().join("why.html")).unwrap();
        assert!(page.contains("running jobs left as they are: "), "{page}");
        let json = run(dir.path(), &[&args[..], &["-o", "json"]].concat());
        let json = json.strip_prefix("exit: 0\n--- stdout\n").unwrap().split("--- stderr").next().unwrap();
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(value["kind"], kind);
        let ways = value["look"]["ways"].as_array().unwrap();
        assert_eq!(ways.iter().filter(|way| way["chosen"] == true).count(), 1, "{value}");
        assert!(ways[0]["difference_secs"].is_null() && ways[0]["futures"].as_u64() >= Some(2), "{value}");
    }
}

#[test]
fn explain_refuses_what_it_would_be_wrong_about() {
    let dir = with("x.toml", elastic());
    fs::write(dir.path().join("w.csv"), format!("{HEADER}a,5,cifar10,1,128\n")).unwrap();
    let x = ["--config", "x.toml"];
    for (name, bundle, more) in [
        ("explain_nobody", "zoo:nobody", &x[..]),
        ("explain_no_bundle", "x.toml", &x),
        ("explain_misspelt", "fifoo", &x),
        ("explain_unprefixed", "elastc", &x),
        ("explain_no_program", "proc:./there-is-none", &x),
        ("explain_information", "zoo:set-encoder", &x),
        ("explain_no_such_job", "zoo:elastic-16", &["--workload", "w.csv", "--cluster", "1x4", "--job", "b"]),
        ("explain_too_late", "zoo:elastic-16", &["--workload", "w.csv", "--cluster", "1x4", "--at", "1e9"]),
        ("explain_no_situation", "zoo:elastic-16", &[]),
    ] {
        let args: Vec<&str> = ["explain", bundle].into_iter().chain(more.iter().copied()).collect();
        insta::assert_snapshot!(name, run(dir.path(), &args));
    }
    let services = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/scenario/diurnal-loaning.toml");
    let said = run(dir.path(), &["explain", "zoo:set-encoder", "--config", services]);
    assert!(said.starts_with("exit: 2") && said.contains("training jobs"), "{said}");
}

/// The script of the external policies with a mode, where there is a Python to run it.
fn program(mode: &str) -> Option<String> {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is missing: EXTERNAL POLICIES ARE NOT TESTED ON THE COMMAND LINE");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../agents/tests/fixtures/external_policy.py");
    Some(format!("proc:python3 {script} {mode}"))
}

#[test]
fn an_external_program_is_simulated_and_asked_why() {
    let (Some(wordy), Some(silent)) = (program("reasons"), program("first")) else { return };
    let dir = with("x.toml", elastic());
    fs::write(dir.path().join("w.csv"), format!("{HEADER}a,5,cifar10,1,128\nb,6,cifar10,1,128\n")).unwrap();
    let said = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", &wordy, "-o", "csv"]);
    assert!(said.starts_with("exit: 0") && said.contains("\na,cifar10,5,") && !said.contains("lost"), "{said}");
    let said = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", &program("forbidden").unwrap()]);
    assert!(
        said.starts_with("exit: 0") && said.contains("lost") && said.contains("is forbidden by the mask"),
        "{said}"
    );

    let given = ["--workload", "w.csv", "--at", "0", "-o", "json"];
    let json = |policy: &str| -> serde_json::Value {
        let said = run(dir.path(), &[&["explain", policy][..], &given].concat());
        let json = said.strip_prefix("exit: 0\n--- stdout\n").unwrap_or_else(|| panic!("{said}"));
        serde_json::from_str(json.split("--- stderr").next().unwrap()).unwrap()
    };
    let why = json(&wordy);
    assert_eq!(
        (&why["kind"], &why["actions"][0]["job"], &why["actions"][0]["reason"]),
        (&"program".into(), &"a".into(), &"the 1th action".into()),
        "{why}"
    );
    assert_eq!(json(&silent)["actions"][0]["reason"], "");
    assert_eq!(json("fifo")["kind"], "published");
    let explain = |policy: &str| run(dir.path(), &["explain", policy, "--config", "x.toml", "--report", "why.html"]);
    assert!(explain(&wordy).contains("The program gave these reasons."));
    assert!(fs::read_to_string(dir.path().join("why.html")).unwrap().contains(", because: the "));
    assert!(explain(&silent).contains("gives no reasons: an external program gives the reasons that it sends"));
    assert!(explain("fifo").contains("fifo gives no reasons. Its rule: oldest first"));
}
