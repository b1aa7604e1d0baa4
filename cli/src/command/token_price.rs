//! Table of `goodput eval --token-price`: training throughput given up per point of TTFT attainment.

use goodput_console::{Cell, CommandError, Listing, OutputFormat};
use goodput_eval::report::results::ComparisonResults;
use goodput_eval::stats::Estimate;
use goodput_eval::studies::token_price::{TokenPrice, prices};
use goodput_eval::sweep::Sweep;

use super::study::fault;

/// Says, before the runs, where no workload has a language model among its services.
pub fn check(sweep: &Sweep) -> Result<(), CommandError> {
    let layout = sweep.layout();
    for run in 0..layout.scenarios.len() {
        let scenario = sweep.scenario(run).map_err(fault)?;
        if scenario.workload.services.iter().any(|service| service.runs_tokens()) {
            return Ok(());
        }
    }
    Err(CommandError::input("no workload has a language model among its services").with_help(
        "leave out --token-price, or compare on a scenario that has one: `goodput init scenario/llm-services`",
    ))
}

/// Prints a line for each workload and policy.
pub fn print(results: &ComparisonResults, format: OutputFormat) -> Result<(), CommandError> {
    let prices = prices(results);
    let columns = [
        "workload",
        "policy",
        "training_gpus",
        "ttft_percent",
        "tpot_percent",
        "given_up_gpus",
        "gained_points",
        "gpus_per_point",
    ];
    let mut rows = Listing::new(&columns);
    for TokenPrice { workload, policy, training_gpus, ttft, tpot, given_up_gpus, gained_points, gpus_per_point } in
        prices
    {
        rows.push(vec![
            workload.into(),
            policy.into(),
            Cell::Number(training_gpus, 2),
            Cell::Number(100.0 * ttft, 2),
            Cell::Number(100.0 * tpot, 2),
            estimate(&given_up_gpus).into(),
            estimate(&gained_points).into(),
            gpus_per_point.map_or(Cell::Missing, |price| estimate(&price).into()),
        ]);
    }
    if matches!(format, OutputFormat::Table | OutputFormat::Wide) {
        goodput_console::print("\n")?;
    }
    rows.print(format)
}

/// A value with its interval.
fn estimate(of: &Estimate) -> String {
    match of.ci {
        Some(ci) => format!("{:.2} [{:.2}, {:.2}]", of.value, ci.low, ci.high),
        None => format!("{:.2}", of.value),
    }
}
