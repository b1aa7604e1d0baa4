//! From the accounting of a real Slurm to advice: jobs run on Slurm 25.11 with `slurmdbd`, `sacct` lists them, and
//! `goodput data import` and `goodput advise` read the list.
//!
//! Where the release cannot be had the test says so and passes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::time::{Duration, Instant};

use goodput_testkit::not_tested;
use goodput_testkit::slurm::{PrivateCluster, SlurmInstall, SlurmRelease};
use serde_json::Value;

use crate::support::run;

/// Columns that `docs/src/how-to/import-a-trace.md` asks sacct for.
const COLUMNS: &str = "JobID,Submit,ElapsedRaw,TimelimitRaw,AllocTRES,Account,User,State";
/// Longest time that the jobs take.
const PATIENCE: Duration = Duration::from_secs(240);

/// Runs `command` until its output is as wanted.
fn until(what: &str, command: impl Fn() -> String, wanted: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let said = command();
        if wanted(&said) {
            return said;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {said}");
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// Puts a job back into the queue once it runs, and waits until it runs again.
fn put_back(cluster: &PrivateCluster, job: &str) {
    let state = || cluster.ask("squeue", &["--noheader", "--format=%T", "--jobs", job]).trim().to_owned();
    until("a run", state, |state| state == "RUNNING");
    cluster.ask("scontrol", &["requeue", job]);
    // Slurm holds such a job back for two minutes.
    let again = || {
        cluster.ask("scontrol", &["update", &format!("JobId={job}"), "StartTime=now"]);
        state()
    };
    until("another run", again, |state| state == "RUNNING");
}

/// Two tenants with twelve jobs each, on four nodes with eight accelerators each: half of them have to wait, and the
/// first one is put back once.
fn with_jobs(cluster: &PrivateCluster) -> String {
    for words in [
        "add account vision,speech cluster=private",
        "add user root account=vision,speech cluster=private defaultaccount=vision",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        cluster.ask("sacctmgr", &[&["--immediate"][..], &words].concat());
    }
    let sbatch = |account: &str, gpus: &str, secs: &str| {
        let (account, gpus, wrap) =
            (format!("--account={account}"), format!("--gpus={gpus}"), format!("--wrap=sleep {secs}"));
        let words =
            ["--parsable", "--chdir=/tmp", "--output=/dev/null", "--nodes=1", "--time=5", &account, &gpus, &wrap];
        cluster.ask("sbatch", &words)
    };
    // slurmctld hears of accounts from slurmdbd, a moment later.
    let first = until("an account", || sbatch("speech", "8", "6"), |said| !said.trim().is_empty());
    put_back(cluster, first.trim());
    for at in 1..24 {
        let account = ["speech", "vision"][at % 2];
        assert!(!sbatch(account, ["8", "4", "6"][at % 3], ["2", "4"][at % 2]).is_empty(), "job {at}");
    }
    until("the end", || cluster.ask("squeue", &["--noheader"]), |queue| queue.trim().is_empty());
    let list = ["--allusers", "--allocations", "--duplicates", "--parsable2", "--format", COLUMNS];
    // slurmdbd hears of ends from slurmctld, a moment later.
    let ended =
        || cluster.ask("sacct", &["--allusers", "--allocations", "--noheader", "--parsable2", "--format=State"]);
    until("the accounts", ended, |states| states.lines().filter(|state| *state == "COMPLETED").count() == 24);
    cluster.ask("sacct", &list)
}

#[test]
fn the_accounting_of_a_slurm_is_imported_and_advised_on() {
    let release = match SlurmInstall::of(SlurmRelease::ACCOUNTED) {
        Ok(release) => release,
        Err(error) => return not_tested(&error.to_string()),
    };
    let place = tempfile::tempdir().unwrap();
    let cluster = PrivateCluster::start_with_accounts(&release, &place.path().join("slurm")).unwrap();
    let listed = with_jobs(&cluster);
    drop(cluster);
    assert!(listed.lines().nth(1).unwrap().contains("gres/gpu=8"), "{listed}");

    let dir = place.path();
    fs::write(dir.join("jobs.txt"), &listed).unwrap();
    let (code, said, problem) = run(dir, &["data", "import", "jobs.txt", "-o", "jobs.parquet"]);
    assert_eq!(code, 0, "{said}{problem}\n{listed}");
    assert!(problem.contains("24 rows kept, 1 repaired, 0 refused"), "{problem}\n{listed}");
    assert!(problem.contains("2 runs, put back after REQUEUED"), "{problem}\n{listed}");
    let ask = |words: &str| -> Value {
        let words = format!("{words} -q -o json");
        let (code, answer, problem) = run(dir, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 0, "{words}: {problem}");
        serde_json::from_str(&answer).unwrap()
    };
    let figures = ask("data inspect jobs.parquet --cluster 4x8");
    let jobs = figures.as_array().unwrap().iter().find(|row| row["figure"] == "jobs");
    assert_eq!(jobs.unwrap()["value"], 24, "{figures}");

    let advice = ask("advise jobs.parquet --cluster 4x8 --policies fifo-backfill,easy --resamples 0");
    assert_eq!(advice["tenants"], serde_json::json!(["speech", "vision"]));
    let rows = advice["rows"].as_array().unwrap();
    for policy in ["fifo-backfill", "easy"] {
        let of_all = |row: &&Value| row["policy"] == policy && row["group"] == "all" && row["change"] == "nothing";
        let wait = rows.iter().find(of_all).unwrap()["figures"]["wait_mean_hours"]["value"].as_f64();
        assert!(wait.unwrap() > 0.0, "{policy}: {wait:?}");
    }

    let start = ask("advise job jobs.parquet --cluster 4x8 --gpus 8 --limit-hours 0.1");
    assert_eq!(start["policy"], "easy");
    assert!(start["wait"]["median"].as_f64().is_some(), "{start}");
}
