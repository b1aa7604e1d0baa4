//! `goodput eval`: policies on the held-out seeds of an experiment.

use std::path::Path;
use std::process::ExitCode;

use goodput_agents::compose::loaning::Sharing;
use goodput_agents::compose::{self, NamedPolicy, PolicyNameError, split_list};
use goodput_agents::heuristic::ListedPolicy;
use goodput_agents::policies::external::{ExternalPolicy, ExternalProgram};
use goodput_agents::zoo;
use goodput_configs::experiment::Experiment;
use goodput_configs::names::did_you_mean;
use goodput_configs::policies;
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
use crate::command::{conventions, programs};
use crate::config;
use crate::progress::{Meter, Verbosity};

/// Runs `goodput eval` and gives its exit code.
pub fn run(args: &Eval, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    threads(args.jobs)?;
    let asked: Vec<String> = args.policies.iter().flat_map(|list| split_list(list)).map(str::to_owned).collect();
    let preset = args.preset.map(|preset| format!("environment.preset={}", preset.name()));
    let allocation = args.allocation.map(|allocation| format!("environment.allocation={}", allocation.name()));
    // Policies of the file that are not asked for need not go by the allocation.
    let instead = allocation.is_some() && !asked.is_empty();
    let chosen = instead.then(|| format!("evaluate.policies={asked:?}"));
    let given = [preset, allocation, chosen].into_iter().flatten();
    let sets: Vec<String> = given.chain(args.sets.iter().cloned()).collect();
    let experiment = config::read(&args.experiment, &sets)?;
    conventions::say_overrides(&experiment.environment);
    let names = if asked.is_empty() { &experiment.evaluate.policies } else { &asked };
    let setup = experiment.setup().map_err(config::setup_error)?;
    let programs = names.iter().filter_map(|name| programs::named(name).transpose());
    let programs = programs.collect::<Result<Vec<ExternalProgram>, _>>()?;
    let entries = names.iter().map(|name| {
        experiment.check_policy("--policies", name, &setup).map_err(|error| config::setup_error(error.into()))?;
        match programs.iter().find(|program| program.name() == name.as_str()) {
            Some(program) => external(program, &experiment, &setup),
            None => entry(name, &experiment, &setup),
        }
    });
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let dir = RunDir::reuse(&args.run_dir).map_err(CommandError::input)?;
    let config = resolved(&experiment)?;
    let seeds = args.seeds.unwrap_or(experiment.evaluate.seeds);
    let meter = Meter::new(verbosity);
    let mut comparison = Comparison::new(entries, workloads(&experiment, args, seeds)?);
    comparison.sharing = setup.sharing().clone();
    comparison.wrappers = experiment.wrappers();
    comparison.reference = args.reference.as_deref().map(policies::written);
    let evaluation = compare(&comparison, &meter);
    // Also where a run has failed: a lost turn may be the reason.
    programs.iter().for_each(programs::warn_of_faults);
    let evaluation = evaluation?;
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

/// An external program as a policy, once it has shown that it starts.
fn external(program: &ExternalProgram, experiment: &Experiment, setup: &Setup) -> Result<PolicyEntry, CommandError> {
    let (layout, expected) = (experiment.gym().layout(), experiment.expected_peak(setup));
    let types = setup.type_names(layout.types);
    programs::check(program, &layout, &types)?;
    let program = program.clone();
    Ok(PolicyEntry::new(program.name().to_owned(), move |seed| {
        Box::new(ExternalPolicy::new(program.clone(), &layout, &types, seed).with_expected_peak(expected.clone()))
    }))
}

/// A policy by name, or from a bundle; a bundle is called by its directory's name, a shipped one as it was asked for.
pub fn entry(name: &str, experiment: &Experiment, setup: &Setup) -> Result<PolicyEntry, CommandError> {
    let shipped = name.starts_with(zoo::PREFIX);
    if !shipped && !Path::new(name).is_file() {
        let named: NamedPolicy = name.parse().map_err(|error| unnamed(&error))?;
        conventions::warn_of_replica(name, experiment.environment.preset, "--preset");
        if !named.is_replica() {
            return comparison::heuristic(experiment, name, setup).map_err(CommandError::input);
        }
        let entry = PolicyEntry::new(named.to_string(), move |seed| named.build(seed, &Sharing::default()));
        return Ok(comparison::by_preset(&experiment.environment, entry));
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

/// Error about a name that names no policy, with what to do about it.
pub fn unnamed(error: &PolicyNameError) -> CommandError {
    let message = match error {
        PolicyNameError::Unknown { name } => {
            let near = did_you_mean(name, compose::names());
            CommandError::input(format!("there is no policy and no bundle file {name:?}{near}"))
        }
        _ => CommandError::input(policies::explain(error)),
    };
    match error {
        PolicyNameError::NoReplica { .. } => {
            let has = |entry: &&ListedPolicy| entry.replica.is_some();
            let known: Vec<_> = compose::policies().filter(has).map(|entry| entry.name).collect();
            message.with_help(format!("policies with one: {}", known.join(", ")))
        }
        PolicyNameError::Parameter { .. } => message.with_help(policies::PARAMETERS),
        PolicyNameError::Syntax { .. } => {
            message.with_help("for example \"tiresias(limits=[3250, 7200], starvation_knob=2)\"")
        }
        PolicyNameError::Unknown { .. } => {
            message.with_help("`goodput list policies` and `goodput list zoo` name all policies")
        }
        PolicyNameError::UnknownVariant { .. } => message,
    }
}
