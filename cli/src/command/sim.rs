//! `goodput sim`: one policy, one workload, one row a job.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::loaning::Sharing;
use goodput_agents::compose::{NamedPolicy, lookahead_base};
use goodput_agents::policies::external::{ExternalPolicy, ExternalProgram};
use goodput_agents::zoo;
use goodput_configs::policies::FIGURES;
use goodput_configs::scenario::prepare_shares;
use goodput_console::{Cell, CommandError, Listing, say};
use goodput_datasets::DataError;
use goodput_env::cluster::Cluster;
use goodput_env::gym::{ExpectedPeak, USUAL_SLOTS, layout};
use goodput_env::placement::ShareRequest;
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;

use super::{assumptions, conventions, programs, sim_inputs, sim_pods};
use crate::args::{Sim, SimPreset};
use crate::command::study::unnamed;

/// Runs `goodput sim` and gives its exit code.
pub fn run(args: &Sim) -> Result<ExitCode, CommandError> {
    if args.preset == Some(SimPreset::Pods) {
        return sim_pods::run(args);
    }
    let mut cluster = Arc::new(sim_inputs::cluster(&args.cluster)?);
    if !(0.0..1.0).contains(&args.interference) {
        return Err(CommandError::input(format!(
            "--interference {}: expected at least 0 and below 1",
            args.interference
        )));
    }
    let program = programs::named(&args.policy)?;
    let bundle = (program.is_none() && is_bundle(&args.policy)).then(|| bundle(&args.policy)).transpose()?;
    let mut policy = match (&program, &bundle) {
        (Some(program), _) => external(program, args.seed)?,
        (None, Some(bundle)) => learned(&args.policy, bundle, &cluster)?,
        (None, None) => policy(&args.policy, args.seed, &cluster)?,
    };
    assumptions::say_of(&args.workload)?;
    let workload = sim_inputs::workload(args, &cluster)?;
    prepare_shares(&mut cluster, &workload).map_err(|problem| {
        CommandError::input(format!("{}: {problem}", args.workload.display()))
            .with_help("choose a cluster for --cluster that has room for every part, with types of known memory")
    })?;
    let options = conventions::options(args, &*policy)?;
    let needs = policy.needs();
    if !options.information.allows(needs) {
        return Err(CommandError::input(format!(
            "policy {} cannot run at information level {}",
            args.policy, options.information
        ))
        .with_help(format!("it needs at least: {needs}")));
    }
    let scenario = Arc::new(Scenario::new(cluster, Arc::new(workload), options, args.seed));
    if let Some((request, limit)) = scenario.first_limited() {
        let problem = format!("job {:?} would wait for ever: {limit}", request.name);
        return Err(CommandError::input(problem).with_help(limit.remedy()));
    }
    let outcome = Simulator::new(scenario.clone()).run(&mut *policy);
    // Also where the run has failed: a lost turn or a fault may be the reason.
    program.iter().for_each(programs::warn_of_faults);
    if let Some(problem) = bundle.and_then(|bundle| bundle.fault()) {
        return Err(CommandError::failed(format!("policy {} has no results: {problem}", args.policy)));
    }
    let outcome = outcome.map_err(CommandError::failed)?;

    let jobs = &scenario.workload.jobs;
    let shares = jobs.iter().any(|job| job.request.share.is_some());
    let mut columns =
        vec!["job_id", "application", "submit_secs", "start_secs", "finish_secs", "jct_secs", "restarts", "gpu_secs"];
    if shares {
        columns.extend(["compute_percent", "memory_mib"]);
    }
    let mut rows =
        Listing::new(&columns).brief(&["job_id", "application", "submit_secs", "finish_secs", "jct_secs", "restarts"]);
    for record in &outcome.jobs {
        let secs = |time: SimTime| Cell::Number(time.as_secs_f64(), 3);
        let request = &jobs[record.job.index()].request;
        let mut row = vec![
            request.name.as_str().into(),
            scenario.workload.application_name(record.job).into(),
            secs(record.submit),
            Cell::option(record.start, secs),
            Cell::option(record.finish, secs),
            Cell::option(record.jct(), secs),
            Cell::Whole(i64::from(record.restarts)),
            Cell::Number(record.attained_gpu_millis as f64 / 1000.0, 3),
        ];
        if shares {
            let amount =
                |of: fn(ShareRequest) -> u32| Cell::option(request.share, |share| Cell::Whole(of(share).into()));
            row.extend([amount(|share| share.compute_percent), amount(|share| share.memory_mib)]);
        }
        rows.push(row);
    }
    rows.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// An external program as a policy on the usual number of slots, once it has shown that it starts.
fn external(program: &ExternalProgram, seed: u64) -> Result<Box<dyn Policy>, CommandError> {
    let layout = layout(USUAL_SLOTS);
    programs::check(program, &layout, &[])?;
    Ok(Box::new(ExternalPolicy::new(program.clone(), &layout, &[], seed)))
}

/// Whether `name` is that of a shipped bundle or of a file.
fn is_bundle(name: &str) -> bool {
    name.starts_with(zoo::PREFIX) || Path::new(name).exists()
}

/// The policy of the bundle called `name`, for `cluster`.
fn learned(name: &str, bundle: &PolicyBundle, cluster: &Cluster) -> Result<Box<dyn Policy>, CommandError> {
    bundle.check_types(cluster).map_err(|error| CommandError::input(format!("{name}: {error}")))?;
    bundle
        .policy_sharing(ExpectedPeak::default(), &Sharing::default())
        .map_err(|error| CommandError::input(format!("{name}: decoder options: {error}")))
}

/// A policy by name, for `cluster`.
fn policy(name: &str, seed: u64, cluster: &Cluster) -> Result<Box<dyn Policy>, CommandError> {
    let named: NamedPolicy = name.parse().map_err(|error| unnamed(&error))?;
    if let Some(problem) = named.lacks(cluster) {
        return Err(CommandError::input(format!("--policy {named} {problem}")).with_help(FIGURES));
    }
    if named.changed().is_some() || lookahead_base(name).is_some() {
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
