//! A training that the tests stop and resume.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use goodput_configs::experiment::Experiment;
use goodput_train::run_dir::RunDir;
use goodput_train::{Hooks, Progress, Trained, train};

/// Trains in `path`, from its checkpoint where there is one, and asks to stop after `stop_after` steps of `phase`.
pub fn train_until(experiment: &Experiment, path: &Path, phase: &str, stop_after: Option<u64>) -> Trained {
    let dir = match path.join("config.toml").exists() {
        true => RunDir::open(path).unwrap(),
        false => {
            let dir = RunDir::create(path).unwrap();
            dir.write("config.toml", b"one for all runs").unwrap();
            dir
        }
    };
    let (stop, steps) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |progress: Progress| {
        let done = if progress.phase == phase { steps.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        if stop_after == Some(done) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    train(experiment, &dir, &Hooks { stop: &stop, progress: &progress, argv: vec!["test".into()] }).unwrap()
}
