//! `goodput reproduce`: a published table, ours beside theirs.

use std::process::ExitCode;

use goodput_agents::bundle::Model;
use goodput_console::{Cell, CommandError, Listing};
use goodput_eval::entries::LearnedPolicy;
use goodput_eval::reproduce::rlscheduler::{self, JudgedOrder, JudgedRow, OrderDifference};
use goodput_eval::reproduce::{REPRODUCTIONS, ReproduceError};
use goodput_eval::stats::{Estimate, Interval};

use crate::args::Reproduce;

/// Runs `goodput reproduce` and gives its exit code.
pub fn run(args: &Reproduce) -> Result<ExitCode, CommandError> {
    let known = || REPRODUCTIONS.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
    let table = REPRODUCTIONS.iter().find(|table| table.name == args.name).ok_or_else(|| {
        CommandError::input(format!("there is no published table {:?}", args.name))
            .with_help(format!("tables: {}", known()))
    })?;
    if !args.policies.is_empty() {
        return judge(args);
    }
    let figures = table.run(&args.data).map_err(absent)?;
    let mut rows = Listing::new(&["case", "metric", "theirs", "ours", "difference_percent"]);
    for figure in figures {
        rows.push(vec![
            figure.case.as_str().into(),
            figure.metric.into(),
            Cell::option(figure.theirs, |value| Cell::Number(value, 3)),
            Cell::Number(figure.ours, 3),
            Cell::option(figure.difference(), |value| Cell::Number(value * 100.0, 2)),
        ]);
    }
    rows.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}

fn absent(error: ReproduceError) -> CommandError {
    CommandError::input(error)
        .with_help("--data names a directory with the public files; `goodput list reproductions -o wide` says which")
}

/// Learned orders beside the heuristics.
fn judge(args: &Reproduce) -> Result<ExitCode, CommandError> {
    let judged = rlscheduler::TABLE.name;
    if args.name != judged {
        let error = format!("{}: --policy goes with {judged} alone", args.name);
        return Err(CommandError::input(error).with_help(format!("goodput reproduce {judged} --policy BUNDLE")));
    }
    let orders = args.policies.iter().map(|name| order(name)).collect::<Result<Vec<JudgedOrder>, _>>()?;
    let mut listing = Listing::new(&JUDGED).brief(&JUDGED_BRIEF);
    for row in rlscheduler::judge(&args.data, &orders).map_err(absent)? {
        match &row.against[..] {
            [] => listing.push(cells(&row, None)),
            against => against.iter().for_each(|difference| listing.push(cells(&row, Some(difference)))),
        }
    }
    listing.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Columns of a judgement: an order, and one heuristic that it is compared with.
const JUDGED: [&str; 16] = [
    "trace",
    "rule",
    "order",
    "first_two_thirds",
    "ten_windows",
    "last_third",
    "against",
    "ten_difference",
    "ten_low",
    "ten_high",
    "last_difference",
    "last_low",
    "last_high",
    "p",
    "p_holm",
    "windows_better",
];

const JUDGED_BRIEF: [&str; 12] = [
    "trace",
    "rule",
    "order",
    "ten_windows",
    "last_third",
    "against",
    "last_difference",
    "last_low",
    "last_high",
    "p",
    "p_holm",
    "windows_better",
];

fn order(name: &str) -> Result<JudgedOrder, CommandError> {
    let help = "`goodput init experiment/backfill` writes the experiment that trains one";
    let found = LearnedPolicy::by_name(name).map_err(CommandError::input)?;
    let Some(LearnedPolicy { label, bundle }) = found else {
        return Err(CommandError::input(format!("{name}: there is no such bundle")).with_help(help));
    };
    let kind = bundle.kind();
    let Model::Queue(queue) = bundle.model else {
        let error = format!("{name}: a policy of kind {kind}, which is no order of a batch queue");
        return Err(CommandError::input(error).with_help(help));
    };
    Ok(JudgedOrder { label, queue })
}

fn cells(row: &JudgedRow, difference: Option<&OrderDifference>) -> Vec<Cell> {
    let number = |value: f64| Cell::Number(value, 2);
    let interval = |estimate: Option<&Estimate>| {
        let end = |end: fn(&Interval) -> f64| estimate.and_then(|estimate| estimate.ci.as_ref()).map(end);
        let parts = [estimate.map(|estimate| estimate.value), end(|ci| ci.low), end(|ci| ci.high)];
        parts.map(|part| Cell::option(part, number))
    };
    let mut cells = vec![row.trace.into(), row.rule.name().into(), row.order.as_str().into()];
    cells.extend([row.known, row.published, row.held_out].map(number));
    cells.push(Cell::option(difference, |difference| difference.heuristic.as_str().into()));
    cells.extend(interval(difference.map(|difference| &difference.published)));
    cells.extend(interval(difference.map(|difference| &difference.held_out)));
    cells.push(Cell::option(difference, |difference| Cell::Number(difference.p, 4)));
    cells.push(Cell::option(difference.and_then(|difference| difference.p_holm), |p| Cell::Number(p, 4)));
    cells.push(Cell::option(difference, |difference| Cell::Whole(difference.better as i64)));
    cells
}
