//! `goodput eval`: policies on the held-out seeds of an experiment.

use std::path::Path;
use std::process::ExitCode;

use goodput_agents::{compose, heuristic, zoo};
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::{FileWorkload, Setup, WorkloadConfig};
use goodput_console::{CommandError, say};
use goodput_eval::run::{Comparison, Evaluation, NamedScenario, PolicyEntry, RunError};
use goodput_train::comparison;
use goodput_train::entries::{learned_entry, scenarios};
use goodput_train::run_dir::RunDir;

use crate::args::Eval;
use crate::command::config::resolved;
use crate::command::results::{self, ReportContext};
use crate::command::run::threads;
use crate::command::sim::bundle;
use crate::config;
use crate::progress::{Meter, Verbosity};

/// Runs `goodput eval` and gives its exit code.
pub fn run(args: &Eval, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    threads(args.jobs)?;
    let experiment = config::read(&args.experiment, &args.sets)?;
    let names = if args.policies.is_empty() { &experiment.evaluate.policies } else { &args.policies };
    let setup = experiment.setup().map_err(config::setup_error)?;
    let entries = names.iter().map(|name| entry(name, &experiment, &setup)).collect::<Result<Vec<_>, _>>()?;
    let dir = RunDir::reuse(&args.run_dir).map_err(CommandError::input)?;
    let config = resolved(&experiment)?;
    let seeds = args.seeds.unwrap_or(experiment.evaluate.seeds);
    let meter = Meter::new(verbosity);
    let mut comparison = Comparison::new(entries, workloads(&experiment, args, seeds)?);
    comparison.sharing = setup.sharing().clone();
    comparison.resilience = experiment.resilience.clone();
    comparison.reference = args.reference.clone();
    let evaluation = compare(&comparison, &meter)?;
    let about = ReportContext {
        title: format!("{}: comparison", experiment.name),
        focus: None,
        argv: results::own_argv(),
        config: &config,
        trained: false,
    };
    results::write(&dir, &evaluation, &about)?;
    results::print(&evaluation, args.output)?;
    if args.bound {
        results::print_bounds(&evaluation, args.output)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The experiment's own workload, or each of the files in its place under the file's name.
fn workloads(experiment: &Experiment, args: &Eval, seeds: u64) -> Result<Vec<NamedScenario>, CommandError> {
    let first = args.split.first_seed(experiment.seed, 0);
    if args.workloads.is_empty() {
        return comparison::scenarios(experiment, &experiment.evaluate.loads, first, seeds)
            .map_err(CommandError::input);
    }
    let mut all = Vec::new();
    for path in &args.workloads {
        let workload = WorkloadConfig::File(FileWorkload { path: path.clone() });
        let setup = Experiment { workload, ..experiment.clone() }.setup().map_err(config::setup_error)?;
        let name = path.file_stem().map_or_else(|| "workload".into(), |stem| stem.to_string_lossy().into_owned());
        let named = |scenario| NamedScenario { name: name.clone(), ..scenario };
        all.extend(scenarios(&setup, first, seeds).into_iter().map(named));
    }
    Ok(all)
}

/// Runs a comparison with progress.
pub fn compare(comparison: &Comparison, meter: &Meter) -> Result<Evaluation, CommandError> {
    let result = comparison.run(&|done, total| meter.runs(done, total));
    meter.finish();
    result.map_err(|error| match error {
        RunError::Run { .. } => CommandError::failed(error),
        _ => CommandError::input(error),
    })
}

/// A policy by name, or from a bundle; a bundle is called by its directory's name, a shipped one as it was asked for.
fn entry(name: &str, experiment: &Experiment, setup: &Setup) -> Result<PolicyEntry, CommandError> {
    let shipped = name.starts_with(zoo::PREFIX);
    if !shipped && !Path::new(name).is_file() {
        return match name.strip_suffix(compose::REPLICA) {
            Some(_) => replica_entry(name),
            None => comparison::heuristic(experiment, name, setup).map_err(CommandError::input),
        };
    }
    let parent = Path::new(name).parent().and_then(Path::file_name).map(|folder| folder.to_string_lossy().into_owned());
    let label = parent
        .filter(|folder| !folder.is_empty() && !shipped)
        .map_or_else(|| name.to_string(), |folder| format!("learned ({folder})"));
    let bundle = bundle(name)?;
    let trained = bundle.policy(Default::default()).map_err(CommandError::input)?.information();
    let given = experiment.environment.information;
    if std::mem::discriminant(&trained) != std::mem::discriminant(&given) {
        say(&format!("warning: {name} was trained at information level {trained}; this experiment gives {given}"));
    }
    bundle.check_types(setup.cluster()).map_err(|error| {
        CommandError::input(format!("{name}: {error}")).with_help(
            "a utility can be learned on several types and used on others: configs/experiment/heterogeneous.toml",
        )
    })?;
    learned_entry(&label, &bundle, experiment.expected_peak(setup), setup.sharing()).map_err(CommandError::input)
}

/// A policy as its public artifact behaves.
fn replica_entry(name: &str) -> Result<PolicyEntry, CommandError> {
    if compose::by_name(name, 0).is_none() {
        let has = |entry: &&heuristic::ListedPolicy| entry.replica.is_some();
        let known: Vec<_> = compose::policies().filter(has).map(|entry| entry.name).collect();
        return Err(CommandError::input(format!("there is no replica {name:?}"))
            .with_help(format!("policies with one: {}", known.join(", "))));
    }
    let owned = name.to_owned();
    Ok(PolicyEntry::new(name, move |seed| compose::by_name(&owned, seed).expect("it was found above")))
}
