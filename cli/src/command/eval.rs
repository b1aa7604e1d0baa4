//! `goodput eval`: policies on the held-out seeds of an experiment.

use std::path::Path;
use std::process::ExitCode;

use goodput_eval::run::{Comparison, Evaluation, PolicyEntry, RunError};
use goodput_train::config::HELD_OUT;
use goodput_train::run_dir::RunDir;
use goodput_train::validate::{heuristic_entry, learned_entry, scenarios};

use crate::args::Eval;
use crate::command::config::resolved;
use crate::command::results::{self, About};
use crate::command::sim::bundle;
use crate::command::train::threads;
use crate::config;
use crate::fault::Fault;
use crate::progress::Meter;

/// Runs it.
pub fn run(args: &Eval, quiet: bool) -> Result<ExitCode, Fault> {
    threads(args.jobs)?;
    let experiment = config::read(&args.experiment, &args.sets)?;
    let setup = experiment.setup().map_err(Fault::input)?;
    let names = if args.policies.is_empty() { &experiment.evaluate.policies } else { &args.policies };
    let entries = names.iter().map(|name| entry(name)).collect::<Result<Vec<_>, _>>()?;
    let dir = RunDir::reuse(&args.run_dir).map_err(Fault::input)?;
    let config = resolved(&experiment)?;
    let seeds = args.seeds.unwrap_or(experiment.evaluate.seeds);
    let meter = Meter::new(quiet);
    let mut comparison = Comparison::new(entries, scenarios(&setup, HELD_OUT, seeds));
    comparison.reference = args.reference.clone();
    let evaluation = compare(&comparison, &meter)?;
    let about =
        About { title: format!("{}: comparison", experiment.name), focus: None, config: &config, trained: false };
    results::write(&dir, &evaluation, &about)?;
    results::print(&evaluation, args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a comparison with progress.
pub fn compare(comparison: &Comparison, meter: &Meter) -> Result<Evaluation, Fault> {
    let result = comparison.run(&|done, total| meter.runs(done, total));
    meter.finish();
    result.map_err(|error| match error {
        RunError::Run { .. } => Fault::failed(error),
        _ => Fault::input(error),
    })
}

/// A policy by name, or from a bundle; a bundle is called by its directory's name.
fn entry(name: &str) -> Result<PolicyEntry, Fault> {
    if !Path::new(name).is_file() {
        return heuristic_entry(name).map_err(Fault::input);
    }
    let parent = Path::new(name).parent().and_then(Path::file_name).map(|folder| folder.to_string_lossy().into_owned());
    let label = parent
        .filter(|folder| !folder.is_empty())
        .map_or_else(|| name.to_string(), |folder| format!("learned ({folder})"));
    learned_entry(&label, &bundle(name)?).map_err(Fault::input)
}
