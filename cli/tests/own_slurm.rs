//! From the accounting of a real Slurm to advice: jobs run on Slurm 25.11 with `slurmdbd`, `sacct` lists them, and
//! `goodput data import` and `goodput advise` read the list.
//!
//! Where the release cannot be had the test says so and passes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::time::{Duration, Instant};

use goodput_testkit::not_tested;
use goodput_testkit::slurm::{PrivateCluster, SlurmInstall, SlurmRelease};
use serde_json::{Value, json};

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
    assert_eq!(advice["tenants"], json!(["speech", "vision"]));
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

/// Slurm runs two jobs on the whole of two nodes, and two wait. `squeue --json` is asked as a user would.
#[test]
fn the_queue_of_a_slurm_is_a_snapshot_for_predicted_starts() {
    let release = match SlurmInstall::installed() {
        Ok(release) => release,
        Err(error) => return not_tested(&error.to_string()),
    };
    let place = tempfile::tempdir().unwrap();
    let cluster = PrivateCluster::start_release(&release, &place.path().join("slurm"), 2, 4, "a100", 5).unwrap();
    let sbatch = |gpus: &str, more: &[&str]| {
        let gpus = format!("--gpus={gpus}");
        let words = ["--parsable", "--chdir=/tmp", "--output=/dev/null", "--time=5", "--wrap=sleep 300", &gpus];
        cluster.ask("sbatch", &[&words[..], more].concat()).trim().to_owned()
    };
    let running = [sbatch("4", &["--nodes=1"]), sbatch("4", &["--nodes=1"])];
    let states = || cluster.ask("squeue", &["--noheader", "--format=%i %T %N"]);
    until("the jobs run", states, |said| said.matches("RUNNING").count() == 2);
    let waiting = [sbatch("8", &["--nodes=2", "--job-name=large"]), sbatch("1", &["--hold"])];
    until("the jobs wait", states, |said| said.matches("PENDING").count() == 2);
    let queue = cluster.ask("squeue", &["--json"]);
    let dir = place.path();
    fs::write(dir.join("queue.json"), &queue).unwrap();
    drop(cluster);

    // In the past, jobs ran for one of the five minutes that they asked for.
    let row = |job: usize| format!("{job},{},60,4,300\n", 600 * job);
    let past: String = (0..40).map(row).collect();
    fs::write(dir.join("jobs.csv"), format!("job_id,submit_secs,duration_secs,gpus,limit_secs\n{past}")).unwrap();
    let asked = ["advise", "job", "jobs.csv", "--cluster", "2x4", "--snapshot", "queue.json", "--job", "large"];
    let (code, said, problem) = run(dir, &[&asked[..], &["-q", "-o", "json"]].concat());
    assert_eq!(code, 0, "{said}{problem}\n{queue}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert!(told["job"].as_str().unwrap().starts_with(&waiting[0]), "{told}");
    assert_eq!((&told["running"], &told["free"], &told["queue"]["left_out"]), (&json!([2, 8]), &json!(0), &json!(1)));
    let frees = told["frees"].as_array().unwrap();
    let mut ends: Vec<&str> = frees.iter().filter_map(|job| job["job"].as_str()?.split(' ').next()).collect();
    ends.sort_unstable();
    assert_eq!(ends, running, "{told}");
    let nodes: Vec<&Value> = frees.iter().map(|job| &job["on"][0]).collect();
    assert!(
        nodes.contains(&&json!({ "node": "n0", "gpus": 4 })) && nodes.contains(&&json!({ "node": "n1", "gpus": 4 }))
    );
    // They have run for a moment, and run for a minute in all.
    let wait = told["wait"]["median"].as_f64().unwrap();
    assert!(wait > 0.0 && wait <= 61.0, "{told}");
    assert!(told["as_stated_secs"].as_f64().unwrap() > 200.0, "{told}");
}
