//! Training a neural forecaster: one file says which series, how much of it, which net. A net of all series is trained
//! on many, real and made up.
//!
//! What comes after `known_share` of the series is never read, so a backtest that begins there
//! tells the truth; of the part before it, the newest `validation_share` picks the weights.

use std::sync::atomic::{AtomicBool, Ordering};

use goodput_agents::bundle::Provenance;
use goodput_agents::bundle::forecaster::{Card, ForecasterBundle};
use goodput_agents::nets::archive::{Archive, ArchiveError, write};
use goodput_configs::forecast::{DataConfig, ForecasterExperiment, SeriesConfig, SyntheticLoads};
use goodput_configs::scenario::SetupError;
use goodput_datasets::DataError;
use goodput_datasets::import::panel::{PanelSeries, is_named};
use goodput_eval::studies::forecasting::{read_panel, read_series, series_name};
use goodput_forecast::Series;
use goodput_forecast::calendar::MILLIS_PER_DAY;
use goodput_forecast::neural::{AdamW, NetCheckpoint, NetTrainError, Spec, SpecError, Trainer, synthetic_load};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::recorder::Recorder;
use crate::run_dir::{RunDir, RunDirError};

/// Reason for which no forecaster is trained.
#[derive(Debug, Error)]
pub enum ForecasterTrainError {
    /// A value of the file cannot work.
    #[error(transparent)]
    Setting(#[from] SetupError),
    /// The series cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The net cannot be trained.
    #[error(transparent)]
    Train(#[from] NetTrainError),
    /// The checkpoint cannot be read.
    #[error("the checkpoint cannot be read: {0}; delete checkpoints/{FILE} to begin again")]
    Checkpoint(#[from] ArchiveError),
    /// The configuration has changed.
    #[error("the checkpoint was made under another configuration; a run continues only under its own")]
    OtherConfig,
}

/// State of the training of a forecaster, as passed to the caller after each validation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForecasterProgress {
    /// Number of completed steps.
    pub step: u64,
    /// Of how many.
    pub steps: u64,
    /// Loss on the windows kept for validation.
    pub validation_loss: Option<f64>,
}

/// Callbacks that the caller of the training of a forecaster provides.
pub struct ForecasterHooks<'a> {
    /// Set from outside to stop after the current step; the run can be resumed.
    pub stop: &'a AtomicBool,
    /// Called now and then.
    pub progress: &'a dyn Fn(ForecasterProgress),
    /// Command line of the run, for the bundle's provenance.
    pub argv: Vec<String>,
}

/// The checkpoint's file.
const FILE: &str = "forecaster.safetensors";
/// Key of its header.
const HEADER: &str = "goodput.forecaster.training";

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    config_sha256: String,
    step: u64,
    length: usize,
    best: Option<f64>,
}

/// Series that a net is trained on.
#[derive(Debug)]
struct Material {
    /// Series, each with the step from which on it picks the weights and is not learnt from.
    channels: Vec<(Series, usize)>,
    /// Names of the real ones.
    names: Vec<String>,
    step_millis: i64,
    day_steps: usize,
    /// First step that no forecaster of it has seen, milliseconds since 1970; 0 of a net of all series, of which the
    /// names tell what it has seen.
    unseen_from_epoch_millis: i64,
}

impl Material {
    fn read(experiment: &ForecasterExperiment) -> Result<Self, ForecasterTrainError> {
        experiment.check()?;
        match &experiment.series {
            Some(series) => Self::of_one(experiment, series),
            None => Self::of_many(experiment),
        }
    }

    fn of_one(experiment: &ForecasterExperiment, config: &SeriesConfig) -> Result<Self, ForecasterTrainError> {
        let series = read_series(config)?;
        let step_millis = series.step_millis();
        let Some(day_steps) = experiment.window.day_steps.or(series.steps_per_day()).filter(|&steps| steps > 0) else {
            let value = format!("a step of {step_millis} ms");
            let expected = "steps of which a whole number is a day, or window.day_steps".into();
            return Err(SetupError::Value { key: "window.day_steps", value, expected }.into());
        };
        let (series, validation_from) = parts(series, &experiment.data);
        let names = vec![config.column.clone().unwrap_or_else(|| config.path.display().to_string())];
        let unseen_from_epoch_millis = series.end_epoch_millis();
        let channels = vec![(series, validation_from)];
        Ok(Self { channels, names, step_millis, day_steps, unseen_from_epoch_millis })
    }

