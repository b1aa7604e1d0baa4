//! `goodput forecast backtest` and `compare`: the past of every series of a study, played again.

use std::path::Path;

use goodput_console::{Cell, CommandError, Listing, OutputFormat, say};
use goodput_datasets::store::Table;
use goodput_eval::studies::forecasting::{ScoreRow, Study, StudyError, StudyOrigin, forecasts, mean_rows, page};
use rayon::prelude::*;

use super::{fault, open, read, write};
use crate::args::StudyFile;
use crate::command::config::resolved;
use crate::command::results;

/// Forecasters by name, and what came of each.
type Reports = Vec<(String, goodput_forecast::BacktestReport)>;

/// Plays the past of every series of a file, prints the scores, and writes the page and the table that are asked for.
pub fn run(
    file: &StudyFile,
    play: fn(&Study) -> Result<Reports, StudyError>,
    (page, table): (Option<&Path>, Option<&Path>),
    output: OutputFormat,
) -> Result<(), CommandError> {
    let studies = open(file)?;
    if let Some(second) = studies.get(1).filter(|_| page.is_some()) {
        let message = format!("--report: a page shows one series, and the file has {}", studies.len());
        let name = second.id.as_deref().unwrap_or_default();
        return Err(CommandError::input(message).with_help(format!("name one: --set 'series.ids=[\"{name}\"]'")));
    }
    let of = |study: &Study| {
        play(study).map_err(|error| match (&study.id, error) {
            (Some(id), error) if studies.len() > 1 => StudyError::Of { id: id.clone(), fault: Box::new(error) },
            (_, error) => error,
        })
    };
    let reports = studies.par_iter().map(of).collect::<Result<Vec<_>, _>>().map_err(fault)?;
    if let (Some(path), [study], [reports]) = (page, studies.as_slice(), reports.as_slice()) {
        write_page(file, study, reports, path)?;
    }
    if let Some(path) = table {
        let all: Vec<_> = studies.iter().zip(reports.iter().map(Vec::as_slice)).collect();
        write_forecasts(&forecasts(&all), path)?;
    }
    print_scores(&studies, &reports, output)
}

fn write_page(file: &StudyFile, study: &Study, reports: &Reports, path: &Path) -> Result<(), CommandError> {
    let lending = study.lend().map_err(fault)?;
    let stem = file.config.file_stem();
    let title = stem.map_or_else(|| "Forecasts".into(), |name| format!("Forecasts: {}", name.to_string_lossy()));
    let made = results::origin(&results::own_argv());
    let (program, config) = (made.program(), resolved(&read(file)?)?);
    let origin = StudyOrigin { command: &made.command, program: &program, config: &config };
    write(path, page(&title, study, reports, &lending, origin).as_bytes())
}

/// Writes a table of forecasts, as Parquet or csv by the ending of the name.
fn write_forecasts(table: &Table, path: &Path) -> Result<(), CommandError> {
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    match ending.as_ref().and_then(|ending| ending.to_str()) {
        Some("parquet") => table.write_parquet(path).map_err(CommandError::failed),
        Some("csv") => {
            let mut text = Vec::new();
            table.write_csv(path, &mut text).map_err(CommandError::failed)?;
            write(path, &text)
        }
        _ => Err(CommandError::input(format!("--forecasts: {} ends neither in .parquet nor in .csv", path.display()))),
    }
}

/// A row for each model and distance; of a panel for each series too, with the means below.
fn print_scores(studies: &[Study], reports: &[Reports], output: OutputFormat) -> Result<(), CommandError> {
    const COLUMNS: [&str; 9] = [
        "unique_id",
        "model",
        "hours",
        "mase",
        "wape",
        "crps",
        "coverage_90",
        "mae_difference_low",
        "mae_difference_high",
    ];
    let is_panel = studies.iter().any(|study| study.id.is_some());
    let mut rows = Listing::new(if is_panel { &COLUMNS[..] } else { &COLUMNS[1..] });
    let scores: Vec<Vec<ScoreRow>> =
        studies.iter().zip(reports).map(|(study, reports)| study.scores(reports)).collect();
    let mut add = |id: &str, scores: &[ScoreRow]| {
        for ScoreRow { model, hours, mase, wape, crps, coverage, difference } in scores {
            let number = |value: Option<f64>| Cell::option(value, |value| Cell::Number(value, 4));
            let mut row: Vec<Cell> = if is_panel { vec![id.into()] } else { vec![] };
            row.extend([Cell::from(model.as_str()), Cell::Number(*hours, 2)]);
            row.extend([number(*mase), number(*wape), number(*crps), number(*coverage)]);
            row.extend([number(difference.map(|interval| interval.0)), number(difference.map(|interval| interval.1))]);
            rows.push(row);
        }
    };
    for (study, scores) in studies.iter().zip(&scores) {
        add(study.id.as_deref().unwrap_or_default(), scores);
    }
    if studies.len() > 1 {
        add("mean", &mean_rows(&scores));
    }
    rows.print(output)?;
    if let (OutputFormat::Table | OutputFormat::Wide, Some(study)) = (output, studies.first()) {
        say(&study.about_mase());
    }
    Ok(())
}
