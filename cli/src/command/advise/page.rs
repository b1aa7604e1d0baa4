//! The answer of `goodput advise` on the terminal: tables for people, and a table of every figure.

use goodput_console::{Cell, CommandError, Listing, OutputFormat, counted, print};
use goodput_eval::stats::{Estimate, Interval};
use goodput_eval::studies::advice::{Advice, AdviceRow, ClusterChange, JobGroup};

/// Figure that the page is about.
const WAIT: &str = "wait_mean_hours";

/// Most tenants in a table.
const MOST_TENANTS: usize = 8;

/// Prints the answer as a page.
pub fn print_page(advice: &Advice) -> Result<(), CommandError> {
    let ranges = match advice.resamples {
        0 => String::new(),
        drawn => format!(
            "A range in brackets holds nine of ten of {drawn} traces, each drawn from {}-hour blocks of your arrivals.\n",
            advice.block_hours
        ),
    };
    print(&format!(
        "{} over {:.0} hours on {}.\n{ranges}The wait of a job is all of its time without accelerators. Each start costs \
         it 30 s.\n\n",
        counted(advice.jobs as u64, "job"),
        advice.span_hours,
        counted(advice.gpus.into(), "accelerator"),
    ))?;
    let columns = [
        "policy",
        "wait_mean_h",
        "range",
        "difference_h",
        "wait_p95_h",
        "slowdown",
        "used_percent",
        "idle_gpu_h",
        "fragmented_percent",
    ];
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
            number(row, "fragmentation_percent"),
        ]);
    }
    rows.print(OutputFormat::Table)?;
    print(&format!("\n{}\n", advice.verdict().join("\n")))?;
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
                advice.group_name(&row.group).as_str().into(),
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
pub fn figures(advice: &Advice) -> Listing {
    let mut rows = Listing::new(&["policy", "change", "group", "jobs", "figure", "value", "low", "high", "difference"]);
    for row in &advice.rows {
        for (name, spread) in &row.figures {
            let difference = row.difference.as_ref().and_then(|difference| difference.get(name));
            let bound = |bound: Option<f64>| Cell::option(bound, |bound| Cell::Number(bound, 3));
            rows.push(vec![
                row.policy.as_str().into(),
                row.change.words().as_str().into(),
                advice.group_name(&row.group).as_str().into(),
                Cell::Whole(row.jobs as i64),
                (*name).into(),
                Cell::Number(spread.value, 3),
                bound(spread.ci.map(|ci| ci.low)),
                bound(spread.ci.map(|ci| ci.high)),
                Cell::option(difference, |difference| Cell::Number(difference.value, 3)),
            ]);
        }
    }
    rows
}

fn number(row: &AdviceRow, name: &str) -> Cell {
    Cell::option(row.figures.get(name), |spread| Cell::Number(spread.value, 2))
}

fn range(estimate: Option<&Estimate>) -> Cell {
    match estimate.and_then(|estimate| estimate.ci) {
        Some(Interval { low, high }) => format!("[{low:.2}, {high:.2}]").as_str().into(),
        None => "".into(),
    }
}

/// A difference with its range.
fn difference(estimate: Estimate) -> Cell {
    let text = match estimate.ci {
        Some(Interval { low, high }) => format!("{:+.2} [{low:+.2}, {high:+.2}]", estimate.value),
        None => format!("{:+.2}", estimate.value),
    };
    text.as_str().into()
}
