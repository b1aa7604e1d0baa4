//! `goodput forecast fit` and `predict`: fitted forecasters as files, and what they expect.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_agents::bundle::forecaster;
use goodput_agents::compose::serving::SavedForecaster;
use goodput_agents::zoo;
use goodput_console::{Cell, CommandError, Listing, OutputFormat, say};
use goodput_eval::studies::forecasting::Study;
use goodput_forecast::covariates::Covariates;
use goodput_forecast::{Fit, ForecasterSnapshot, Horizon, Predict, check_levels};

use super::{open, write};
use crate::args::StudyFile;

/// Fits a forecaster to every series: into one file, or for a panel into a folder with a file for each.
pub fn fit(studies: &[Study], to: &Path) -> Result<(), CommandError> {
    let is_panel = studies.iter().any(|study| study.id.is_some());
    if is_panel {
        let failed = |error| CommandError::failed(format!("cannot write {}: {error}", to.display()));
        // Every name is checked before the first file is written, and files of an earlier panel do not mix with these.
        studies.iter().filter_map(|study| study.id.as_deref()).try_for_each(|id| file_name(id).map(|_| ()))?;
        fs::create_dir_all(to).map_err(failed)?;
        if fs::read_dir(to).map_err(failed)?.next().is_some() {
            let message = format!("{}: the folder is not empty", to.display());
            return Err(CommandError::input(message).with_help("name a new folder: `predict` reads every file of it"));
        }
    }
    for study in studies {
        let snapshot = study.fitted().map_err(|error| CommandError::input(format!("fit: {error}")))?;
        if snapshot.regression.as_ref().is_some_and(|regression| regression.effects.are_none()) {
            let of = study.id.as_ref().map(|id| format!(" of {id}")).unwrap_or_default();
            say(&format!("The covariates{of} predict nothing of the load, so they have no effect."));
        }
        let bytes = serde_json::to_vec(&snapshot).map_err(CommandError::failed)?;
        match &study.id {
            Some(id) => write(&to.join(format!("{}.json", file_name(id)?)), &bytes)?,
            None => write(to, &bytes)?,
        }
    }
    Ok(())
}

/// The name of a series as the name of a file.
fn file_name(id: &str) -> Result<&str, CommandError> {
    if id.is_empty() || id.starts_with('.') || id.contains(['/', '\\']) {
        let message = format!("series `{id}`: its name cannot be the name of a file");
        return Err(CommandError::input(message).with_help("rename the series, or leave it out with series.ids"));
    }
    Ok(id)
}

/// A forecaster that knows its series, and the time of the next step.
pub struct HoursAhead {
    /// Name of the series, of a panel.
    id: Option<String>,
    next_epoch_millis: i64,
    step_millis: i64,
    day_steps: usize,
    forecaster: Box<dyn Predict>,
    covariates: Option<Covariates>,
}

/// A snapshot as it is, every snapshot of a folder, or a bundle on the series of a study, with the quantiles of its own
/// heads.
pub fn known(path: &Path, study: Option<&Path>, sets: &[String]) -> Result<Vec<HoursAhead>, CommandError> {
    if path.is_dir() {
        return of_folder(path);
    }
    if let SavedForecaster::Fitted(snapshot) = zoo::open_saved(path).map_err(CommandError::input)? {
        return Ok(vec![HoursAhead::of(None, *snapshot)]);
    }
    let Some(study) = study else {
        let message = format!("{}: a bundle has no series to continue", path.display());
        return Err(
            CommandError::input(message).with_help("name one with --study; `goodput init forecast/sample` writes one")
        );
    };
    let study = StudyFile { config: study.to_path_buf(), sets: sets.to_vec(), bundles: vec![path.to_path_buf()] };
    open(&study)?.into_iter().map(HoursAhead::of_bundle).collect()
}

fn of_folder(folder: &Path) -> Result<Vec<HoursAhead>, CommandError> {
    let unread = |error| CommandError::input(format!("cannot read {}: {error}", folder.display()));
    let entries = fs::read_dir(folder).map_err(unread)?.collect::<Result<Vec<_>, _>>().map_err(unread)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let mut ahead = Vec::new();
    for path in files {
        let SavedForecaster::Fitted(snapshot) = forecaster::open(&path).map_err(CommandError::input)? else {
            let message = format!("{}: a bundle, where fitted forecasters are expected", path.display());
            return Err(CommandError::input(message));
        };
        let id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        ahead.push(HoursAhead::of(id, *snapshot));
    }
    if ahead.is_empty() {
        let message = format!("{}: no fitted forecaster", folder.display());
        return Err(CommandError::input(message).with_help("`goodput forecast fit PANEL --to FOLDER` writes them"));
    }
    Ok(ahead)
}

impl HoursAhead {
    fn of(id: Option<String>, snapshot: ForecasterSnapshot) -> Self {
        let ForecasterSnapshot { next_epoch_millis, step_millis, day_steps, .. } = snapshot;
        let covariates = snapshot.regression.as_ref().map(|regression| regression.covariates.clone());
        Self { id, next_epoch_millis, step_millis, day_steps, covariates, forecaster: snapshot.into_forecaster() }
    }

    /// The bundle that stands last in a study, after those of its file, on the series of the study.
    fn of_bundle(study: Study) -> Result<Self, CommandError> {
        let bundle = study.trained.last().ok_or_else(|| CommandError::failed("the study has no bundle"))?;
        let fitted = bundle.net.fit(&study.series).map_err(|error| CommandError::input(format!("fit: {error}")))?;
        Ok(Self {
            next_epoch_millis: study.series.end_epoch_millis(),
            step_millis: study.series.step_millis(),
            day_steps: study.day_steps,
            id: study.id,
            forecaster: Box::new(fitted),
            covariates: None,
        })
    }
}

pub fn predict(all: &[HoursAhead], hours: f64, levels: &[f64], output: OutputFormat) -> Result<(), CommandError> {
    const COLUMNS: [&str; 4] = ["unique_id", "epoch_millis", "level", "load"];
    check_levels(levels).map_err(|error| {
        CommandError::input(format!("--levels: {error}")).with_help("for example --levels 0.1,0.5,0.9")
    })?;
    let is_panel = all.iter().any(|ahead| ahead.id.is_some());
    let mut rows = Listing::new(if is_panel { &COLUMNS[..] } else { &COLUMNS[1..] });
    for ahead in all {
        let steps = ((hours * ahead.day_steps as f64 / 24.0).round() as usize).max(1);
        if let Some(covariates) = &ahead.covariates {
            covariates.check(ahead.next_epoch_millis, ahead.step_millis, steps).map_err(|error| {
                CommandError::input(format!("--hours {hours}: {error}"))
                    .with_help("add rows to the table of covariates and fit again, or predict fewer hours")
            })?;
        }
        let forecast = ahead.forecaster.predict(Horizon::steps(steps), levels);
        for (step, row) in forecast.quantiles().rows().into_iter().enumerate() {
            let time = ahead.next_epoch_millis + step as i64 * ahead.step_millis;
            for (&level, &load) in levels.iter().zip(row) {
                let mut cells: Vec<Cell> = ahead.id.iter().map(|id| id.as_str().into()).collect();
                cells.extend([Cell::Whole(time), Cell::Number(level, 4), Cell::Number(load, 6)]);
                rows.push(cells);
            }
        }
    }
    rows.print(output)
}
