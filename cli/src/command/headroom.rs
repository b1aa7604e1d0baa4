//! Table and picture of `goodput eval --headroom`: the policies of a comparison beside a probe that knows the future,
//! and the bound.

use goodput_console::{Cell, CommandError, Listing, OutputFormat};
use goodput_eval::report::results::ComparisonResults;
use goodput_eval::studies::headroom::{self, Headroom};
use goodput_eval::sweep::Sweep;
use goodput_train::run_dir::RunDir;

use super::study::fault;

/// Columns of the table: first what is read beside each other, relative to the best published policy.
const COLUMNS: [&str; 10] = [
    "workload",
    "published",
    "ours",
    "ours_percent",
    "probe_percent",
    "bound_percent",
    "published_secs",
    "ours_secs",
    "probe_secs",
    "bound_secs",
];

/// Note below the table.
const NOTE: &str = "\nprobe: a reference that reads the future, which no scheduler can; it cannot be run as a policy\n";

/// File of the picture in the run directory.
const PICTURE: &str = "headroom.svg";

/// Prints a row for each workload, and draws the rows.
pub fn print(
    sweep: &Sweep,
    results: &ComparisonResults,
    dir: &RunDir,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let found = headroom::of(sweep, &results.heads).map_err(fault)?;
    let mut rows = Listing::new(&COLUMNS).brief(&COLUMNS[..6]);
    for row in &found {
        rows.push(cells(row));
    }
    let on_a_page = matches!(format, OutputFormat::Table | OutputFormat::Wide);
    if on_a_page {
        goodput_console::print("\n")?;
    }
    rows.print(format)?;
    if on_a_page {
        goodput_console::print(NOTE)?;
    }
    dir.write(PICTURE, headroom::picture(&found).standalone().as_bytes()).map_err(CommandError::failed)
}

fn cells(row: &Headroom) -> Vec<Cell> {
    let name = |policy: &Option<(String, f64)>| Cell::option(policy.as_ref(), |policy| policy.0.as_str().into());
    let number = |value: Option<f64>| Cell::option(value, |value| Cell::Number(value, 1));
    let percent = |secs: Option<f64>| {
        let ratio = secs.and_then(|secs| row.against_published(secs));
        number(ratio.map(|ratio| 100.0 * (ratio - 1.0)))
    };
    let others = [row.ours_secs(), row.probe_secs, row.bound_secs()];
    let published = row.published.as_ref().map(|policy| policy.1);
    let names = [row.workload.as_str().into(), name(&row.published), name(&row.ours)];
    let percents = others.map(percent);
    names.into_iter().chain(percents).chain([number(published)]).chain(others.map(number)).collect()
}
