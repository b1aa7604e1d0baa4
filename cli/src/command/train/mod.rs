//! `goodput train`: learn, compare with the heuristics on held-out seeds, write the report.

mod forecaster;
mod work;

use std::process::ExitCode;

use goodput_console::{CommandError, OutputFormat, say};
use goodput_eval::entries;
use goodput_eval::entries::learned_entry;
use goodput_eval::run::Comparison;
use goodput_train::gate::{GateVerdict, judge};
use goodput_train::run_dir::RunDir;
use goodput_train::spool::SpoolError;
use goodput_train::{Hooks, TrainError, Trained, distributable, train, train_distributed};

use crate::args::Train;
use crate::command::config::resolved;
use crate::command::eval::compare;
use crate::command::results::{self, ReportContext};
use crate::command::run::{INTERRUPTED, begin, interrupt, threads};
use crate::command::study;
use crate::config;
use crate::progress::{Meter, Verbosity};

/// Exit code of a command that finished with a result that should not be used as it is.
pub const GATE: u8 = 3;

/// Name of the trained policy in tables.
const LEARNED: &str = "learned";

/// Runs `goodput train` and gives its exit code.
pub fn run(args: &Train, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    if let Some(verb) = &args.verb {
        return work::run(verb);
    }
    threads(args.jobs)?;
    if forecaster::is_one(args) {
        return forecaster::run(args, verbosity);
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
            if args.distributed {
                distributable(&experiment).map_err(fault)?;
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
    let _claim = dir.claim().map_err(CommandError::input)?;
    if verbosity == Verbosity::Normal {
        say(&format!("run: {}", dir.path("").display()));
        if args.distributed {
            say(&format!("workers join with: goodput train work {}", dir.path("").display()));
        }
    }
    let meter = Meter::new(verbosity);
    let stop = interrupt()?;
    // A run that is resumed is called as it was started: its overrides are in the configuration that it reads.
    let argv = dir.manifest().map_err(CommandError::input)?.argv;
    let hooks = Hooks { stop: &stop, progress: &|progress| meter.train(progress), argv: argv.clone() };
    let trained = match args.distributed {
        false => train(&experiment, &dir, &hooks),
        true => train_distributed(&experiment, &dir, &hooks, &study::build()?),
    };
    let trained = trained.map_err(fault)?;
    meter.finish();
    let Trained::Complete(bundle) = trained else {
        let again = if args.distributed { " --distributed" } else { "" };
        say(&format!("stopped; continue with: goodput train --resume {}{again}", dir.path("").display()));
        return Ok(ExitCode::from(INTERRUPTED));
    };
    if let Some(verdict) = judge(&experiment, &bundle).map_err(fault)?.filter(|verdict| !verdict.passes()) {
        let GateVerdict { rival, rival_jct_secs, learned_jct_secs, allowed_percent, late_excess } = verdict;
        let late = match late_excess > 0.0 {
            true => format!(
                "; {:.1} % more requests are late than the objective or the teacher allows",
                100.0 * late_excess
            ),
            false => String::new(),
        };
        say(&format!(
            "not exported: mean JCT {learned_jct_secs:.1} s on validation seeds, {rival_jct_secs:.1} s with {rival}; \
             train.gate_percent = {allowed_percent} says how much longer it may be{late}"
        ));
        return Ok(ExitCode::from(GATE));
    }
    bundle.save(&dir.path("policy.bundle")).map_err(CommandError::input)?;
    let setup = experiment.setup().map_err(config::setup_error)?;
    let mut entries = vec![
        learned_entry(LEARNED, &bundle, experiment.expected_peak(&setup), setup.sharing())
            .map_err(CommandError::input)?,
    ];
    for name in &experiment.evaluate.policies {
        entries.push(entries::heuristic(&experiment, name, &setup).map_err(CommandError::input)?);
    }
    let held_out = entries::held_out(&experiment, experiment.evaluate.seeds).map_err(CommandError::input)?;
    let mut comparison = Comparison::new(entries, held_out);
    comparison.sharing = setup.sharing().clone();
    comparison.wrappers = experiment.wrappers();
    let evaluation = compare(&comparison, &meter)?;
    let config = resolved(&experiment)?;
    let about = ReportContext {
        title: experiment.name.clone(),
        focus: Some(LEARNED.into()),
        argv: argv.clone(),
        config: &config,
        trained: true,
    };
    results::write(&dir, &evaluation, &about)?;
    results::print(&evaluation.summary, OutputFormat::Table)?;
    Ok(ExitCode::SUCCESS)
}

/// Error of a training, with exit code 2 where the input is wrong.
pub fn fault(error: TrainError) -> CommandError {
    match error {
        TrainError::Diverged { .. } | TrainError::Env(_) | TrainError::Run(_) => CommandError::failed(error),
        TrainError::Spool(error) => of_workers(error),
        _ => CommandError::input(error),
    }
}

fn of_workers(error: SpoolError) -> CommandError {
    let remedy = error.remedy();
    let error = match error {
        SpoolError::Build { .. } | SpoolError::Input { .. } | SpoolError::Absent { .. } => CommandError::input(error),
        error => CommandError::failed(error),
    };
    match remedy {
        Some(remedy) => error.with_help(remedy),
        None => error,
    }
}
