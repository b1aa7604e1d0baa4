//! Training a neural forecaster on a load series: one file says which series, how much of it, which
//! net.
//!
//! What comes after `known_share` of the series is never read, so a backtest that begins there
//! tells the truth; of the part before it, the newest `validation_share` picks the weights.

use std::sync::atomic::{AtomicBool, Ordering};

use goodput_agents::bundle::Provenance;
use goodput_agents::bundle::forecaster::{Card, ForecasterBundle};
use goodput_agents::nets::archive::{Archive, ArchiveError, write};
use goodput_datasets::DataError;
use goodput_eval::studies::forecasting::{SeriesConfig, read_series};
use goodput_forecast::Series;
use goodput_forecast::neural::{
    Adam, Architecture, Centre, Checkpoint, Loss, Spec, SpecError, TrainError, Trainer, Training,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::recorder::Recorder;
use crate::run_dir::{RunDir, RunDirError};

/// A forecaster to train: `goodput train FILE` with a `[forecaster]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForecasterExperiment {
    /// Name; runs go to `runs/NAME`.
    pub name: String,
    /// Master seed of the run.
    #[serde(default = "one")]
    pub seed: u64,
    /// Steps between checkpoints.
    #[serde(default = "hundred")]
    pub checkpoint_every: u64,
    /// Load series on which the net is trained.
    pub series: SeriesConfig,
    /// Architecture of the net.
    pub forecaster: Architecture,
    /// Inputs and outputs of the net.
    #[serde(default)]
    pub window: WindowConfig,
    /// Parts of the series that training and validation use.
    #[serde(default)]
    pub data: DataConfig,
    /// How it learns.
    #[serde(default)]
    pub train: Training,
}

fn one() -> u64 {
    1
}

fn hundred() -> u64 {
    100
}

/// Inputs and outputs of a net.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowConfig {
    /// Hours of history that the net reads.
    pub lookback_hours: f64,
    /// Hours forecast at once.
    pub horizon_hours: f64,
    /// Steps in a day; from the step of the series where it is left out.
    pub day_steps: Option<usize>,
    /// Levels of the quantiles, 0.5 among them.
    pub levels: Vec<f64>,
    /// Centre that is subtracted from a window: `last`, `mean` or `series`.
    pub centre: Centre,
    /// Loss that is minimised: `pinball` or `squared`.
    pub loss: Loss,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self {
            lookback_hours: 48.0,
            horizon_hours: 24.0,
            day_steps: None,
            levels: Spec::LEVELS.to_vec(),
            centre: Centre::default(),
            loss: Loss::default(),
        }
    }
}

/// Parts of a series that training and validation use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// Share of the series that is read at all; backtests may begin after it.
    pub known_share: f64,
    /// Newest share of that which picks the weights and is not learnt from; 0 keeps the last
    /// weights.
    pub validation_share: f64,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self { known_share: 0.65, validation_share: 0.15 }
    }
}

/// Reason for which no forecaster is trained.
#[derive(Debug, Error)]
pub enum ForecasterTrainError {
    /// A value of the file cannot work.
    #[error("{key}: {value}; expected {expected}")]
    Value {
        /// The dotted key.
        key: &'static str,
        /// The value found.
        value: String,
        /// Values that are allowed.
        expected: String,
    },
    /// The series cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The net cannot be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
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
    /// How the run was called, for the bundle's provenance.
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

impl ForecasterExperiment {
    /// Checks the values that can be checked without the series.
    ///
    /// # Errors
    /// The first that cannot work, by its key.
    pub fn check(&self) -> Result<(), ForecasterTrainError> {
        let refuse = |key, value: String, expected: &str| {
            Err(ForecasterTrainError::Value { key, value, expected: expected.into() })
        };
        if self.name.is_empty() || self.name.contains(['/', '\\']) {
            return refuse("name", format!("{:?}", self.name), "a name without slashes");
        }
        let hours = [
            ("window.lookback_hours", self.window.lookback_hours),
            ("window.horizon_hours", self.window.horizon_hours),
        ];
        if let Some((key, value)) = hours.into_iter().find(|(_, hours)| !(*hours > 0.0 && *hours <= 10_000.0)) {
            return refuse(key, value.to_string(), "a positive number of hours, at most 10000");
        }
        let DataConfig { known_share, validation_share } = self.data;
        if !(known_share > 0.0 && known_share <= 1.0) {
            return refuse("data.known_share", known_share.to_string(), "above 0, at most 1");
        }
        if !(0.0..=0.9).contains(&validation_share) {
            return refuse("data.validation_share", validation_share.to_string(), "0 to 0.9");
        }
        if self.checkpoint_every == 0 {
            return refuse("checkpoint_every", "0".into(), "at least 1");
        }
        Ok(())
    }

