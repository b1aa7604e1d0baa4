//! Sweeps: tasks that are killed and run again give what one process gives, byte for byte.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{plain, run};

/// Files of results of a comparison.
const RESULTS: [&str; 9] = [
    "summary.json",
    "runs.parquet",
    "jobs.parquet",
    "events.parquet",
    "timeseries.parquet",
    "usage.parquet",
    "tenants.csv",
    "report.html",
    "origin.json",
];

/// Options of a study of four policies, under three seeds or as many as `GOODPUT_SWEEP_SEEDS` says.
pub fn options() -> [String; 5] {
    let seeds = std::env::var("GOODPUT_SWEEP_SEEDS").unwrap_or_else(|_| "3".into());
    ["study.toml", "--policies", "fifo,srtf,tiresias,optimus", "--seeds", &seeds].map(str::to_owned)
}

/// A grid of four workloads from one file.
pub const SWEEP: &str = r#"
[sweep.grid]
environment.switch_cost = ["zero", "pollux_const"]

[[sweep.points]]
workload.synthetic.diurnal.jobs = 160

[[sweep.points]]
workload.synthetic.diurnal.jobs = 320
cluster.groups.0.nodes = 20
"#;

/// Words of a command around the options of the study.
pub fn command<'a>(before: &[&'a str], options: &'a [String], after: &[&'a str]) -> Vec<&'a str> {
    before.iter().copied().chain(options.iter().map(String::as_str)).chain(after.iter().copied()).collect()
}

/// Runs of the study on `workloads` workloads.
pub fn runs(options: &[String], workloads: usize) -> usize {
    4 * workloads * options[4].parse::<usize>().unwrap()
}

/// A directory with the experiment `study.toml`. It is kept in `GOODPUT_SWEEP_DIR`, where that is set.
pub fn study(sweep: &str) -> tempfile::TempDir {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/set-encoder.toml");
    let mut builder = tempfile::Builder::new();
    let dir = match std::env::var_os("GOODPUT_SWEEP_DIR") {
        Some(place) => builder.disable_cleanup(true).tempdir_in(place).unwrap(),
        None => builder.tempdir().unwrap(),
    };
    fs::write(dir.path().join("study.toml"), fs::read_to_string(path).unwrap() + sweep).unwrap();
    dir
}

pub fn succeeds(dir: &Path, args: &[&str]) -> String {
    let (code, out, err) = run(dir, args);
    assert_eq!(code, 0, "{args:?}: {err}");
    out
}

