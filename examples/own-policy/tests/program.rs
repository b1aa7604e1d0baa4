//! The program knows its own policy wherever `goodput` takes the name of a policy.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const JOBS: &str = "name,time,application,num_replicas,batch_size\n\
                    large,0,cifar10,8,1024\nmiddle,1,cifar10,8,1024\nsmall,2,cifar10,1,128\n";

/// One node and two jobs that wait, as the daemon saw a cluster.
const SNAPSHOT: &str = r#"{
  "version": 1, "at_ms": 600000,
  "nodes": [{"name": "n0", "accelerator": "t4", "gpus": 4, "free": 4}],
  "jobs": [
    {"key": "large", "phase": "held", "starts": 0, "spec": {"work": {"fixed": {"duration": 60000}}, "request":
      {"name": "large", "tenant": 0, "submit": 0, "gpus": 4, "batch_size": null, "elasticity": "rigid"}}},
    {"key": "small", "phase": "held", "starts": 0, "spec": {"work": {"fixed": {"duration": 60000}}, "request":
      {"name": "small", "tenant": 0, "submit": 1000, "gpus": 1, "batch_size": null, "elasticity": "rigid"}}}
  ]
}"#;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Standard output of the program, which must succeed.
fn run(folder: &Path, args: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_own-policy")).args(args).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn it_is_listed_and_simulated() {
    let folder = folder("sim");
    assert!(run(&folder, &["list", "policies", "-o", "csv"]).contains("\nown-policy,"));
    assert!(run(&folder, &["completions", "bash"]).contains(" own-policy\n"));
    fs::write(folder.join("w.csv"), JOBS).unwrap();
    let args = ["sim", "--workload", "w.csv", "--cluster", "1x8", "-o", "csv", "--policy"];
    let start = |policy: &str, job: &str| {
        let rows = run(&folder, &[&args[..], &[policy]].concat());
        let row = rows.lines().find(|row| row.starts_with(job)).unwrap().to_owned();
        row.split(',').nth(3).unwrap().parse::<f64>().unwrap()
    };
    // The large job has all of the node. At its end the policy starts the smallest job, though the other one, which
    // needs all of the node as well, has waited for longer.
    assert!(start("own-policy", "small") < start("own-policy", "middle"));
    assert!(start("fifo", "middle") < start("fifo", "small"));
    assert_eq!(start("own-policy", "large"), start("fifo", "large"));
}

#[test]
fn it_is_compared_and_asked_why() {
    let folder = folder("eval");
    let experiment = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/experiment/quickstart.toml");
    let small = ["--set", "workload.synthetic.diurnal.jobs=12"];
    let eval = ["eval", experiment, "--policies", "own-policy,fifo", "--seeds", "2", "--run-dir", "run", "-o", "csv"];
    let table = run(&folder, &[&eval[..], &small].concat());
    assert!(table.contains("own-policy") && table.contains("fifo"), "{table}");
    let why = run(&folder, &[&["explain", "own-policy", "--config", experiment][..], &small].concat());
    assert!(why.contains("own-policy gives no reasons. Its rule: smallest job first"), "{why}");
}

#[test]
fn it_decides_live() {
    let folder = folder("live");
    let deployment = "mode = \"observe\"\n[engine.slurm]\n[policy]\nname = \"own-policy\"\n[state]\n\
                      directory = \"state\"\n[api]\nlisten = \"\"\n";
    fs::write(folder.join("deployment.toml"), deployment).unwrap();
    fs::write(folder.join("seen.json"), SNAPSHOT).unwrap();
    run(&folder, &["config", "check", "deployment.toml"]);
    let orders = run(&folder, &["live", "replay", "deployment.toml", "seen.json", "-o", "csv"]);
    // The large job came first, and would fill the node.
    assert_eq!(orders, "snapshot,verb,job,placement\n1,place,small,n0:1\n");
}
