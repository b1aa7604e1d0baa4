//! `goodput train` of a forecaster: learn, write the bundle, say how to use it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use goodput_configs::forecast::ForecasterExperiment;
use goodput_configs::scenario::SetupError;
use goodput_console::{CommandError, say};
use goodput_forecast::neural::NetTrainError;
use goodput_train::TrainError;
use goodput_train::forecaster::{self, ForecasterHooks, ForecasterTrainError, train};
use goodput_train::run_dir::RunDir;

use crate::args::Train;
use crate::command::config::resolved;
use crate::command::run::{INTERRUPTED, begin, interrupt};
use crate::config;
use crate::progress::{Meter, Verbosity};

/// The bundle's file.
const BUNDLE: &str = "forecaster.bundle";

/// Whether this run is of a forecaster.
pub fn is_one(args: &Train) -> bool {
    let file = args.resume.as_ref().map(|dir| dir.join("config.toml")).or_else(|| args.experiment.clone());
    file.is_some_and(|file| config::is_forecaster(&file))
}

/// Runs `goodput train` for a forecaster and gives its exit code.
pub fn run(args: &Train, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    if args.distributed {
        let error = TrainError::NotDistributed { agent: "[forecaster]" };
        return Err(CommandError::input(error));
    }
    let (experiment, dir, source) = match (&args.resume, &args.experiment) {
        (Some(path), _) => {
            let dir = RunDir::open(path).map_err(CommandError::input)?;
            let file = dir.path("config.toml");
            (config::read_forecaster(&file, &[])?, dir, file)
        }
        (None, Some(file)) => {
            let mut experiment = config::read_forecaster(file, &args.sets)?;
            experiment.seed = args.seed.unwrap_or(experiment.seed);
            forecaster::prepare(&experiment).map_err(|error| fault(error, file, &args.sets))?;
            if args.dry_run {
                let (name, seed, on) = (&experiment.name, experiment.seed, experiment.train.processor.name());
                say(&format!("{}: ok; would train {name} with seed {seed} on the {on}", file.display()));
                return Ok(ExitCode::SUCCESS);
            }
            let path = args.run_dir.clone();
            let dir = begin(&experiment.name, experiment.seed, &resolved(&experiment)?, path)?;
            (experiment, dir, file.clone())
        }
        (None, None) => return Err(CommandError::input("give an experiment file or --resume DIR")),
    };
    let _claim = dir.claim().map_err(CommandError::input)?;
    let stop = interrupt()?;
    let bundle = learn(&experiment, &dir, &stop, verbosity).map_err(|error| fault(error, &source, &args.sets))?;
    let Some(path) = bundle else {
        say(&format!("stopped; continue with: goodput train --resume {}", dir.path("").display()));
        return Ok(ExitCode::from(INTERRUPTED));
    };
    say(&format!(
        "forecaster: {0}; compare it with: goodput forecast compare STUDY --bundle {0}; in a cluster: [forecaster] saved = {{ SERVICE = \"{0}\" }}",
        path.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn learn(
    experiment: &ForecasterExperiment,
    dir: &RunDir,
    stop: &AtomicBool,
    verbosity: Verbosity,
) -> Result<Option<PathBuf>, ForecasterTrainError> {
    if verbosity == Verbosity::Normal {
        say(&format!("run: {}", dir.path("").display()));
    }
    let meter = Meter::new(verbosity);
    let argv = dir.manifest()?.argv;
    let hooks = ForecasterHooks { stop, progress: &|progress| meter.forecaster(progress), argv };
    let bundle = train(experiment, dir, &hooks)?;
    meter.finish();
    let Some(bundle) = bundle else { return Ok(None) };
    dir.write(BUNDLE, &bundle.to_bytes())?;
    Ok(Some(dir.path(BUNDLE)))
}

fn fault(error: ForecasterTrainError, file: &Path, sets: &[String]) -> CommandError {
    match error {
        ForecasterTrainError::Setting(SetupError::Value { key, .. }) => {
            config::at_key(file, sets, key, &error.to_string())
        }
        ForecasterTrainError::Train(error @ (NetTrainError::NoGpu | NetTrainError::NoAdapter)) => {
            config::at_key(file, sets, "train.processor", &error.to_string())
        }
        ForecasterTrainError::Data(error) => {
            let help = error.remedy();
            let fault = CommandError::input(error);
            if help.is_empty() { fault } else { fault.with_help(help) }
        }
        other => CommandError::input(other),
    }
}
