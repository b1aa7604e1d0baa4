//! `goodput sweep`: studies as many small tasks.

mod submit;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use goodput_console::{Cell, CommandError, Listing, OutputFormat, say};
use goodput_eval::sweep::{CellStore, Sweep, SweepPlan, SweepShard};
use goodput_train::run_dir::RunDir;

use crate::args::{StudyOptions, SweepCommand};
use crate::command::programs;
use crate::command::results::{self, ReportContext};
use crate::command::run::{essential, threads};
use crate::command::study::{self, fault};
use crate::progress::{Meter, Verbosity};

/// Runs `goodput sweep` and gives its exit code.
pub fn run(verb: &SweepCommand, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    match verb {
        SweepCommand::Plan { study, to } => plan(study, to),
        SweepCommand::Run { dir, shard, cells, jobs } => {
            threads(*jobs)?;
            run_cells(dir, shard.unwrap_or(SweepShard::WHOLE), cells, verbosity)
        }
        SweepCommand::Submit { dir, array } => submit::submit(dir, array).map(|()| ExitCode::SUCCESS),
        SweepCommand::Status { dir, output } => status(dir, *output),
        SweepCommand::Merge { dir, jobs_csv, output } => merge(dir, *jobs_csv, *output),
    }
}

fn plan(options: &StudyOptions, dir: &Path) -> Result<ExitCode, CommandError> {
    let mut sweep = study::plan(study::of(options, one_process(&results::own_argv()))?)?;
    if SweepPlan::is_in(dir) && !SweepPlan::read(dir).map_err(fault)?.has_cells_of(sweep.planned()) {
        return Err(CommandError::input(format!(
            "{} holds the plan of another study, or of another build",
            dir.display()
        ))
        .with_help("choose another directory with --to; cells of one directory belong to one study"));
    }
    sweep
        .estimate(|work| {
            let began = Instant::now();
            work().map(|()| began.elapsed().as_secs_f64())
        })
        .map_err(fault)?;
    sweep.planned().write(dir).map_err(fault)?;
    let cells = &sweep.planned().cells;
    let secs: f64 = cells.iter().map(|cell| cell.cost_secs).sum();
    say(&format!(
        "{} cells, about {secs:.0} s of one core; run them with: goodput sweep run {}",
        cells.len(),
        dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Command line that runs a study in one process: that of `goodput sweep plan` with `eval` in its place.
fn one_process(argv: &[String]) -> Vec<String> {
    let mut words = essential(argv);
    if let Some(at) = words.windows(2).position(|pair| pair == ["sweep", "plan"]) {
        words.splice(at..at + 2, ["eval".to_owned()]);
    }
    words
}

fn open(dir: &Path) -> Result<(Sweep, CellStore), CommandError> {
    Ok((Sweep::open(dir, &study::build()?).map_err(fault)?, CellStore::open(dir).map_err(fault)?))
}

fn run_cells(dir: &Path, shard: SweepShard, keys: &[String], verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    let (sweep, store) = open(dir)?;
    let plan = sweep.planned();
    let chosen = match keys {
        [] => shard.cells(plan),
        keys => keys.iter().map(|key| cell_of(plan, key)).collect::<Result<_, _>>()?,
    };
    let meter = Meter::new(verbosity);
    let done = sweep.run(&chosen, &store, &|done, total| meter.runs(done, total));
    meter.finish();
    sweep.programs().iter().for_each(programs::warn_of_faults);
    done.map_err(fault)?;
    Ok(ExitCode::SUCCESS)
}

/// The one cell with a key that begins with a text.
fn cell_of(plan: &SweepPlan, begin: &str) -> Result<usize, CommandError> {
    let mut found = plan.cells.iter().enumerate().filter(|(_, cell)| cell.key.starts_with(begin));
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => Err(CommandError::input(format!("--cells: no cell of the plan has the key {begin}"))),
        (Some(_), Some(_)) => Err(CommandError::input(format!("--cells: several keys begin with {begin}"))),
    }
}

fn status(dir: &Path, output: OutputFormat) -> Result<ExitCode, CommandError> {
    let (plan, store) = (SweepPlan::read(dir).map_err(fault)?, CellStore::open(dir).map_err(fault)?);
    let mut rows = Listing::new(&["policy", "cells", "finished", "left_core_secs"]);
    let each = plan.cells.chunks(plan.seeds.len() * plan.workloads.len());
    let (mut finished, mut left) = (0, 0.0);
    for (policy, cells) in plan.policies.iter().zip(each) {
        let missing: Vec<_> = cells.iter().filter(|cell| !store.has(&cell.key)).collect();
        let secs: f64 = missing.iter().map(|cell| cell.cost_secs).sum();
        (finished, left) = (finished + cells.len() - missing.len(), left + secs);
        rows.push(vec![
            policy.label.as_str().into(),
            Cell::Whole(cells.len() as i64),
            Cell::Whole((cells.len() - missing.len()) as i64),
            Cell::Number(secs, 1),
        ]);
    }
    rows.print(output)?;
    say(&format!("{finished} of {} cells are finished; about {left:.0} s of one core are left", plan.cells.len()));
    Ok(ExitCode::SUCCESS)
}

fn merge(dir: &Path, jobs_csv: bool, output: OutputFormat) -> Result<ExitCode, CommandError> {
    let (sweep, store) = open(dir)?;
    let merged = sweep.merge(&store, dir, jobs_csv).map_err(fault)?;
    store.remove_drafts().map_err(fault)?;
    let run_dir = RunDir::reuse(dir).map_err(CommandError::input)?;
    results::page(&run_dir, &merged, &ReportContext::of(sweep.planned()))?;
    results::print(&merged.summary, output)?;
    Ok(ExitCode::SUCCESS)
}
