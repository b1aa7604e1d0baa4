//! `goodput forecast worth`: rules of autoscaling on real loads.

use std::path::Path;

use goodput_console::{Cell, CommandError, Listing, OutputFormat, say};
use goodput_datasets::DataError;
use goodput_eval::studies::forecasting::StudyError;
use goodput_eval::studies::worth::WorthCell;

use super::fault;
use crate::config;

/// Rules of autoscaling on the loads of a file: a row a cell, or a row a rule.
pub fn run(path: &Path, sets: &[String], every_rule: bool, output: OutputFormat) -> Result<(), CommandError> {
    let config = config::read_worth(path, sets)?;
    let cells = goodput_eval::studies::worth::worth(&config).map_err(|error| match error {
        StudyError::Data(absent @ DataError::Read { .. }) => config::at_key(path, sets, "folder", &absent.to_string())
            .with_help("public series do not ship with goodput: --set folder=FOLDER says where they are"),
        error => fault(error),
    })?;
    for load in &config.loads {
        let played = |secs: &f64| cells.iter().any(|cell| cell.load == load.name && cell.cold_start_secs == *secs);
        let left: Vec<String> =
            config.cold_start_secs.iter().filter(|secs| !played(secs)).map(|secs| format!("{secs}")).collect();
        if !left.is_empty() {
            say(&format!(
                "note: {} is left out at {} s, which is less than half a step of it",
                load.name,
                left.join(", ")
            ));
        }
    }
    let rows = if every_rule { worth_rules(&cells) } else { worth_cells(&cells) };
    rows.print(output)
}

fn hours(value: f64) -> Cell {
    Cell::Number(value, 1)
}

fn worth_rules(cells: &[WorthCell]) -> Listing {
    let mut rows = Listing::new(&[
        "load",
        "cold_start_s",
        "lease_s",
        "recall_s",
        "target",
        "rule",
        "hours_a_day",
        "attained",
        "reached",
        "hindsight_hours_a_day",
        "least_hours_a_day",
    ]);
    for cell in cells {
        for row in cell.rows() {
            rows.push(vec![
                cell.load.as_str().into(),
                Cell::Number(cell.cold_start_secs, 0),
                Cell::Number(cell.lease_secs, 0),
                Cell::Number(cell.recall_secs, 0),
                Cell::Number(cell.target, 4),
                row.rule.into(),
                hours(row.hours),
                Cell::Number(row.attained, 4),
                if row.reached { "yes" } else { "no" }.into(),
                Cell::option(row.hindsight_hours, hours),
                hours(cell.least_hours()),
            ]);
        }
    }
    rows
}

fn worth_cells(cells: &[WorthCell]) -> Listing {
    let mut rows = Listing::new(&[
        "load",
        "cold_start_s",
        "lease_s",
        "recall_s",
        "target",
        "least_hours_a_day",
        "decide_hours_a_day",
        "attained",
        "decide_hindsight",
        "rival",
        "rival_hindsight",
        "saved",
        "saved_low",
        "saved_high",
    ]);
    for cell in cells {
        let (all, saving) = (cell.rows(), cell.saving());
        let rival = saving.as_ref().and_then(|saving| all.iter().find(|row| row.rule == saving.rival));
        let interval = saving.as_ref().and_then(|saving| saving.interval);
        let share = |value: f64| Cell::Number(value, 3);
        let Some(ours) = all.first() else { continue };
        rows.push(vec![
            cell.load.as_str().into(),
            Cell::Number(cell.cold_start_secs, 0),
            Cell::Number(cell.lease_secs, 0),
            Cell::Number(cell.recall_secs, 0),
            Cell::Number(cell.target, 4),
            hours(cell.least_hours()),
            hours(ours.hours),
            Cell::Number(ours.attained, 4),
            Cell::option(ours.hindsight_hours, hours),
            rival.map_or("none reaches it", |row| row.rule).into(),
            Cell::option(rival.and_then(|row| row.hindsight_hours), hours),
            Cell::option(saving.as_ref().map(|saving| saving.saved), share),
            Cell::option(interval.map(|interval| interval.0), share),
            Cell::option(interval.map(|interval| interval.1), share),
        ]);
    }
    rows
}
