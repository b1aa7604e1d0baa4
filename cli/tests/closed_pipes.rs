//! A reader that goes away, as `head` does, ends no program with a panic, on standard output or on standard error.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{hourly_load, run};

/// Exit code of a program that panicked.
const PANICKED: i32 = 101;

/// The writing end of a pipe without a reader.
fn closed() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A device that takes nothing.
fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// Exit code of `goodput`, and what it says on standard error where that is read.
fn end(dir: &Path, args: &[&str], stdout: Stdio, stderr: Option<Stdio>) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    command.args(args).current_dir(dir).env("NO_COLOR", "1").stdin(Stdio::null());
    command.stdout(stdout).stderr(stderr.unwrap_or_else(Stdio::piped));
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let code = output.status.code().unwrap_or_else(|| panic!("{args:?} was ended by {}", output.status));
    (code, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A folder with jobs, an experiment, a study of forecasters, a finished comparison, and a sweep.
fn prepared() -> tempfile::TempDir {
    let dir = hourly_load(240, None);
    fs::write(dir.path().join("study.toml"), "[series]\npath = \"load.csv\"\n").unwrap();
    let few = ["--set", "workload.synthetic.diurnal.jobs=10"];
    for args in [
        &["init", "advise"][..],
        &["init", "quickstart"],
        &["init", "elastic-16"],
        &["init", "slurm", "--to", "slurm.toml"],
        &["forecast", "fit", "study.toml", "--to", "fitted.json"],
        &[&["eval", "quickstart.toml", "--policies", "fifo,srtf", "--seeds", "1", "--run-dir", "run"][..], &few]
            .concat(),
        &[&["sweep", "plan", "quickstart.toml", "--policies", "fifo", "--seeds", "1", "--to", "sweep"][..], &few]
            .concat(),
    ] {
        let (code, _, said) = run(dir.path(), args);
        assert_eq!(code, 0, "{args:?}: {said}");
    }
    dir
}

/// Command lines that print, with the exit code that each has where everything is read.
const PRINTING: &[(i32, &[&str])] = &[
    (0, &["--help"]),
    (0, &["--version"]),
    (2, &["eval", "--no-such-option"]),
    (2, &["eval", "no-such-file.toml"]),
    (0, &["list", "policies", "-o", "wide"]),
    (0, &["list", "metrics", "-o", "json"]),
    (0, &["list", "formats"]),
    (0, &["init"]),
    (0, &["completions", "bash"]),
    (0, &["man", "--write", "man"]),
    (0, &["config", "schema"]),
    (0, &["config", "show", "quickstart.toml"]),
    (0, &["config", "check", "quickstart.toml", "slurm.toml"]),
    (0, &["data", "schema"]),
    (0, &["data", "import", "jobs.csv", "-o", "jobs.parquet"]),
    (0, &["data", "validate", "jobs.csv"]),
    (0, &["export", "run", "--mlflow", "mlruns"]),
    (0, &["data", "inspect", "jobs.csv", "--cluster", "8x4"]),
    (0, &["sim", "--workload", "jobs.csv", "--cluster", "8x4", "--policy", "fifo", "-o", "csv"]),
    (0, &["sim", "--workload", "jobs.csv", "--cluster", "8x4", "--policy", "fifo", "-o", "json"]),
    (0, &["sim", "--workload", "jobs.csv", "--cluster", "8x4", "--policy", "fifo"]),
    (0, &["eval", "quickstart.toml", "--policies", "fifo,srtf", "--seeds", "1", "--run-dir", "again"]),
    (0, &["results", "run"]),
    (0, &["advise", "jobs.csv", "--cluster", "8x4", "--policies", "fifo", "--resamples", "0", "--report", "a.html"]),
    (0, &["advise", "jobs.csv", "--cluster", "8x4", "--policies", "fifo", "--resamples", "0", "-o", "csv"]),
    (0, &["advise", "jobs.csv", "--cluster", "8x4", "--policies", "fifo", "--resamples", "0", "-o", "json"]),
    (
        0,
        &[
            "advise",
            "job",
            "jobs.csv",
            "--cluster",
            "8x4",
            "--policy",
            "fifo",
            "--gpus",
            "8",
            "--futures",
            "4",
            "--questions",
            "4",
        ],
    ),
    (0, &["explain", "fifo", "--config", "elastic-16.toml"]),
    (0, &["explain", "zoo:elastic-16", "--config", "elastic-16.toml", "-o", "json"]),
    (0, &["forecast", "backtest", "study.toml"]),
    (0, &["forecast", "predict", "fitted.json", "-o", "csv"]),
    (0, &["sweep", "status", "sweep"]),
    (0, &["sweep", "run", "sweep"]),
    (0, &["sweep", "merge", "sweep"]),
    (0, &["env", "check", "quickstart.toml"]),
    (0, &["train", "quickstart.toml", "--dry-run"]),
    (2, &["live", "queue", "--url", "http://127.0.0.1:9"]),
    (2, &["top", "--once", "--url", "http://127.0.0.1:9"]),
];

#[test]
fn a_closed_pipe_changes_no_exit_code() {
    let dir = prepared();
    for (expected, args) in PRINTING {
        let (code, said) = end(dir.path(), args, Stdio::null(), None);
        assert_eq!(code, *expected, "{args:?}: {said}");
        let (code, said) = end(dir.path(), args, closed(), None);
        assert_eq!(code, *expected, "{args:?} with a closed stdout: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        for stdout in [Stdio::null(), closed()] {
            let (code, _) = end(dir.path(), args, stdout, Some(closed()));
            assert_eq!(code, *expected, "{args:?} with a closed stderr");
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let dir = prepared();
    for (expected, args) in PRINTING {
        let (code, said) = end(dir.path(), args, full().into(), None);
        assert!(code != PANICKED && !said.contains("panicked"), "{args:?}: {code} {said}");
        if *expected == 0 && code != 0 {
            assert!(said.contains("stdout"), "{args:?}: {said}");
        }
        assert_eq!(end(dir.path(), args, Stdio::null(), Some(full().into())).0, *expected, "{args:?}");
    }
}

/// More rows than a pipe holds, of which one is read.
#[test]
fn a_reader_of_one_line_ends_a_long_table_in_peace() {
    let dir = tempfile::tempdir().unwrap();
    let mut jobs = String::from("job_id,submit_secs,duration_secs,gpus\n");
    (0..20_000).for_each(|job| jobs += &format!("job-{job},{job},30,1\n"));
    fs::write(dir.path().join("jobs.csv"), jobs).unwrap();
    for output in ["table", "csv", "json"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        command
            .args(["sim", "--workload", "jobs.csv", "--cluster", "8x8", "--policy", "fifo", "-o", output])
            .current_dir(dir.path());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(64, process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ended = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!line.is_empty() && ended.status.success() && said.is_empty(), "{output}: {:?} {said}", ended.status);
    }
}
