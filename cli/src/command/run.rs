//! Parts that every long command shares: threads, the run's directory, and Ctrl-C.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use goodput_console::{CommandError, say};
use goodput_train::run_dir::{RunDir, RunManifest};

/// Exit code of an interrupted run.
pub const INTERRUPTED: u8 = 130;

/// Sets the number of threads.
pub fn threads(jobs: Option<usize>) -> Result<(), CommandError> {
    match jobs {
        Some(0) => Err(CommandError::input("--jobs 0: expected at least 1")),
        Some(count) => rayon::ThreadPoolBuilder::new().num_threads(count).build_global().map_err(CommandError::failed),
        None => Ok(()),
    }
}

/// Makes the run's directory and writes what it is.
pub fn begin(name: &str, seed: u64, config: &str, path: Option<PathBuf>) -> Result<RunDir, CommandError> {
    let path = path.unwrap_or_else(|| free_path(name, seed));
    let dir = RunDir::create(&path).map_err(CommandError::input)?;
    dir.write("config.toml", config.as_bytes()).map_err(CommandError::input)?;
    let manifest = RunManifest {
        argv: std::env::args().collect(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_secs: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        seed,
        config_sha256: dir.config_sha256().map_err(CommandError::input)?,
    };
    dir.write_manifest(&manifest).map_err(CommandError::input)?;
    Ok(dir)
}

/// `runs/NAME/SEED`, or with the first number appended that makes it new.
fn free_path(name: &str, seed: u64) -> PathBuf {
    let runs = PathBuf::from("runs").join(name);
    let first = runs.join(seed.to_string());
    let later = (2..).map(|at| runs.join(format!("{seed}-{at}")));
    std::iter::once(first).chain(later).find(|path| !path.exists()).unwrap_or(runs)
}

/// A flag that the first Ctrl-C sets; the second one ends the program at once.
pub fn interrupt() -> Result<Arc<AtomicBool>, CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
        say("stopping after this update; once more to stop at once");
    })
    .map_err(CommandError::failed)?;
    Ok(stop)
}

/// Command line of a run, without the parts that results do not depend on: the files and folders for the
/// results, the form of a table, the number of threads and of machines, and the folders of the program and of the
/// files.
pub fn essential(argv: &[String]) -> Vec<String> {
    let here = std::env::current_dir().map(|here| format!("{}/", here.display())).unwrap_or_default();
    let mut kept = vec!["goodput".to_owned()];
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--run-dir" | "--to" | "--report" | "-o" | "--output" | "-j" | "--jobs" => drop(words.next()),
            "-q" | "--quiet" | "--keep-cells" | "--jobs-csv" | "--distributed" => {}
            word => kept.push(word.strip_prefix(&here).unwrap_or(word).to_owned()),
        }
    }
    kept
}