    /// The part of the series that is read, and the trainer of a net for it, before its first step.
    ///
    /// # Errors
    /// A series that cannot be read, has no days or is too short; a net that cannot work; a
    /// processor that is not there.
    pub fn prepare(&self) -> Result<(Series, Trainer), ForecasterTrainError> {
        self.check()?;
        let (series, _) = read_series(&self.series)?;
        let Some(day_steps) = self.window.day_steps.or(series.steps_per_day()).filter(|&steps| steps > 0) else {
            let value = format!("a step of {} ms", series.step_millis());
            let expected = "steps of which a whole number is a day, or window.day_steps".into();
            return Err(ForecasterTrainError::Value { key: "window.day_steps", value, expected });
        };
        let steps = |hours: f64| ((hours * day_steps as f64 / 24.0).round() as usize).max(1);
        let spec = Spec {
            architecture: self.forecaster.clone(),
            day_steps,
            lookback: steps(self.window.lookback_hours),
            horizon: steps(self.window.horizon_hours),
            levels: self.window.levels.clone(),
            centre: self.window.centre,
            loss: self.window.loss,
        };
        spec.check().map_err(|error| self.at(&error))?;
        let known = ((series.len() as f64 * self.data.known_share) as usize).clamp(1, series.len().max(1));
        let series = series.slice(0..known.min(series.len())).unwrap_or(series);
        let validation_from = series.len() - (series.len() as f64 * self.data.validation_share) as usize;
        let trainer = Trainer::new(&spec, &self.train, std::slice::from_ref(&series), validation_from, self.seed)?;
        Ok((series, trainer))
    }

    /// An error of the net under the key of the file.
    fn at(&self, error: &SpecError) -> ForecasterTrainError {
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
        ForecasterTrainError::Value { key, value: self.forecaster.name().into(), expected }
    }
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
    let (series, mut trainer) = experiment.prepare()?;
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
        step_millis: series.step_millis(),
        series: experiment.series.column.clone().unwrap_or_else(|| experiment.series.path.display().to_string()),
        unseen_from_epoch_millis: series.end_epoch_millis(),
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

fn write_checkpoint(dir: &RunDir, config_sha256: &str, checkpoint: Checkpoint) -> Result<(), RunDirError> {
    let Checkpoint { weights, adam, best } = checkpoint;
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

fn read_checkpoint(dir: &RunDir, config_sha256: &str) -> Result<Checkpoint, ForecasterTrainError> {
    let bytes = dir.read(&format!("checkpoints/{FILE}"))?;
    let archive = Archive::read(&bytes)?;
    let header: Header = archive.header(HEADER)?;
    if header.config_sha256 != config_sha256 {
        return Err(ForecasterTrainError::OtherConfig);
    }
    let read = |name: &str| archive.tensor(name, &[header.length]);
    let best = header.best.map(|loss| Ok::<_, ArchiveError>((loss, read("best")?))).transpose()?;
    let adam = Adam { step: header.step, first: read("adam.first")?, second: read("adam.second")? };
    Ok(Checkpoint { weights: read("weights")?, adam, best })
}
