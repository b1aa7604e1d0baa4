//! `goodput train`: learn, compare with the heuristics on held-out seeds, write the report.

use goodput_console::{CommandError, OutputFormat, say};
use goodput_train::comparison;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use goodput_eval::run::Comparison;
use goodput_train::gate::{GateVerdict, judge};
use goodput_train::run_dir::{RunDir, RunManifest};
use goodput_train::validate::learned_entry;
use goodput_train::{Hooks, TrainError, Trained, train};

use crate::args::Train;
use crate::command::config::resolved;
use crate::command::eval::compare;
use crate::command::results::{self, About};
use crate::command::train_forecaster;
use crate::config;
use crate::progress::Meter;

/// Exit code where the policy is worse than its teacher.
const GATE: u8 = 3;

/// Exit code of an interrupted run.
pub const INTERRUPTED: u8 = 130;

/// Name of the trained policy in tables.
const LEARNED: &str = "learned";

/// Runs `goodput train` and gives its exit code.
pub fn run(args: &Train, quiet: bool) -> Result<ExitCode, CommandError> {
    threads(args.jobs)?;
    if train_forecaster::is_one(args) {
        return train_forecaster::run(args, quiet);
    }
    let (experiment, dir) = match (&args.resume, &args.experiment) {
        (Some(path), _) => {
            let dir = RunDir::open(path).map_err(CommandError::input)?;
            (config::read(&dir.path("config.toml"), &[])?, dir)
        }
        (None, Some(file)) => {
            let mut experiment = config::read(file, &args.sets)?;
            experiment.seed = args.seed.unwrap_or(experiment.seed);
            if experiment.agent.is_none() {
                return Err(fault(TrainError::NoAgent));
            }
            if args.dry_run {
                say(&format!("{}: ok; would train {} with seed {}", file.display(), experiment.name, experiment.seed));
                return Ok(ExitCode::SUCCESS);
            }
            let dir = begin(&experiment.name, experiment.seed, &resolved(&experiment)?, args.run_dir.clone())?;
            (experiment, dir)
        }
        (None, None) => return Err(CommandError::input("give an experiment file or --resume DIR")),
    };
    if !quiet {
        say(&format!("run: {}", dir.path("").display()));
    }
    let meter = Meter::new(quiet);
    let stop = interrupt()?;
    let hooks = Hooks { stop: &stop, progress: &|progress| meter.train(progress), argv: std::env::args().collect() };
    let trained = train(&experiment, &dir, &hooks).map_err(fault)?;
    meter.finish();
    let Trained::Complete(bundle) = trained else {
        say(&format!("stopped; continue with: goodput train --resume {}", dir.path("").display()));
        return Ok(ExitCode::from(INTERRUPTED));
    };
    if let Some(verdict) = judge(&experiment, &bundle).map_err(fault)?.filter(|verdict| !verdict.passes()) {
        let GateVerdict { teacher, teacher_jct_secs, learned_jct_secs, allowed_percent, late_excess } = verdict;
        let late = match late_excess > 0.0 {
            true => format!(
                "; {:.1} % more requests are late than the objective or the teacher allows",
                100.0 * late_excess
            ),
            false => String::new(),
        };
        say(&format!(
            "not exported: mean JCT {learned_jct_secs:.1} s on validation seeds, {teacher_jct_secs:.1} s with its teacher {teacher}; \
             train.gate_percent = {allowed_percent} says how much longer it may be{late}"
        ));
        return Ok(ExitCode::from(GATE));
    }
    bundle.save(&dir.path("policy.bundle")).map_err(CommandError::input)?;
    let setup = experiment.setup().map_err(CommandError::input)?;
    let mut entries =
        vec![learned_entry(LEARNED, &bundle, experiment.expected_peak(&setup), setup.sharing()).map_err(fault)?];
    for name in &experiment.evaluate.policies {
        entries.push(comparison::heuristic(&experiment, name, &setup).map_err(CommandError::input)?);
    }
    let held_out = comparison::held_out(&experiment, experiment.evaluate.seeds).map_err(CommandError::input)?;
    let mut comparison = Comparison::new(entries, held_out);
    comparison.sharing = setup.sharing().clone();
    let evaluation = compare(&comparison, &meter)?;
    let config = resolved(&experiment)?;
    let about = About { title: experiment.name.clone(), focus: Some(LEARNED.into()), config: &config, trained: true };
    results::write(&dir, &evaluation, &about)?;
    results::print(&evaluation, OutputFormat::Table)?;
    Ok(ExitCode::SUCCESS)
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
    let text = serde_json::to_vec_pretty(&manifest).map_err(CommandError::failed)?;
    dir.write("manifest.json", &text).map_err(CommandError::input)?;
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

/// Sets the number of threads.
pub fn threads(jobs: Option<usize>) -> Result<(), CommandError> {
    match jobs {
        Some(0) => Err(CommandError::input("--jobs 0: expected at least 1")),
        Some(count) => rayon::ThreadPoolBuilder::new().num_threads(count).build_global().map_err(CommandError::failed),
        None => Ok(()),
    }
}

/// Error of a training, with exit code 2 where the input is wrong.
pub fn fault(error: TrainError) -> CommandError {
    match error {
        TrainError::Diverged { .. } | TrainError::Env(_) | TrainError::Run(_) => CommandError::failed(error),
        _ => CommandError::input(error),
    }
}
