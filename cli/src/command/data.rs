//! `goodput data`: workloads and applications.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::WorkloadConfig;
use goodput_console::{Cell, CommandError, Listing, OutputFormat, counted, say};
use goodput_datasets::export::RunChoice;
use goodput_datasets::inspect::{QUANTILES, summarise};
use goodput_datasets::scaling::ScalingAssumption;
use goodput_datasets::store::decisions::Behaviour;
use goodput_datasets::store::{DataProvenance, jobs};
use goodput_datasets::validate::{UnknownApplications, can_run, validate};
use goodput_datasets::{Catalog, DataError, ImportOptions, fit, import_with, read_jobs};
use goodput_env::cluster::Cluster;

use crate::args::Data;
use crate::command::assumptions;
use crate::command::config::resolved;
use crate::command::run::threads;
use crate::command::sim::data_fault;
use crate::command::study::asked_for;
use crate::command::train::{GATE, fault};
use crate::command::{data_export, fit_llm, list, replay_llm, replay_services};
use crate::config;
use crate::progress::{Meter, Verbosity};

/// Runs `goodput data` and gives its exit code.
pub fn run(verb: &Data, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    match verb {
        Data::Import { file, out, allow_refused, map, throughputs, assume_scaling } => {
            let scaling = assume_scaling.as_ref().map(|text| ScalingAssumption::read(text, Catalog::shipped()));
            let scaling = scaling.transpose().map_err(data_fault)?;
            let options = ImportOptions { map: map.clone(), throughputs: throughputs.clone(), scaling };
            import(file, &options, out.as_deref(), *allow_refused)
        }
        Data::Export { source, format, out, policy, workload, seed } => {
            let choice = RunChoice { policy: policy.clone(), workload: workload.clone(), seed: *seed };
            data_export::run(source, &choice, *format, out)
        }
        Data::Schema { output } => {
            list::job_table().print(*output)?;
            Ok(ExitCode::SUCCESS)
        }
        Data::Synth { experiment, seed, out } => synth(experiment, *seed, out),
        Data::Log { experiment, policies, noise, decisions, sets, jobs, out } => {
            threads(*jobs)?;
            log(&config::read(experiment, sets)?, policies, noise, *decisions, out, verbosity)
        }
        Data::Inspect { file, cluster, output } => inspect(file, cluster, *output),
        Data::Validate { file, cluster } => check(file, cluster.as_deref()),
        Data::FitLlm(asked) => fit_llm::run(asked),
        Data::ReplayLlm(asked) => replay_llm::run(asked),
        Data::ReplayServices(asked) => replay_services::run(asked),
        Data::Fit { profiles, by_type, out } => {
            let mut catalog = fit::fit_catalog(profiles).map_err(data_fault)?;
            if let Some(more) = by_type {
                fit::add_types(&mut catalog, more).map_err(data_fault)?;
            }
            fs::write(out, catalog.to_toml())
                .map_err(|error| CommandError::input(format!("cannot write {}: {error}", out.display())))?;
            say(&format!("wrote {}", out.display()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn import(
    file: &Path,
    options: &ImportOptions,
    out: Option<&Path>,
    allow_refused: bool,
) -> Result<ExitCode, CommandError> {
    let named = || PathBuf::from(file.file_name().unwrap_or_default()).with_extension("parquet");
    let out = out.map_or_else(named, Path::to_path_buf);
    let (mut count, mut unknown) = (0, UnknownApplications::default());
    let report = import_with(file, options, &out, |job| {
        count += u64::from(!can_run(job, Catalog::shipped()));
        unknown.see(job, Catalog::shipped());
    });
    let report = report.map_err(data_fault)?;
    say(&report.to_string());
    say(&format!("wrote {}", out.display()));
    if report.kept == 0 {
        return Err(data_fault(DataError::Empty { path: out }));
    }
    if let Some(scaling) = &options.scaling {
        say(&format!("assumption: {}", scaling.describe(Catalog::shipped())));
    }
    if !unknown.is_empty() {
        say(&format!("applications that the catalog does not have, with their jobs: {unknown}"));
        say("such a job is rigid and lasts for its duration; --assume-scaling gives it the scaling of an application");
    }
    if count > 0 {
        let file = out.display();
        say(&format!("{count} of the rows that were written cannot be run; `goodput data validate {file}` lists them"));
    }
    let refused = report.refused.count > 0 && !allow_refused;
    if refused {
        say("rows were refused; with --allow-refused the exit code is 0 all the same");
    }
    Ok(if count > 0 || refused { ExitCode::from(GATE) } else { ExitCode::SUCCESS })
}

fn synth(experiment: &Path, seed: u64, out: &Path) -> Result<ExitCode, CommandError> {
    let experiment = config::read(experiment, &[])?;
    let WorkloadConfig::Synthetic(settings) = &experiment.workload else {
        return Err(CommandError::input(format!("experiment {} has no [workload.synthetic] table", experiment.name)));
    };
    let rows = settings.build(Catalog::shipped()).map_err(CommandError::input)?.rows(seed);
    let description = format!("seed {seed} of {}", toml::to_string(settings).map_err(CommandError::failed)?);
    let provenance = DataProvenance::generated(settings.name(), &description, rows.len() as u64);
    provenance.on(jobs::table(&rows)).write_parquet(out).map_err(data_fault)?;
    say(&format!("wrote {} to {}", counted(rows.len() as u64, "job"), out.display()));
    Ok(ExitCode::SUCCESS)
}

fn log(
    experiment: &Experiment,
    policies: &[String],
    noise: &[f32],
    decisions: u64,
    out: &Path,
    verbosity: Verbosity,
) -> Result<ExitCode, CommandError> {
    let asked = asked_for(policies);
    let names = if asked.is_empty() { &experiment.evaluate.policies } else { &asked };
    let disturbed = |name: &String| {
        let name = name.clone();
        noise.iter().map(move |&noise| Behaviour { name: name.clone(), noise })
    };
    let behaviours: Vec<Behaviour> = names.iter().flat_map(disturbed).collect();
    let meter = Meter::new(verbosity);
    let log = goodput_train::log::log(experiment, &behaviours, decisions, &|done| meter.decisions(done, decisions));
    let log = log.map_err(fault)?;
    meter.finish();
    let description = format!("seed {} of {}", experiment.seed, resolved(experiment)?);
    log.write(out, &DataProvenance::generated("data log", &description, log.rows() as u64)).map_err(data_fault)?;
    let mut rows = Listing::new(&["behaviour", "noise", "episodes", "decisions", "mean_return"]);
    for behaviour in &behaviours {
        let own = || log.episodes().iter().filter(|episode| episode.behaviour == *behaviour);
        let (episodes, decisions) = (own().count(), own().map(|episode| episode.rows.len()).sum::<usize>());
        rows.push(vec![
            behaviour.name.as_str().into(),
            Cell::Number(f64::from(behaviour.noise), 3),
            Cell::Whole(episodes as i64),
            Cell::Whole(decisions as i64),
            Cell::Number(own().map(|episode| episode.total).sum::<f64>() / episodes.max(1) as f64, 2),
        ]);
    }
    rows.print(OutputFormat::Table)?;
    let (decisions, episodes) = (counted(log.decisions() as u64, "decision"), log.episodes().len() as u64);
    say(&format!("wrote {decisions} of {} to {}", counted(episodes, "episode"), out.display()));
    Ok(ExitCode::SUCCESS)
}

fn inspect(file: &Path, cluster: &str, output: OutputFormat) -> Result<ExitCode, CommandError> {
    let cluster = Cluster::parse(cluster).map_err(CommandError::input)?;
    assumptions::say_of(file)?;
    let imported = read_jobs(file).map_err(data_fault)?;
    let summary = summarise(&imported.jobs, Catalog::shipped(), Some(cluster.total_gpus()));
    let mut rows = Listing::new(&["figure", "value"]);
    let mut add = |figure: String, value: Cell| rows.push(vec![figure.into(), value]);
    add("jobs".into(), Cell::Whole(summary.jobs as i64));
    add("tenants".into(), Cell::Whole(summary.tenants as i64));
    add("span_hours".into(), Cell::Number(summary.span_secs / 3600.0, 2));
    add("jobs_per_hour".into(), Cell::Number(summary.jobs_per_hour, 2));
    add("gpu_hours".into(), Cell::Number(summary.gpu_hours, 1));
    add("jobs_of_unknown_length".into(), Cell::Whole(summary.unknown as i64));
    add(format!("load_on_{}_gpus", cluster.total_gpus()), Cell::option(summary.load, |load| Cell::Number(load, 3)));
    let distributions = [("run_secs", summary.run_secs), ("gpus", summary.gpus), ("gap_secs", summary.gaps_secs)];
    for (name, values) in distributions {
        for (share, value) in QUANTILES.iter().zip(values) {
            let value = if value.is_finite() { Cell::Number(value, 1) } else { Cell::Missing };
            add(format!("{name}_p{}", share * 100.0), value);
        }
    }
    for (application, share) in &summary.applications {
        let name = if application.is_empty() { "without_application" } else { application };
        add(format!("jobs_{name}"), Cell::Whole(share.jobs as i64));
        add(format!("gpu_hours_{name}"), Cell::Number(share.gpu_hours, 1));
    }
    rows.print(output)?;
    Ok(ExitCode::SUCCESS)
}

fn check(file: &Path, cluster: Option<&str>) -> Result<ExitCode, CommandError> {
    let cluster = cluster.map(Cluster::parse).transpose().map_err(CommandError::input)?;
    let imported = read_jobs(file).map_err(data_fault)?;
    let verdict = validate(&imported, Catalog::shipped(), cluster.map(|cluster| cluster.total_gpus()));
    let mut rows = Listing::new(&["line", "severity", "finding"]);
    for (line, problem) in &verdict.errors.examples {
        rows.push(vec![Cell::Whole(*line as i64), "error".into(), problem.to_string().into()]);
    }
    for (line, remark) in &verdict.remarks.examples {
        rows.push(vec![Cell::Whole(*line as i64), "remark".into(), remark.to_string().into()]);
    }
    if !rows.is_empty() {
        rows.print(OutputFormat::Table)?;
    }
    let found = verdict.errors.count + verdict.remarks.count;
    say(&format!(
        "{}, {}, {}{}",
        counted(verdict.jobs as u64, "job"),
        counted(verdict.errors.count, "error"),
        counted(verdict.remarks.count, "remark"),
        if found > rows.len() as u64 { "; the table shows the first ones of each kind" } else { "" }
    ));
    if verdict.passes() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandError::input(format!("{}: {} cannot be run", file.display(), counted(verdict.errors.count, "row")))
        .with_help("correct the rows, or drop them with `goodput data import`"))
}
