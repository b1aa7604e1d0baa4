//! A training with worker processes that are killed and come late gives what one process gives, byte for byte.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{plain, run};
use crate::sweep::{names, succeeds};

/// Files of a training that do not name the command line.
const RESULTS: [&str; 5] =
    ["progress.csv", "checkpoints/evolution.json", "summary.json", "jobs.parquet", "runs.parquet"];

/// An evolution of seconds in the folder, in `small.toml`.
pub fn small() -> tempfile::TempDir {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/elastic.toml");
    let text =
        fs::read_to_string(path).unwrap().replace("work_spread = 1.0", "work_spread = 1.0\njobs = 60\nhours = 3");
    let dir = tempfile::tempdir().unwrap();
    let begin = text.find("[agent.evolution]").unwrap();
    let rest = "[agent.evolution]\npopulation = 6\ngenerations = 3\nepisodes = 4\nvalidate_every = 3\n\
                [train]\nvalidation_seeds = 1\ngate_percent = 1000.0\n\
                [evaluate]\npolicies = [\"pollux-fast\"]\nseeds = 1\n";
    fs::write(dir.path().join("small.toml"), format!("{}{rest}", &text[..begin])).unwrap();
    dir
}

fn spawn(dir: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    command.args(args).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn work(dir: &Path) -> Child {
    spawn(dir, &["train", "work", "many", "-j", "1", "--wait", "60"])
}

/// Names of claims and costs of the posted generation.
fn board(run: &Path) -> Vec<String> {
    let folders = names(&run.join("spool")).into_iter().filter(|name| name.len() == 64);
    folders
        .flat_map(|key| fs::read_dir(run.join("spool").join(key)).into_iter().flatten())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Waits until the names of claims and costs are as `wanted` says.
fn until(run: &Path, wanted: impl Fn(&[String]) -> bool) {
    let began = Instant::now();
    while !wanted(&board(run)) {
        assert!(began.elapsed() < Duration::from_secs(120), "{:?}", board(run));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Number of runs that are claimed and have no cost.
fn under_way(board: &[String]) -> usize {
    let claimed = board.iter().filter_map(|name| name.strip_suffix(".claim.0"));
    claimed.filter(|run| !board.contains(&format!("{run}.json"))).count()
}

fn killed(mut child: Child) {
    assert_eq!(child.try_wait().unwrap(), None, "it ends before it is killed");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it is killed");
}

pub fn assert_equal_trainings(at: &Path, one: &str, other: &str) {
    for name in RESULTS {
        let (first, second) =
            (fs::read(at.join(one).join(name)).unwrap(), fs::read(at.join(other).join(name)).unwrap());
        assert!(first == second, "{name} differs");
    }
    let exported = |run: &str| {
        succeeds(at, &["export", run, "--to", "exported"]);
        fs::read(at.join("exported/policy.bundle")).unwrap()
    };
    assert!(exported(one) == exported(other), "the bundle differs");
}

#[test]
fn a_worker_is_killed_another_is_late_and_the_coordinator_is_resumed() {
    let dir = small();
    let at = dir.path();
    let many = at.join("many");
    succeeds(at, &["train", "small.toml", "--run-dir", "one"]);

    // The coordinator plays one run at a time, so the worker plays the other one when it is killed.
    let victim = work(at);
    let coordinator = spawn(at, &["train", "small.toml", "--run-dir", "many", "--distributed", "-j", "1"]);
    until(&many, |board| under_way(board) == 2);
    killed(victim);
    let mut workers: Vec<Child> = (0..2).map(|_| work(at)).collect();
    until(&many, |board| board.iter().any(|name| name.ends_with(".claim.1")));
    // The coordinator is killed too, and goes on with a late worker.
    killed(coordinator);
    workers.push(work(at));
    succeeds(at, &["train", "--resume", "many", "--distributed", "-j", "1"]);
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
    }
    assert_equal_trainings(at, "one", "many");
    assert_eq!(names(&many.join("spool")), ["now.json"]);
}

#[test]
fn a_distributed_training_says_what_is_wrong_with_it() {
    let dir = small();
    let refused = |args: &[&str], words: &str| {
        let (code, _, said) = run(dir.path(), args);
        assert!(code == 2 && plain(&said).contains(words), "{args:?}: {said}");
    };
    let net = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/set-encoder.toml");
    refused(&["train", net, "--distributed", "--run-dir", "ppo"], "[agent.ppo] learns in one process");
    assert!(!dir.path().join("ppo").exists(), "it is refused before it begins");
    let forecaster = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/forecast/nhits.toml");
    refused(&["train", forecaster, "--distributed"], "[forecaster] learns in one process");
    refused(&["train", "work", "nowhere", "--wait", "0"], "no training in nowhere wanted workers for 0 s");
    refused(&["train", "submit", "nowhere", "--slurm", "--array", "2", "--dry-run"], "nowhere: No such file");
    refused(&["train", "small.toml", "work", "nowhere"], "cannot be used with");
}

#[test]
fn workers_on_slurm_are_an_array() {
    let dir = small();
    fs::create_dir(dir.path().join("run")).unwrap();
    succeeds(dir.path(), &["train", "submit", "run", "--slurm", "--array", "20", "--cpus", "8", "--dry-run"]);
    let script = fs::read_to_string(dir.path().join("run/slurm/tasks.sh")).unwrap();
    assert!(script.contains("#SBATCH --array=0-19\n") && script.contains("#SBATCH --requeue\n"), "{script}");
    assert!(script.contains(" train work '") && script.contains("/run' --jobs 8\n"), "{script}");
}
