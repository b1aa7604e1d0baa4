//! A sweep on a real Slurm cluster, with tasks that are killed at random.
//!
//! Where Slurm is not installed this test says so and passes, but where `CI` is set it fails; `cargo xtask test`
//! installs it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a test that could not run says so")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use goodput_env::seed::{Stream, rng};
use goodput_testkit::slurm::{PrivateCluster, missing};
use rand::RngExt;

use crate::sweep::{SWEEP, assert_equal_results, command, names, options, runs, study, succeeds};

/// Tasks that are killed.
const KILLS: usize = 6;

/// Processes that run a shard of the sweep in `dir`.
fn tasks(dir: &Path) -> Vec<String> {
    let wanted = dir.display().to_string();
    let runs = |id: &String| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words: Vec<&str> = words.split(|byte| *byte == 0).filter_map(|word| str::from_utf8(word).ok()).collect();
        words.contains(&"--shard") && words.contains(&wanted.as_str())
    };
    names(Path::new("/proc"))
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(runs)
        .collect()
}

#[test]
fn an_array_of_which_tasks_are_killed_gives_what_one_process_gives() {
    if let Some(program) = missing() {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed");
        eprintln!("no Slurm: {program} is not installed; nothing was tested");
        return;
    }
    let (dir, study_of) = (study(SWEEP), options());
    let at = dir.path().canonicalize().unwrap();
    succeeds(&at, &command(&["eval"], &study_of, &["--run-dir", "one"]));
    succeeds(&at, &command(&["sweep", "plan"], &study_of, &["--to", "many"]));
    let place = tempfile::tempdir().unwrap();
    let cluster = PrivateCluster::start(place.path(), 3, 1, "a100", 5).unwrap();
    let submit = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        command.args(["sweep", "submit", "many", "--slurm", "--array", "7"]).current_dir(&at);
        command.env("SLURM_CONF", place.path().canonicalize().unwrap().join("conf/slurm.conf"));
        command.output().unwrap()
    };
    let output = submit();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let (many, began) = (at.join("many"), Instant::now());
    let mut random = rng(7, Stream::Policy);
    let mut killed = 0;
    while !many.join("summary.json").exists() {
        assert!(began.elapsed() < Duration::from_secs(300), "{}", cluster.ask("squeue", &[]));
        let running = tasks(&many);
        if killed < KILLS && !running.is_empty() && random.random_bool(0.3) {
            let victim = &running[random.random_range(0..running.len())];
            killed += usize::from(Command::new("kill").args(["-9", victim]).status().unwrap().success());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    while !cluster.ask("squeue", &["-h"]).trim().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(300), "{}", cluster.ask("squeue", &[]));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(killed > 0, "no task was killed");
    assert_equal_results(&at.join("one"), &many);
    let cells = names(&many.join("cells"));
    assert!(cells.len() == runs(&study_of, 4) && cells.iter().all(|name| name.ends_with(".parquet")), "{cells:?}");
    let log = fs::read_to_string(many.join("slurm/merge.log")).unwrap();
    assert!(log.contains("report: "), "{log}");
}