    /// Every series of the sources that is not kept out, and the made-up loads; all in steps of ten minutes.
    fn of_many(experiment: &ForecasterExperiment) -> Result<Self, ForecasterTrainError> {
        let (mut channels, mut names) = (Vec::new(), Vec::new());
        let mut kept_out = vec![false; experiment.keep_out.len()];
        for source in &experiment.sources {
            for PanelSeries { id, series } in read_panel(source)?.series {
                let name = series_name(&source.path, id.as_deref().or(source.column.as_deref()));
                let fits: Vec<bool> = experiment.keep_out.iter().map(|pattern| is_named(pattern, &name)).collect();
                kept_out.iter_mut().zip(&fits).for_each(|(kept_out, fits)| *kept_out |= fits);
                if fits.contains(&true) {
                    continue;
                }
                if series.step_millis() != TEN_MINUTES {
                    let value = format!("{name} with steps of {} ms", series.step_millis());
                    let expected = "steps of ten minutes: step_secs = 600.0".into();
                    return Err(SetupError::Value { key: "sources", value, expected }.into());
                }
                channels.push(parts(series, &experiment.data));
                names.push(name);
            }
        }
        // A pattern with a slip of the pen would let a series in that is kept for a test.
        if let Some(at) = kept_out.iter().position(|kept_out| !kept_out) {
            let expected = "a pattern that fits a series of the sources, as FILE:COLUMN".into();
            return Err(SetupError::Value { key: "keep_out", value: experiment.keep_out[at].clone(), expected }.into());
        }
        if let Some(SyntheticLoads { series, days }) = experiment.synthetic {
            let loads = (0..u64::from(series)).map(|number| synthetic_load(experiment.seed, number, days as usize));
            channels.extend(loads.map(|load| parts(load, &experiment.data)));
        }
        let day_steps = (MILLIS_PER_DAY / TEN_MINUTES) as usize;
        Ok(Self { channels, names, step_millis: TEN_MINUTES, day_steps, unseen_from_epoch_millis: 0 })
    }
}

/// Milliseconds of the step of a net of all series.
const TEN_MINUTES: i64 = 600_000;

/// The part of a series that is read, and the step in it from which on it picks the weights.
fn parts(series: Series, data: &DataConfig) -> (Series, usize) {
    let known = ((series.len() as f64 * data.known_share) as usize).clamp(1, series.len().max(1));
    let series = series.slice(0..known.min(series.len())).unwrap_or(series);
    let validation_from = series.len() - (series.len() as f64 * data.validation_share) as usize;
    (series, validation_from)
}

/// The trainer of the net of a file, before its first step.
///
/// # Errors
/// A series that cannot be read, has no days or is too short; a net that cannot work; a processor that is not there.
pub fn prepare(experiment: &ForecasterExperiment) -> Result<Trainer, ForecasterTrainError> {
    trainer(experiment, &Material::read(experiment)?)
}

fn trainer(experiment: &ForecasterExperiment, material: &Material) -> Result<Trainer, ForecasterTrainError> {
    let day_steps = material.day_steps;
    let steps = |hours: f64| ((hours * day_steps as f64 / 24.0).round() as usize).max(1);
    let spec = Spec {
        architecture: experiment.forecaster.clone(),
        day_steps,
        lookback: steps(experiment.window.lookback_hours),
        horizon: steps(experiment.window.horizon_hours),
        levels: experiment.window.levels.clone(),
        centre: experiment.window.centre,
        loss: experiment.window.loss,
        series_day_steps: None,
    };
    spec.check().map_err(|error| at(experiment, &error))?;
    let channels: Vec<(&Series, usize)> = material.channels.iter().map(|(series, from)| (series, *from)).collect();
    Ok(Trainer::of_many(&spec, &experiment.train, &channels, experiment.seed)?)
}

/// An error of the net under the key of the file.
fn at(experiment: &ForecasterExperiment, error: &SpecError) -> ForecasterTrainError {
    let key = match error {
        SpecError::Setting { key: "lookback", .. } => "window.lookback_hours",
        SpecError::Setting { key: "horizon", .. } => "window.horizon_hours",
        SpecError::Setting { key: "levels", .. } | SpecError::Levels(_) => "window.levels",
        _ => "forecaster",
    };
    let expected = match error {
        SpecError::Setting { key, expected } => format!("`{key}` {expected}"),
        other => other.to_string(),
    };
    SetupError::Value { key, value: experiment.forecaster.name().into(), expected }.into()
}

