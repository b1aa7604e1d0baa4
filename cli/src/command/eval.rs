//! `goodput eval`: policies on the held-out seeds of an experiment.

use std::process::ExitCode;

use goodput_console::CommandError;
use goodput_eval::run::{Comparison, Evaluation, RunError};
use goodput_eval::sweep::{CellStore, SweepPlan};
use goodput_train::run_dir::RunDir;

use crate::args::Eval;
use crate::command::results::{self, ReportContext};
use crate::command::run::{essential, threads};
use crate::command::{headroom, programs, study, token_price};
use crate::progress::{Meter, Verbosity};

/// Runs `goodput eval` and gives its exit code: a sweep that is planned, run and merged in one process.
pub fn run(args: &Eval, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    threads(args.jobs)?;
    let sweep = study::plan(study::of(&args.study, essential(&results::own_argv()))?)?;
    if args.token_price {
        token_price::check(&sweep)?;
    }
    let dir = RunDir::reuse(&args.run_dir).map_err(CommandError::input)?;
    let _claim = dir.claim().map_err(CommandError::input)?;
    let store = CellStore::open(&args.run_dir).map_err(study::fault)?;
    let meter = Meter::new(verbosity);
    let all: Vec<usize> = (0..sweep.layout().runs()).collect();
    let done = sweep.run(&all, &store, &|done, total| meter.runs(done, total));
    meter.finish();
    // Also where a run has failed: a lost turn may be the reason.
    sweep.programs().iter().for_each(programs::warn_of_faults);
    done.map_err(study::fault)?;
    let merged = sweep.merge(&store, &args.run_dir, args.jobs_csv).map_err(study::fault)?;
    if !args.keep_cells && !SweepPlan::is_in(&args.run_dir) {
        store.remove().map_err(study::fault)?;
    }
    results::page(&dir, &merged, &ReportContext::of(sweep.planned()))?;
    results::print(&merged.summary, args.output)?;
    if args.bound {
        results::print_bounds(&sweep, &merged, args.output)?;
    }
    if args.headroom {
        headroom::print(&sweep, &merged, &dir, args.output)?;
    }
    if args.token_price {
        token_price::print(&merged, args.output)?;
    }
    Ok(ExitCode::SUCCESS)
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
