//! `goodput reproduce`: a published table, ours beside theirs.

use std::process::ExitCode;

use goodput_console::{Cell, CommandError, Listing};
use goodput_eval::reproduce::REPRODUCTIONS;

use crate::args::Reproduce;

/// Runs `goodput reproduce` and gives its exit code.
pub fn run(args: &Reproduce) -> Result<ExitCode, CommandError> {
    let known = || REPRODUCTIONS.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
    let table = REPRODUCTIONS.iter().find(|table| table.name == args.name).ok_or_else(|| {
        CommandError::input(format!("there is no published table {:?}", args.name))
            .with_help(format!("tables: {}", known()))
    })?;
    let figures = table.run(&args.data).map_err(|error| {
        CommandError::input(error).with_help(
            "--data names a directory with the public files; `goodput list reproductions -o wide` says which",
        )
    })?;
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
