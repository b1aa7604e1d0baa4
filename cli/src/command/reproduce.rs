//! `goodput reproduce`: a published table, ours beside theirs.

use std::process::ExitCode;

use goodput_agents::bundle::Model;
use goodput_console::{Cell, CommandError, Listing};
use goodput_eval::entries::LearnedPolicy;
use goodput_eval::reproduce::rlscheduler::{self, JudgedOrder, JudgedRow};
use goodput_eval::reproduce::{REPRODUCTIONS, ReproduceError};
use goodput_eval::stats::Estimate;

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
    let columns = [
        "trace",
        "rule",
        "order",
        "first_two_thirds",
        "ten_windows",
        "ten_difference",
        "last_third",
        "last_difference",
        "windows_better",
    ];
    let mut listing = Listing::new(&columns);
    for row in rlscheduler::judge(&args.data, &orders).map_err(absent)? {
        listing.push(cells(&row));
    }
    listing.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}

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

fn cells(row: &JudgedRow) -> Vec<Cell> {
    let number = |value: f64| Cell::Number(value, 2);
    let interval = |estimate: &Option<Estimate>| match estimate {
        Some(Estimate { value, ci: Some(ci) }) => format!("{value:+.2} [{:+.2}, {:+.2}]", ci.low, ci.high),
        Some(Estimate { value, ci: None }) => format!("{value:+.2}"),
        None => String::from("the one to beat"),
    };
    vec![
        row.trace.into(),
        row.rule.name().into(),
        row.order.as_str().into(),
        number(row.known),
        number(row.published),
        interval(&row.published_difference).into(),
        number(row.held_out),
        interval(&row.held_out_difference).into(),
        Cell::option(row.better, |better| Cell::Number(better as f64, 0)),
    ]
}