fn spawn(dir: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    command.args(args).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Names in a folder; none where there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn cells(folder: &Path) -> usize {
    names(&folder.join("cells")).iter().filter(|name| name.ends_with(".parquet")).count()
}

/// Kills a process once there is one cell more in `folder`, and before it ends by itself.
fn kill_within(mut child: Child, folder: &Path, before: usize) {
    while cells(folder) <= before {
        assert_eq!(child.try_wait().unwrap(), None, "it ends before it is killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it is killed");
}

pub fn assert_equal_results(one: &Path, other: &Path) {
    for name in RESULTS {
        let (first, second) = (fs::read(one.join(name)).unwrap(), fs::read(other.join(name)).unwrap());
        assert!(first == second, "{name} differs");
    }
}

#[test]
fn seven_shards_of_which_two_are_killed_give_what_one_process_gives() {
    let (dir, study_of) = (study(SWEEP), options());
    let (at, total) = (dir.path(), runs(&study_of, 4));
    succeeds(at, &command(&["eval"], &study_of, &["--run-dir", "one"]));
    succeeds(at, &command(&["sweep", "plan"], &study_of, &["--to", "many"]));
    let many = at.join("many");
    let shard = |index: usize| format!("{index}/7");
    for (turn, index) in [4, 0, 6, 2, 5, 1, 3].into_iter().enumerate() {
        let (shard, before) = (shard(index), cells(&many));
        let args = ["sweep", "run", "many", "--shard", &shard, "-j", "1"];
        match turn {
            1 | 4 => kill_within(spawn(at, &args), &many, before),
            _ => drop(succeeds(at, &args)),
        }
    }
    let (code, _, said) = run(at, &["sweep", "merge", "many"]);
    assert_eq!(code, 2, "{said}");
    assert!(plain(&said).contains(&format!("of {total} cells are missing, the first is ")), "{said}");
    for index in [5, 0] {
        succeeds(at, &["sweep", "run", "many", "--shard", &shard(index)]);
    }
    let status = succeeds(at, &["sweep", "status", "many", "-o", "csv"]);
    assert!(status.lines().skip(1).all(|line| line.contains(&format!(",{0},{0},0", total / 4))), "{status}");
    succeeds(at, &["sweep", "merge", "many"]);
    assert_equal_results(&at.join("one"), &many);
    assert_eq!(names(&many.join("cells")).len(), total, "a cell each, and no drafts");
    assert!(!at.join("one/cells").exists(), "an evaluation that is complete needs no cells");

    // Nothing is run twice, and results of the cells do not depend on the number of threads.
    let stamp = |name: &String| fs::metadata(many.join("cells").join(name)).unwrap().modified().unwrap();
    let before: Vec<_> = names(&many.join("cells")).iter().map(stamp).collect();
    succeeds(at, &["sweep", "run", "many"]);
    assert_eq!(names(&many.join("cells")).iter().map(stamp).collect::<Vec<_>>(), before);
}

#[test]
fn an_evaluation_that_is_killed_goes_on_where_it_stopped() {
    let (dir, study_of) = (study(""), options());
    let (at, total) = (dir.path(), runs(&study_of, 1));
    let whole = succeeds(at, &command(&["eval"], &study_of, &["--run-dir", "whole", "-o", "csv"]));
    let args = command(&["eval"], &study_of, &["--run-dir", "cut", "-o", "csv", "-j", "1"]);
    kill_within(spawn(at, &args), &at.join("cut"), 2);
    let kept = cells(&at.join("cut"));
    assert!((3..total).contains(&kept), "{kept} runs are finished");
    assert_eq!(succeeds(at, &[&args[..], &["--keep-cells"]].concat()), whole);
    assert_equal_results(&at.join("whole"), &at.join("cut"));
    assert_eq!(cells(&at.join("cut")), total);
    // Another comparison takes the runs that it shares with the one before.
    let stamp = || fs::metadata(at.join("cut/cells")).unwrap().modified().unwrap();
    let before = stamp();
    succeeds(
        at,
        &["eval", "study.toml", "--policies", "fifo,srtf", "--seeds", "2", "--run-dir", "cut", "--keep-cells"],
    );
    assert_eq!(stamp(), before, "no cell is new");
}

#[test]
fn a_sweep_says_what_is_wrong_with_it() {
    let dir = study("\n[sweep.grid]\nenvironment.switch_cost = [\"zero\", \"nine\"]\n");
    let check = |dir: &Path| {
        let (code, _, said) = run(dir, &["config", "check", "study.toml"]);
        assert_eq!(code, 2, "{said}");
        plain(&said)
    };
    let said = check(dir.path());
    assert!(said.contains("nine") && said.contains("switch_cost=nine"), "{said}");
    for (sweep, words) in [
        ("[sweep.grid]\ncluster.groups.0.nodes = 4\n", "expects a list of at least one value"),
        ("[sweep.grid]\ntrain.decisions = [1]\n", "no part of what a comparison plays"),
        ("[sweep.grid]\ncluster.groops.0.nodes = [4]\n", "unknown key `groops`"),
        ("[sweep]\npoints = [{}]\n", "sets no key"),
        ("[sweep]\nseeds = { first = 1, count = 0 }\n", "at least 1 seed"),
    ] {
        let dir = study(&format!("\n{sweep}"));
        let said = check(dir.path());
        assert!(said.contains(words), "{sweep}: {said}");
    }
    let dir = study("");
    let plan = |policies: &str| run(dir.path(), &["sweep", "plan", "study.toml", "--policies", policies, "--to", "s"]);
    assert_eq!(plan("fifo").0, 0);
    let (code, _, said) = plan("srtf");
    assert!(code == 2 && plain(&said).contains("holds the plan of another study"), "{said}");
    let (code, _, said) = run(dir.path(), &["sweep", "run", "s", "--shard", "3/3"]);
    assert!(code == 2 && said.contains("expected I/N"), "{said}");
    let text = fs::read_to_string(dir.path().join("s/plan.json")).unwrap();
    let build = text.split("\"build\": \"").nth(1).unwrap().split('"').next().unwrap();
    fs::write(dir.path().join("s/plan.json"), text.replace(build, "another")).unwrap();
    let (code, _, said) = run(dir.path(), &["sweep", "run", "s"]);
    assert!(code == 2 && plain(&said).contains("build another planned this sweep"), "{said}");
}

#[test]
fn two_evaluations_at_once_do_not_write_into_one_directory() {
    let dir = study("");
    let folder = dir.path().join("runs/eval");
    fs::create_dir_all(&folder).unwrap();
    let other = fs::File::open(&folder).unwrap();
    other.lock().unwrap();
    let one = ["eval", "study.toml", "--policies", "fifo", "--seeds", "1"];
    let (code, _, refused) = run(dir.path(), &one);
    assert_eq!(code, 2, "{refused}");
    let refused = plain(&refused);
    assert!(refused.contains("another command writes into runs/eval") && refused.contains("--run-dir"), "{refused}");
    other.unlock().unwrap();
    let (code, _, said) = run(dir.path(), &one);
    assert_eq!(code, 0, "{said}");
}
