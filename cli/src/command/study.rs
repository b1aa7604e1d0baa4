//! Studies of the command line: the policies, workloads and seeds that `eval` and `sweep plan` are asked for.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use goodput_agents::compose::{self, PolicyNameError, split_list};
use goodput_agents::heuristic::ListedPolicy;
use goodput_agents::policies::external::PREFIXES;
use goodput_configs::experiment::{self, Experiment, SweepPoint};
use goodput_configs::names::did_you_mean;
use goodput_configs::policies;
use goodput_configs::reader::Document;
use goodput_configs::scenario::WorkloadConfig;
use goodput_console::{CommandError, say};
use goodput_eval::entries::{EntryError, LearnedPolicy};
use goodput_eval::run::RunError;
use goodput_eval::sweep::{SharedFolderError, StudyWorkload, Sweep, SweepError, SweepStudy, build_of};
use goodputd::config_file::command_error;

use crate::args::StudyOptions;
use crate::command::config::resolved;
use crate::command::{assumptions, conventions, programs};
use crate::config;

/// Prefix of the name of a command as a policy.
const COMMAND: &str = PREFIXES[0];

/// Study of a command line. `argv` is the command that runs it in one process.
pub fn of(options: &StudyOptions, argv: Vec<String>) -> Result<SweepStudy, CommandError> {
    let preset = options.preset.map(|preset| format!("environment.preset={}", preset.name()));
    let allocation = options.allocation.map(|allocation| format!("environment.allocation={}", allocation.name()));
    let asked = asked_for(&options.policies);
    // Policies of the file that are not asked for need not be there, nor go by the allocation.
    let chosen = (!asked.is_empty()).then(|| "evaluate.policies=[]".to_owned());
    let given = [preset, allocation, chosen].into_iter().flatten();
    let sets: Vec<String> = given.chain(options.sets.iter().cloned()).collect();
    let (mut workloads, mut configs, mut first) = (Vec::new(), Vec::new(), None::<Experiment>);
    let several = options.experiments.len() > 1;
    for path in &options.experiments {
        let mut experiment = config::read(path, &sets)?;
        conventions::say_overrides(&experiment.environment);
        let document = Document::read(path, &sets).map_err(command_error)?;
        for SweepPoint { name, experiment: point } in experiment::points(&document).map_err(command_error)? {
            let file = if several { experiment.name.as_str() } else { "" };
            for workload in StudyWorkload::of(&point, &options.workloads) {
                workloads.push(StudyWorkload { name: joined(&[file, &name], workload.name), ..workload });
            }
        }
        if !asked.is_empty() {
            experiment.evaluate.policies.clone_from(&asked);
        }
        configs.push(resolved(&experiment)?);
        first.get_or_insert(experiment);
    }
    for workload in &workloads {
        if let WorkloadConfig::File(file) = &workload.experiment.workload {
            assumptions::say_of(&file.path)?;
        }
    }
    let Some(first) = first else { return Err(CommandError::input("there is no experiment to compare on")) };
    let policies = if asked.is_empty() { first.evaluate.policies.clone() } else { asked };
    policies.iter().try_for_each(|name| warn(name, &first))?;
    Ok(SweepStudy {
        title: format!("{}: comparison", first.name),
        argv,
        config: configs.join("\n"),
        seeds: seeds(options, &first),
        reference: options.reference.as_deref().map(policies::written),
        policies,
        workloads,
    })
}

/// Policies of all `--policies`. Each has names between commas, or one command, which may have commas itself.
pub fn asked_for(policies: &[String]) -> Vec<String> {
    let names = policies.iter().flat_map(|given| match given.starts_with(COMMAND) {
        true => vec![given.as_str()],
        false => split_list(given),
    });
    names.map(str::to_owned).collect()
}

/// Name of a workload: the file and the settings where there are several, and otherwise its own name.
fn joined(parts: &[&str], own: String) -> String {
    let mut words: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    if words.is_empty() || own != "workload" {
        words.push(&own);
    }
    words.join(" ")
}

fn seeds(options: &StudyOptions, experiment: &Experiment) -> Vec<u64> {
    let first = options.split.first_seed(experiment.seed, 0);
    let count = options.seeds.unwrap_or(experiment.evaluate.seeds);
    match experiment.sweep.as_ref().and_then(|sweep| sweep.seeds).filter(|_| options.seeds.is_none()) {
        Some(range) => (range.first..range.first + range.count).collect(),
        None => (first..first + count).collect(),
    }
}

/// Plans a study with this program.
pub fn plan(study: SweepStudy) -> Result<Sweep, CommandError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    Sweep::plan(study, &build()?, &format!("{now} {}", std::process::id())).map_err(fault)
}

/// Build of this program.
pub fn build() -> Result<String, CommandError> {
    // The link leads to the file that runs, also where another one has taken its name.
    let running = Path::new("/proc/self/exe");
    let program = if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() };
    build_of(&program.map_err(CommandError::failed)?).map_err(fault)
}

/// Refuses a program that is not there, and warns of a policy that may not be what the user expects.
fn warn(name: &str, experiment: &Experiment) -> Result<(), CommandError> {
    if programs::named(name)?.is_some() {
        return Ok(());
    }
    let Some(LearnedPolicy { bundle, .. }) = LearnedPolicy::by_name(name).map_err(|error| fault(error.into()))? else {
        conventions::warn_of_replica(name, experiment.environment.preset, "--preset");
        return Ok(());
    };
    let trained = bundle.policy(Default::default()).map_err(CommandError::input)?.information();
    let given = experiment.environment.information;
    if std::mem::discriminant(&trained) != std::mem::discriminant(&given) {
        say(&format!("warning: {name} was trained at information level {trained}; this experiment gives {given}"));
    }
    Ok(())
}

/// Error of a sweep, with its remedy.
pub fn fault(error: SweepError) -> CommandError {
    let remedy = error.remedy();
    let error = match error {
        SweepError::Entry(EntryError::Policy(error)) => return unnamed(&error),
        SweepError::Entry(EntryError::Unsuitable(error)) => return config::setup_error(error.into()),
        SweepError::Entry(EntryError::External { ref command, .. }) => {
            let help = programs::started_as(command);
            return CommandError::input(error).with_help(help);
        }
        SweepError::Entry(EntryError::Types { .. }) => {
            return CommandError::input(error).with_help(
                "a utility can be learned on several types and used on others: `goodput init experiment/heterogeneous`",
            );
        }
        SweepError::Experiment(error) => return command_error(error),
        SweepError::Run(RunError::Run { .. }) | SweepError::Shared(SharedFolderError::Differs { .. }) => {
            CommandError::failed(error)
        }
        error => CommandError::input(error),
    };
    match remedy {
        Some(remedy) => error.with_help(remedy),
        None => error,
    }
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
