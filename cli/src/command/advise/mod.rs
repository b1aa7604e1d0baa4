//! `goodput advise`: what policies would have done with the jobs of a trace, and what a change would do.

mod job;
mod page;
mod queue;
mod start_page;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use goodput_agents::compose::{NamedPolicy, split_list};
use goodput_configs::policies::FIGURES as TYPE_FIGURES;
use goodput_configs::scenario::prepare_shares;
use goodput_console::{CommandError, OutputFormat, print, say};
use goodput_datasets::{Catalog, LoadedWorkload, read_workload, resample};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::time::SimTime;
use goodput_eval::studies::advice::{Advice, AdvicePage, AdviceQuestion};

use super::assumptions;
use super::sim::data_fault;
use super::sim_inputs;
use crate::args::{Advise, AdviseCommand};
use crate::command::results;
use crate::command::run::threads;
use crate::command::study::unnamed;
use crate::progress::{Meter, Verbosity};

/// Runs `goodput advise` and gives its exit code.
pub fn run(args: &Advise, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    if let Some(AdviseCommand::Job(options)) = &args.verb {
        return job::run(options, verbosity);
    }
    let (Some(trace), Some(named)) = (&args.trace, &args.cluster) else {
        return Err(CommandError::input("expected a trace and --cluster"));
    };
    threads(args.jobs)?;
    let (cluster, workload) = jobs_on(trace, named)?;
    let question = AdviceQuestion {
        policies: policies(&args.policies, &cluster)?,
        cluster,
        block: block(args, &workload)?,
        workload: Arc::new(workload),
        resamples: args.resamples,
        sigma: sigma(args.estimate_sigma)?,
    };
    let meter = Meter::new(verbosity);
    let answer = question.answer(&|done, total| meter.runs(done as usize, total as usize));
    meter.finish();
    let advice = answer.map_err(CommandError::failed)?;
    match args.output {
        OutputFormat::Table => page::print_page(&advice)?,
        OutputFormat::Json => {
            print(&(serde_json::to_string_pretty(&advice).map_err(CommandError::failed)? + "\n"))?;
        }
        other => page::figures(&advice).print(other)?,
    }
    if let Some(path) = &args.report {
        write_page(&advice, trace, path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the answer as a page.
fn write_page(advice: &Advice, trace: &Path, path: &Path) -> Result<(), CommandError> {
    let name =
        trace.file_name().map_or_else(|| trace.display().to_string(), |name| name.to_string_lossy().into_owned());
    let origin = results::origin(&results::own_argv());
    let page = AdvicePage {
        title: &format!("Other schedulers for the jobs of {name}"),
        advice,
        command: &origin.command,
        program: &origin.program(),
    };
    fs::write(path, page.render()).map_err(|error| {
        CommandError::input(format!("cannot write {}: {error}", path.display()))
            .with_help("the folder of --report must exist")
    })?;
    say(&format!("page: {}", path.display()));
    Ok(())
}

/// The machines, and the jobs of a trace that they can run.
fn jobs_on(trace: &Path, named: &str) -> Result<(Arc<Cluster>, Workload), CommandError> {
    let mut cluster = Arc::new(sim_inputs::cluster(named)?);
    let workload = workload(trace, &cluster, named)?;
    prepare_shares(&mut cluster, &workload)
        .map_err(|problem| CommandError::input(format!("{}: {problem}", trace.display())))?;
    Ok((cluster, workload))
}

/// Jobs of a trace with its tenants at equal weights, all of which the cluster can run.
fn workload(path: &Path, cluster: &Cluster, named: &str) -> Result<Workload, CommandError> {
    assumptions::say_of(path)?;
    let LoadedWorkload { mut workload, tenants } = read_workload(path, Catalog::shipped()).map_err(data_fault)?;
    let file = path.display();
    if !workload.requests.is_empty() {
        return Err(CommandError::input(format!("{file} has inference requests; advice is about training jobs"))
            .with_help("`goodput data import` writes the training jobs alone"));
    }
    if tenants.len() > 1 {
        workload.tenants = sim_inputs::equals(tenants)?;
    }
    sim_inputs::fits(cluster, named, &workload)?;
    Ok(workload)
}

fn policies(lists: &[String], cluster: &Cluster) -> Result<Vec<NamedPolicy>, CommandError> {
    let names = lists.iter().flat_map(|list| split_list(list));
    let policy = |name: &str| {
        let named: NamedPolicy = name.parse().map_err(|error| unnamed(&error))?;
        match named.lacks(cluster) {
            Some(problem) => Err(CommandError::input(format!("--policies: {named} {problem}")).with_help(TYPE_FIGURES)),
            None => Ok(named),
        }
    };
    let found: Vec<NamedPolicy> = names.map(policy).collect::<Result<_, _>>()?;
    if found.is_empty() {
        return Err(CommandError::input("--policies: expected at least one policy"));
    }
    let names: Vec<String> = found.iter().map(ToString::to_string).collect();
    if let Some((_, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(CommandError::input(format!("--policies: {name} is named twice")));
    }
    Ok(found)
}

fn block(args: &Advise, workload: &Workload) -> Result<SimTime, CommandError> {
    let hours = args.block_hours;
    if !(0.01..=1e5).contains(&hours) {
        return Err(CommandError::input(format!("--block-hours {hours}: expected from 0.01 to 100000")));
    }
    let block = SimTime::from_secs_f64(3600.0 * hours);
    let count = resample::blocks(workload, block);
    if count < 2 && args.resamples > 0 {
        return Err(CommandError::input(format!(
            "--block-hours {hours}: the trace has a single block of that length, so no other trace can be drawn from it"
        ))
        .with_help("choose shorter blocks, or --resamples 0 for figures without ranges"));
    }
    Ok(block)
}

fn sigma(given: f64) -> Result<f64, CommandError> {
    match (0.0..=5.0).contains(&given) {
        true => Ok(given),
        false => Err(CommandError::input(format!("--estimate-sigma {given}: expected from 0 to 5"))),
    }
}
