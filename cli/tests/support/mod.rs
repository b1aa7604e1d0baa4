//! Helpers of tests of the command line: running it, and an hourly load in a file.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub mod browser;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs `goodput` in `dir`: exit code, stdout, stderr.
pub fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_goodput")).args(args).current_dir(dir).env("NO_COLOR", "1").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Text of a message without the frame around it.
pub fn plain(said: &str) -> String {
    said.replace(['│', '╰', '╭', '─'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A directory with `load.csv`: `hours` of a load with a daily shape and a wander, zero in the hour `silent`.
pub fn hourly_load(hours: usize, silent: Option<usize>) -> tempfile::TempDir {
    let mut table = String::from("t_s,requests\n");
    for hour in 0..hours {
        let shape = (hour as f64 * std::f64::consts::TAU / 24.0).sin();
        let load = 100.0 + 50.0 * shape + (hour * 7_919 % 101) as f64 / 10.0;
        writeln!(table, "{},{}", hour * 3600, if silent == Some(hour) { 0.0 } else { load }).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("load.csv"), table).unwrap();
    dir
}
