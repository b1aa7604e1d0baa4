//! `goodput advise`: what policies would have done with the jobs of a trace, and what a change would do.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use goodput_agents::compose::{NamedPolicy, split_list};
use goodput_configs::policies::FIGURES as TYPE_FIGURES;
use goodput_configs::scenario::{SetupError, known_speeds, prepare_shares, too_large};
use goodput_console::{Cell, CommandError, Listing, OutputFormat, counted, print};
use goodput_datasets::{Catalog, LoadedWorkload, read_workload, resample};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::tenant::{Group, Tenants};
use goodput_env::time::SimTime;
use goodput_eval::studies::advice::{Advice, AdviceQuestion, AdviceRow, ClusterChange, FigureSpread, JobGroup};

use super::sim::data_fault;
use super::sim_inputs;
use crate::args::Advise;
use crate::command::run::threads;
use crate::command::study::unnamed;
use crate::config::setup_error;
use crate::progress::{Meter, Verbosity};

/// AdviceFigure that the page is about.
const WAIT: &str = "wait_mean_hours";

/// Most tenants in a table.
const MOST_TENANTS: usize = 8;

/// Runs `goodput advise` and gives its exit code.
pub fn run(args: &Advise, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    threads(args.jobs)?;
    let mut cluster = Arc::new(sim_inputs::cluster(&args.cluster)?);
    let workload = workload(&args.trace, &cluster, &args.cluster)?;
    prepare_shares(&mut cluster, &workload)
        .map_err(|problem| CommandError::input(format!("{}: {problem}", args.trace.display())))?;
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
        OutputFormat::Table => page(&advice)?,
        OutputFormat::Json => {
            print(&(serde_json::to_string_pretty(&advice).map_err(CommandError::failed)? + "\n"))?;
        }
        other => figures(&advice).print(other)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Jobs of a trace with its tenants at equal weights, all of which the cluster can run.
fn workload(path: &Path, cluster: &Cluster, named: &str) -> Result<Workload, CommandError> {
    let LoadedWorkload { mut workload, tenants } = read_workload(path, Catalog::shipped()).map_err(data_fault)?;
    let file = path.display();
    if !workload.requests.is_empty() {
        return Err(CommandError::input(format!("{file} has inference requests; advice is about training jobs"))
            .with_help("`goodput data import` writes the training jobs alone"));
    }
    if tenants.len() > 1 {
        let groups = tenants.into_iter().map(Group::named).collect();
        let declared = Tenants::new(groups, Vec::new(), Vec::new(), &[]).map_err(CommandError::input)?;
        workload.tenants = Arc::new(declared);
    }
    known_speeds(cluster, &workload).map_err(|error| match error {
        SetupError::Value { value, expected, .. } => {
            CommandError::input(format!("--cluster has {value}, expected {expected}"))
        }
        error => setup_error(error),
    })?;
    if let Some(request) = too_large(cluster, &workload) {
        let (name, needs, has) = (&request.name, request.min_gpus(), cluster.total_gpus());
        return Err(CommandError::input(format!(
            "job {name:?} needs {needs} accelerators, and --cluster {named} has {has}: it would wait for ever"
        ))
        .with_help("choose a larger cluster; `goodput data validate FILE --cluster CLUSTER` lists all such jobs"));
    }
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

/// Prints the answer as a page.
fn page(advice: &Advice) -> Result<(), CommandError> {
    print(&format!(
        "{} over {:.0} hours on {}.\nRanges in brackets: nine of ten of {} traces, each drawn from {}-hour blocks of \
         arrivals of yours.\nThe wait of a job is all of its time without accelerators. Each start costs it 30 s.\n\n",
        counted(advice.jobs as u64, "job"),
        advice.span_hours,
        counted(advice.gpus.into(), "accelerator"),
        advice.resamples,
        advice.block_hours,
    ))?;
    let columns =
        ["policy", "wait_mean_h", "range", "difference_h", "wait_p95_h", "slowdown", "used_percent", "idle_gpu_h"];
    let mut rows = Listing::new(&columns);
    for row in advice.policies.iter().filter_map(|policy| advice.plain(policy, &JobGroup::All)) {
        let less = row.difference.as_ref().and_then(|difference| difference.get(WAIT));
        rows.push(vec![
            row.policy.as_str().into(),
            number(row, WAIT),
            range(row.figures.get(WAIT)),
            Cell::option(less, |less| difference(*less)),
            number(row, "wait_p95_hours"),
            number(row, "slowdown_mean"),
            number(row, "utilisation_percent"),
            number(row, "idle_gpu_hours"),
        ]);
    }
    rows.print(OutputFormat::Table)?;
    print(&format!("\n{}\n", verdict(advice)))?;
    groups(advice, "\nMean wait by accelerators asked for, hours\n\n", |group| matches!(group, JobGroup::Size { .. }))?;
    groups(advice, "\nMean wait by tenant, hours\n\n", |group| matches!(group, JobGroup::Tenant(_)))?;
    print("\nMean wait after a change, hours\n\n")?;
    let mut rows = Listing::new(&["change", "policy", "wait_mean_h", "difference_h"]);
    for row in advice.rows.iter().filter(|row| row.group == JobGroup::All && row.change != ClusterChange::Nothing) {
        let by = row.difference.as_ref().and_then(|difference| difference.get(WAIT));
        rows.push(vec![
            row.change.words().as_str().into(),
            row.policy.as_str().into(),
            number(row, WAIT),
            Cell::option(by, |by| difference(*by)),
        ]);
    }
    rows.print(OutputFormat::Table)
}

/// Table of the mean wait of some groups of jobs under the first policy and the two best ones.
fn groups(advice: &Advice, heading: &str, chosen: fn(&JobGroup) -> bool) -> Result<(), CommandError> {
    let mut found: Vec<&AdviceRow> = advice.rows_of_first().filter(|row| chosen(&row.group)).collect();
    if found.len() < 2 {
        return Ok(());
    }
    if matches!(found[0].group, JobGroup::Tenant(_)) {
        found.sort_by_key(|row| std::cmp::Reverse(row.jobs));
        found.truncate(MOST_TENANTS);
    }
    let mut policies = vec![&advice.policies[0]];
    policies.extend(advice.best_without_stops.iter().chain([&advice.best]));
    policies.dedup();
    print(heading)?;
    let mut rows = Listing::new(&["group", "jobs", "policy", "wait_mean_h", "range", "difference_h"]);
    for first in found {
        for row in policies.iter().filter_map(|policy| advice.plain(policy, &first.group)) {
            let less = row.difference.as_ref().and_then(|difference| difference.get(WAIT));
            rows.push(vec![
                group_name(advice, &row.group).as_str().into(),
                Cell::Whole(row.jobs as i64),
                row.policy.as_str().into(),
                number(row, WAIT),
                range(row.figures.get(WAIT)),
                Cell::option(less, |less| difference(*less)),
            ]);
        }
    }
    rows.print(OutputFormat::Table)
}

/// Every figure in a row of its own.
fn figures(advice: &Advice) -> Listing {
    let mut rows = Listing::new(&["policy", "change", "group", "jobs", "figure", "value", "low", "high", "difference"]);
    for row in &advice.rows {
        for (name, spread) in &row.figures {
            let difference = row.difference.as_ref().and_then(|difference| difference.get(name));
            let bound = |bound: Option<f64>| Cell::option(bound, |bound| Cell::Number(bound, 3));
            rows.push(vec![
                row.policy.as_str().into(),
                row.change.words().as_str().into(),
                group_name(advice, &row.group).as_str().into(),
                Cell::Whole(row.jobs as i64),
                (*name).into(),
                Cell::Number(spread.value, 3),
                bound(spread.low),
                bound(spread.high),
                Cell::option(difference, |difference| Cell::Number(difference.value, 3)),
            ]);
        }
    }
    rows
}

/// Sentences about the best policies.
fn verdict(advice: &Advice) -> String {
    let about = |policy: &String, kind: &str| {
        let less = advice.plain(policy, &JobGroup::All)?.difference.as_ref()?.get(WAIT)?;
        let sure = less.high.is_some_and(|high| high < 0.0);
        let how = if sure { "also in nine of ten traces drawn" } else { "but not in nine of ten traces drawn" };
        Some(format!(
            "Of {kind}, {policy} has the shortest mean wait: {:.2} hours less than {}, {how}.",
            -less.value, advice.policies[0]
        ))
    };
    let without =
        advice.best_without_stops.as_ref().and_then(|policy| about(policy, "the policies that never stop a job"));
    let best = about(&advice.best, "all policies").filter(|_| advice.best_without_stops.as_ref() != Some(&advice.best));
    let mut sentences: Vec<String> = without.into_iter().chain(best).collect();
    if sentences.is_empty() {
        sentences.push(format!("No policy has a shorter mean wait than {}.", advice.policies[0]));
    }
    let outside = advice.rows_of_first().filter_map(|row| row.figures.get(WAIT)).any(FigureSpread::is_outside);
    if outside {
        sentences.push(
            "A wait of the trace lies outside its range: busy blocks follow one another in the trace, and not in those \
             drawn. Longer blocks keep more of this (--block-hours)."
                .into(),
        );
    }
    sentences.join("\n")
}

fn number(row: &AdviceRow, name: &str) -> Cell {
    Cell::option(row.figures.get(name), |spread| Cell::Number(spread.value, 2))
}

fn range(spread: Option<&FigureSpread>) -> Cell {
    match spread.and_then(|spread| Some((spread.low?, spread.high?))) {
        Some((low, high)) => format!("[{low:.2}, {high:.2}]").as_str().into(),
        None => "".into(),
    }
}

/// A difference with its range.
fn difference(spread: FigureSpread) -> Cell {
    let text = match (spread.low, spread.high) {
        (Some(low), Some(high)) => format!("{:+.2} [{low:+.2}, {high:+.2}]", spread.value),
        _ => format!("{:+.2}", spread.value),
    };
    text.as_str().into()
}

fn group_name(advice: &Advice, group: &JobGroup) -> String {
    match group {
        JobGroup::All => "all jobs".into(),
        JobGroup::Size { from, to: Some(to) } if from == to => format!("{from}"),
        JobGroup::Size { from, to: Some(to) } => format!("{from} to {to}"),
        JobGroup::Size { from, to: None } => format!("{from} or more"),
        JobGroup::Tenant(tenant) => {
            advice.tenants.get(*tenant as usize).cloned().unwrap_or_else(|| format!("tenant {tenant}"))
        }
    }
}
