//! `goodput sim`: one policy, one workload, one row a job.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use goodput_configs::scenario::{SetupError, known_speeds, too_large};
use goodput_console::{Cell, CommandError, Listing, say};
use goodput_datasets::{Catalog, DataError, import, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::gym::ExpectedPeak;
use goodput_env::job::Workload;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;

use crate::args::{InformationLevel, Preset, Sim};
use crate::command::eval::unnamed;
use crate::config::setup_error;
use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::NamedPolicy;
use goodput_agents::compose::loaning::Sharing;
use goodput_agents::zoo;

/// Runs `goodput sim` and gives its exit code.
pub fn run(args: &Sim) -> Result<ExitCode, CommandError> {
    let cluster = cluster(&args.cluster)?;
    if !(0.0..1.0).contains(&args.interference) {
        return Err(CommandError::input(format!(
            "--interference {}: expected at least 0 and below 1",
            args.interference
        )));
    }
    let mut policy = policy(&args.policy, args.seed, &cluster)?;
    let measured;
    let catalog = match &args.profiles {
        Some(dir) => {
            measured = import::pollux_profiles::catalog(dir, args.step_times.as_deref()).map_err(data_fault)?;
            &measured
        }
        None => Catalog::shipped(),
    };
    let workload = match &args.throughputs {
        Some(throughputs) => gavel_trace(&args.workload, throughputs)?,
        None => read_workload(&args.workload, catalog).map_err(data_fault)?.workload,
    };
    known_speeds(&cluster, &workload).map_err(|error| match error {
        SetupError::Value { value, expected, .. } => {
            CommandError::input(format!("--cluster has {value}, expected {expected}"))
        }
        error => setup_error(error),
    })?;
    if let Some(request) = too_large(&cluster, &workload) {
        let (name, needs, has) = (&request.name, request.min_gpus(), cluster.total_gpus());
        return Err(CommandError::input(format!(
            "job {name:?} needs {needs} accelerators, and --cluster {} has {has}: it would wait for ever",
            args.cluster
        ))
        .with_help("choose a larger cluster; `goodput data validate FILE --cluster CLUSTER` lists all such jobs"));
    }
    let options = SimOptions { interference: args.interference, ..options(args, &*policy) };
    let needs = policy.needs();
    if !options.information.allows(needs) {
        return Err(CommandError::input(format!(
            "policy {} cannot run at information level {}",
            args.policy, options.information
        ))
        .with_help(format!("it needs at least: {needs}")));
    }
    let scenario = Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, args.seed));
    let outcome = Simulator::new(scenario.clone()).run(&mut *policy).map_err(CommandError::failed)?;

    let mut rows = Listing::new(&[
        "job_id",
        "application",
        "submit_secs",
        "start_secs",
        "finish_secs",
        "jct_secs",
        "restarts",
        "gpu_secs",
    ]);
    for record in &outcome.jobs {
        let secs = |time: SimTime| Cell::Number(time.as_secs_f64(), 3);
        rows.push(vec![
            scenario.workload.jobs[record.job.index()].request.name.as_str().into(),
            scenario.workload.application_name(record.job).into(),
            secs(record.submit),
            Cell::option(record.start, secs),
            Cell::option(record.finish, secs),
            Cell::option(record.jct(), secs),
            Cell::Whole(i64::from(record.restarts)),
            Cell::Number(record.attained_gpu_millis as f64 / 1000.0, 3),
        ]);
    }
    rows.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &Sim, policy: &dyn Policy) -> SimOptions {
    let information = match args.information {
        None => policy.information(),
        Some(InformationLevel::Profiled) => Information::Profiled,
        Some(InformationLevel::Estimate) => Information::Estimate { sigma: args.estimate_sigma },
        Some(InformationLevel::Oracle) => Information::Oracle,
    };
    match args.preset {
        Some(Preset::PolluxOsdi21) => SimOptions::pollux_osdi21(policy.batching(), information),
        None => SimOptions { batching: policy.batching(), information, ..SimOptions::standard() },
    }
}

/// The machines: groups of nodes, or a file.
pub fn cluster(text: &str) -> Result<Cluster, CommandError> {
    let path = Path::new(text);
    if path.is_file() {
        return Ok(import::tiresias_cluster::read(path).map_err(data_fault)?.cluster());
    }
    Cluster::parse(text).map_err(CommandError::input)
}

/// One of Gavel's traces over its throughputs. Strict: a refused row is an error.
fn gavel_trace(trace: &Path, throughputs: &Path) -> Result<Workload, CommandError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| CommandError::input(format!("cannot read {}: {error}", path.display())))
    };
    let classes = import::gavel_throughputs::parse(throughputs, &read(throughputs)?).map_err(data_fault)?;
    let parsed = import::gavel::parse(trace, &read(trace)?, &classes).map_err(data_fault)?;
    match parsed.report.refused.examples.into_iter().min_by_key(|(line, _)| *line) {
        Some((line, problem)) => Err(data_fault(DataError::Row { path: trace.to_owned(), line, problem })),
        None => Ok(parsed.workload),
    }
}

/// A policy by name, or from a bundle, for `cluster`.
pub fn policy(name: &str, seed: u64, cluster: &Cluster) -> Result<Box<dyn Policy>, CommandError> {
    if name.starts_with(zoo::PREFIX) || Path::new(name).exists() {
        let bundle = bundle(name)?;
        bundle.check_types(cluster).map_err(|error| CommandError::input(format!("{name}: {error}")))?;
        return bundle
            .policy_sharing(ExpectedPeak::default(), &Sharing::default())
            .map_err(|error| CommandError::input(format!("{name}: decoder options: {error}")));
    }
    let named: NamedPolicy = name.parse().map_err(|error| unnamed(&error))?;
    if named.changed().is_some() {
        say(&format!("policy: {named}"));
    }
    Ok(named.build(seed, &Sharing::default()))
}

/// Reads a bundle for this program's observations; `zoo:NAME` is one that comes with it.
pub fn bundle(path: &str) -> Result<PolicyBundle, CommandError> {
    zoo::open(Path::new(path)).map_err(CommandError::input)
}

/// Bad data, with its remedy.
pub fn data_fault(error: DataError) -> CommandError {
    let help = error.remedy();
    CommandError::input(error).with_help(help)
}
