//! A sweep and a distributed training on a real Slurm cluster, with tasks that are killed.
//!
//! Where Slurm is not installed these tests say so and pass, but where `CI` is set they fail; `cargo xtask test`
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

use crate::support::run;
use crate::sweep::{SWEEP, assert_equal_results, command, names, options, runs, study, succeeds};
use crate::train_distributed::{assert_equal_trainings, small};

/// Most tasks that are killed, each once: Slurm waits for two minutes before it starts a task again.
const KILLS: usize = 6;

/// Processes with the word `verb` in their command that work in `dir`.
fn tasks(verb: &str, dir: &Path) -> Vec<String> {
    let wanted = dir.display().to_string();
    let runs = |id: &String| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words: Vec<&str> = words.split(|byte| *byte == 0).filter_map(|word| str::from_utf8(word).ok()).collect();
        words.contains(&verb) && words.contains(&wanted.as_str())
    };
    names(Path::new("/proc"))
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(runs)
        .collect()
}

/// Whether Slurm has started the task of process `id` before.
fn is_restarted(id: &str) -> bool {
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"SLURM_RESTART_COUNT="))
}

/// Whether Slurm is missing, which is said.
fn is_missing() -> bool {
    let Some(program) = missing() else { return false };
    assert!(std::env::var_os("CI").is_none(), "{program} is not installed");
    eprintln!("no Slurm: {program} is not installed; nothing was tested");
    true
}

/// Runs a command that submits to the private cluster in `place`.
fn submit(at: &Path, place: &Path, args: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    command.args(args).current_dir(at);
    command.env("SLURM_CONF", place.canonicalize().unwrap().join("conf/slurm.conf"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_array_of_which_tasks_are_killed_gives_what_one_process_gives() {
    if is_missing() {
        return;
    }
    let (dir, study_of) = (study(SWEEP), options());
    let at = dir.path().canonicalize().unwrap();
    succeeds(&at, &command(&["eval"], &study_of, &["--run-dir", "one"]));
    succeeds(&at, &command(&["sweep", "plan"], &study_of, &["--to", "many"]));
    let place = tempfile::tempdir().unwrap();
    let cluster = PrivateCluster::start(place.path(), 3, 1, "a100", 5).unwrap();
    submit(&at, place.path(), &["sweep", "submit", "many", "--slurm", "--array", "7"]);

    let (many, began) = (at.join("many"), Instant::now());
    let mut random = rng(7, Stream::Policy);
    let mut killed = 0;
    while !many.join("summary.json").exists() {
        assert!(began.elapsed() < Duration::from_secs(300), "{}", cluster.ask("squeue", &[]));
        let running: Vec<String> = tasks("--shard", &many).into_iter().filter(|task| !is_restarted(task)).collect();
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

#[test]
fn workers_of_an_array_of_which_one_is_killed_train_what_one_process_trains() {
    if is_missing() {
        return;
    }
    let dir = small();
    let at = dir.path().canonicalize().unwrap();
    succeeds(&at, &["train", "small.toml", "--run-dir", "one"]);
    let place = tempfile::tempdir().unwrap();
    let cluster = PrivateCluster::start(place.path(), 2, 1, "a100", 5).unwrap();
    std::thread::scope(|scope| {
        let training =
            scope.spawn(|| run(&at, &["train", "small.toml", "--run-dir", "many", "--distributed", "-j", "1"]));
        let (many, began) = (at.join("many"), Instant::now());
        while !many.join("config.toml").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        submit(&at, place.path(), &["train", "submit", "many", "--slurm", "--array", "2"]);
        let mut killed = false;
        while !training.is_finished() {
            assert!(began.elapsed() < Duration::from_secs(300), "{}", cluster.ask("squeue", &[]));
            if let Some(worker) = tasks("work", &many).first().filter(|_| !killed) {
                killed = Command::new("kill").args(["-9", worker]).status().unwrap().success();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let (code, _, said) = training.join().unwrap();
        assert_eq!(code, 0, "{said}");
        assert!(killed, "no worker came");
        while !cluster.ask("squeue", &["-h"]).trim().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(300), "{}", cluster.ask("squeue", &[]));
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_equal_trainings(&at, "one", "many");
    let log = |task: u32| fs::read_to_string(at.join(format!("many/slurm/task-{task}.log"))).unwrap_or_default();
    assert!((0..2).any(|task| log(task).contains("this worker has played ")), "{} {}", log(0), log(1));
}
