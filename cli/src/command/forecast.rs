//! `goodput forecast`: load series in, forecasts, comparisons and lending out.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use goodput_agents::bundle::forecaster;
use goodput_agents::compose::serving::SavedForecaster;
use goodput_configs::forecast::ForecastConfig;
use goodput_console::{Cell, CommandError, Listing, OutputFormat};
use goodput_datasets::DataError;
use goodput_eval::report::origin::ResultOrigin;
use goodput_eval::studies::forecasting::{ScoreRow, Study, StudyError, StudyOrigin, page};
use goodput_eval::studies::worth::WorthCell;
use goodput_forecast::{Fit, ForecasterSnapshot, Horizon, Predict, check_levels};

use crate::args::{ForecastCommand, StudyFile};
use crate::command::config::resolved;
use crate::command::results;
use crate::config;

/// Runs `goodput forecast` and gives its exit code.
pub fn run(verb: &ForecastCommand) -> Result<ExitCode, CommandError> {
    match verb {
        ForecastCommand::Fit { study, to } => fit(&open(study)?, to)?,
        ForecastCommand::Predict { snapshot, study, sets, hours, levels, output } => {
            let ahead = known(snapshot, study.as_deref(), sets)?;
            predict(&ahead, *hours, levels, *output)?;
        }
        ForecastCommand::Backtest { study: file, report, output } => {
            let study = open(file)?;
            let reports = vec![("default".to_string(), study.run().map_err(fault)?)];
            finish(file, &study, &reports, report.as_deref(), *output)?;
        }
        ForecastCommand::Worth { config, sets, rules, output } => worth(config, sets, *rules, *output)?,
        ForecastCommand::Compare { study: file, report, output } => {
            let study = open(file)?;
            let reports = study.compare().map_err(fault)?;
            finish(file, &study, &reports, report.as_deref(), *output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(study: &StudyFile) -> Result<ForecastConfig, CommandError> {
    let mut config = config::read_forecast(&study.config, &study.sets)?;
    config.model.bundles.extend_from_slice(&study.bundles);
    Ok(config)
}

/// Opens a study with its series.
fn open(file: &StudyFile) -> Result<Study, CommandError> {
    Study::new(&read(file)?).map_err(|error| match error {
        StudyError::Data(absent @ DataError::Read { .. }) => {
            config::at_key(&file.config, &file.sets, "series.path", &absent.to_string()).with_help(
                "public series do not ship with goodput: the comment in the file says which one it is; \
                 --set series.path=FILE names yours",
            )
        }
        error => fault(error),
    })
}

fn fault(error: StudyError) -> CommandError {
    match error {
        StudyError::Data(error) => {
            let help = error.remedy();
            let fault = CommandError::input(error);
            if help.is_empty() { fault } else { fault.with_help(help) }
        }
        error @ StudyError::Backtest(_) => CommandError::input(error)
            .with_help("a shorter backtest.horizon_hours or a smaller backtest.initial_share needs fewer steps"),
        other => CommandError::input(other),
    }
}

type Reports = [(String, goodput_forecast::BacktestReport)];

fn finish(
    file: &StudyFile,
    study: &Study,
    reports: &Reports,
    report: Option<&Path>,
    output: OutputFormat,
) -> Result<(), CommandError> {
    if let Some(path) = report {
        let lending = study.lend().map_err(fault)?;
        let stem = file.config.file_stem();
        let title = stem.map_or_else(|| "forecast".into(), |name| name.to_string_lossy().into_owned());
        let ResultOrigin { command, version, commit, .. } = results::origin(&results::own_argv());
        let commit = commit.map(|commit| format!(", commit {commit}")).unwrap_or_default();
        let (program, config) = (format!("goodput {version}{commit}"), resolved(&read(file)?)?);
        let origin = StudyOrigin { command: &command, program: &program, config: &config };
        write(path, page(&title, study, reports, &lending, origin).as_bytes())?;
    }
    let mut rows = Listing::new(&[
        "model",
        "hours",
        "mase",
        "wape",
        "crps",
        "coverage_90",
        "mae_difference_low",
        "mae_difference_high",
    ]);
    for ScoreRow { model, hours, mase, wape, crps, coverage, difference } in study.scores(reports) {
        let number = |value: Option<f64>| Cell::option(value, |value| Cell::Number(value, 4));
        rows.push(vec![
            model.into(),
            Cell::Number(hours, 2),
            number(mase),
            number(wape),
            number(crps),
            number(coverage),
            number(difference.map(|interval| interval.0)),
            number(difference.map(|interval| interval.1)),
        ]);
    }
    rows.print(output)
}

/// Rules of autoscaling on the loads of a file: a row a cell, or a row a rule.
fn worth(path: &Path, sets: &[String], every_rule: bool, output: OutputFormat) -> Result<(), CommandError> {
    let config = config::read_worth(path, sets)?;
    let cells = goodput_eval::studies::worth::worth(&config).map_err(|error| match error {
        StudyError::Data(absent @ DataError::Read { .. }) => config::at_key(path, sets, "folder", &absent.to_string())
            .with_help("public series do not ship with goodput: --set folder=FOLDER says where they are"),
        error => fault(error),
    })?;
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

fn fit(study: &Study, to: &Path) -> Result<(), CommandError> {
    let snapshot = ForecasterSnapshot::fit(&study.model, &study.series)
        .map_err(|error| CommandError::input(format!("fit: {error}")))?;
    let bytes = serde_json::to_vec(&snapshot).map_err(CommandError::failed)?;
    write(to, &bytes)
}

/// A forecaster that knows its series, and the time of the next step.
struct HoursAhead {
    next_epoch_millis: i64,
    step_millis: i64,
    day_steps: usize,
    forecaster: Box<dyn Predict>,
}

/// A snapshot as it is; a bundle on the series of a study, with the quantiles of its own heads.
fn known(path: &Path, study: Option<&Path>, sets: &[String]) -> Result<HoursAhead, CommandError> {
    let net = match forecaster::open(path).map_err(CommandError::input)? {
        SavedForecaster::Trained { net, .. } => net,
        SavedForecaster::Fitted(snapshot) => {
            let ForecasterSnapshot { next_epoch_millis, step_millis, day_steps, forecaster } = *snapshot;
            return Ok(HoursAhead { next_epoch_millis, step_millis, day_steps, forecaster: Box::new(forecaster) });
        }
    };
    let Some(study) = study else {
        let message = format!("{}: a bundle has no series to continue", path.display());
        return Err(CommandError::input(message).with_help("name one: --study configs/forecast/servegen.toml"));
    };
    let study = StudyFile { config: study.to_path_buf(), sets: sets.to_vec(), bundles: vec![path.to_path_buf()] };
    let study = open(&study)?;
    let forecaster = net.fit(&study.series).map_err(|error| CommandError::input(format!("fit: {error}")))?;
    Ok(HoursAhead {
        next_epoch_millis: study.series.end_epoch_millis(),
        step_millis: study.series.step_millis(),
        day_steps: study.day_steps,
        forecaster: Box::new(forecaster),
    })
}

fn predict(snapshot: &HoursAhead, hours: f64, levels: &[f64], output: OutputFormat) -> Result<(), CommandError> {
    check_levels(levels).map_err(|error| {
        CommandError::input(format!("--levels: {error}")).with_help("for example --levels 0.1,0.5,0.9")
    })?;
    let steps = ((hours * snapshot.day_steps as f64 / 24.0).round() as usize).max(1);
    let forecast = snapshot.forecaster.predict(Horizon::steps(steps), levels);
    let mut rows = Listing::new(&["epoch_millis", "level", "load"]);
    for (step, row) in forecast.quantiles().rows().into_iter().enumerate() {
        let time = snapshot.next_epoch_millis + step as i64 * snapshot.step_millis;
        for (&level, &load) in levels.iter().zip(row) {
            rows.push(vec![Cell::Whole(time), Cell::Number(level, 4), Cell::Number(load, 6)]);
        }
    }
    rows.print(output)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    fs::write(path, bytes).map_err(|error| CommandError::failed(format!("cannot write {}: {error}", path.display())))
}