/// Trains in `dir`, from its checkpoint if there is one. `None` when stopped; a checkpoint is then
/// written.
///
/// # Errors
/// [`ForecasterTrainError`] naming the file, the key or the step.
pub fn train(
    experiment: &ForecasterExperiment,
    dir: &RunDir,
    hooks: &ForecasterHooks<'_>,
) -> Result<Option<ForecasterBundle>, ForecasterTrainError> {
    let material = Material::read(experiment)?;
    let mut trainer = trainer(experiment, &material)?;
    let config_sha256 = dir.config_sha256()?;
    if dir.path(&format!("checkpoints/{FILE}")).exists() {
        trainer.resume(read_checkpoint(dir, &config_sha256)?)?;
    }
    let mut recorder = Recorder::new(dir, "progress", trainer.steps())?;
    let (mut loss, mut losses) = (0.0, 0.0);
    while !trainer.is_done() {
        let rate = trainer.learning_rate();
        loss += trainer.step()?;
        losses += 1.0;
        if trainer.is_due() {
            let validation = trainer.validate();
            let figures = vec![
                ("train/loss", loss / losses),
                ("eval/loss", validation.unwrap_or(f64::NAN)),
                ("train/learning_rate", rate),
            ];
            recorder.record(trainer.steps(), &figures)?;
            let (step, steps) = (trainer.steps(), experiment.train.steps);
            (hooks.progress)(ForecasterProgress { step, steps, validation_loss: validation });
            (loss, losses) = (0.0, 0.0);
        }
        // A signal during the last step must not throw away a net that is finished.
        let stopped = hooks.stop.load(Ordering::Relaxed) && !trainer.is_done();
        if stopped || trainer.is_done() || trainer.steps().is_multiple_of(experiment.checkpoint_every) {
            write_checkpoint(dir, &config_sha256, trainer.checkpoint())?;
        }
        if stopped {
            return Ok(None);
        }
    }
    let net = if experiment.data.validation_share > 0.0 { trainer.best() } else { trainer.net().clone() };
    let card = Card {
        step_millis: material.step_millis,
        series: material.names.join(", "),
        unseen_from_epoch_millis: material.unseen_from_epoch_millis,
        validation_loss: trainer.checkpoint().best.map(|(loss, _)| loss),
        provenance: Provenance {
            argv: hooks.argv.clone(),
            seed: experiment.seed,
            steps: trainer.steps(),
            config_sha256,
        },
    };
    Ok(Some(ForecasterBundle { name: experiment.name.clone(), net, card }))
}

fn write_checkpoint(dir: &RunDir, config_sha256: &str, checkpoint: NetCheckpoint) -> Result<(), RunDirError> {
    let NetCheckpoint { weights, adam, best } = checkpoint;
    let length = weights.len();
    let (loss, best) = best.unzip();
    let header = Header { config_sha256: config_sha256.into(), step: adam.step, length, best: loss };
    let mut tensors = vec![
        ("weights".to_owned(), vec![length], weights.as_slice()),
        ("adam.first".to_owned(), vec![length], &adam.first),
        ("adam.second".to_owned(), vec![length], &adam.second),
    ];
    if let Some(best) = &best {
        tensors.push(("best".to_owned(), vec![length], best));
    }
    dir.write(&format!("checkpoints/{FILE}"), &write(HEADER, &header, &tensors))
}

fn read_checkpoint(dir: &RunDir, config_sha256: &str) -> Result<NetCheckpoint, ForecasterTrainError> {
    let bytes = dir.read(&format!("checkpoints/{FILE}"))?;
    let archive = Archive::read(&bytes)?;
    let header: Header = archive.header(HEADER)?;
    if header.config_sha256 != config_sha256 {
        return Err(ForecasterTrainError::OtherConfig);
    }
    let read = |name: &str| archive.tensor(name, &[header.length]);
    let best = header.best.map(|loss| Ok::<_, ArchiveError>((loss, read("best")?))).transpose()?;
    let adam = AdamW { step: header.step, first: read("adam.first")?, second: read("adam.second")? };
    Ok(NetCheckpoint { weights: read("weights")?, adam, best })
}
