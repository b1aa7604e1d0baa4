//! Forecasters to train: which series, how much of it, which net.

use goodput_forecast::neural::{Architecture, Centre, NetLoss, Spec, Training};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SeriesConfig;
use crate::error::CheckError;
use crate::kind::Kind;
use crate::reader::ConfigFile;
use crate::scenario::SetupError;

/// A forecaster to train: `goodput train FILE` with a `[forecaster]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Load series on which the net is trained, unless it is one of all series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesConfig>,
    /// Files of series on which a net of all series is trained, every series of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SeriesConfig>,
    /// Series of `sources` that are kept out of the training, by name: that of the file without its ending, a colon,
    /// and the name of the series in it. A name that ends in `*` is every name that begins so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_out: Vec<String>,
    /// Made-up loads on which a net of all series is trained beside the real ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<SyntheticLoads>,
    /// Architecture of the net.
    pub forecaster: Architecture,
    /// Inputs and outputs of the net.
    #[serde(default)]
    pub window: WindowConfig,
    /// Parts of the series that training and validation use.
    #[serde(default)]
    pub data: DataConfig,
    /// Course of the training.
    #[serde(default)]
    pub train: Training,
}

fn one() -> u64 {
    1
}

fn hundred() -> u64 {
    100
}

/// Made-up loads: level, shape of the day and of the week, noise that lasts, bursts and jumps, all drawn by the seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticLoads {
    /// Number of loads.
    pub series: u32,
    /// Days of each, in steps of ten minutes.
    pub days: u32,
}

/// Inputs and outputs of a net.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Centre that is subtracted from a window: `last`, `mean`, `series`, or `own` for a net of all series.
    pub centre: Centre,
    /// Loss that is minimised: `pinball` or `squared`.
    pub loss: NetLoss,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self {
            lookback_hours: 48.0,
            horizon_hours: 24.0,
            day_steps: None,
            levels: Spec::LEVELS.to_vec(),
            centre: Centre::default(),
            loss: NetLoss::default(),
        }
    }
}

/// Parts of a series that training and validation use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl ForecasterExperiment {
    /// Checks the values that can be checked without the series.
    ///
    /// # Errors
    /// The first that cannot work, by its key.
    pub fn check(&self) -> Result<(), SetupError> {
        let refuse =
            |key, value: String, expected: &str| Err(SetupError::Value { key, value, expected: expected.into() });
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
        let is_global = matches!(self.forecaster, Architecture::Global(_));
        match (&self.series, is_global) {
            (None, false) => return refuse("series", "nothing".into(), "a series: series.path names its file"),
            (Some(_), true) => {
                return refuse(
                    "series",
                    "a series".into(),
                    "none: a net of all series takes [[sources]] and [synthetic]",
                );
            }
            _ => {}
        }
        let many = !self.sources.is_empty() || self.synthetic.is_some();
        if many != is_global {
            let expected =
                if is_global { "files or [synthetic] loads" } else { "none: only [forecaster.global] takes many" };
            return refuse("sources", self.sources.len().to_string(), expected);
        }
        if !self.keep_out.is_empty() && self.sources.is_empty() {
            return refuse("keep_out", format!("{:?}", self.keep_out), "none without [[sources]]");
        }
        if let (Some(steps), true) = (self.window.day_steps, is_global) {
            return refuse("window.day_steps", steps.to_string(), "none: a net of all series has steps of ten minutes");
        }
        if let Some(SyntheticLoads { series, days }) = &self.synthetic {
            if !(1..=100_000).contains(series) {
                return refuse("synthetic.series", series.to_string(), "1 to 100000");
            }
            if !(10..=366).contains(days) {
                return refuse("synthetic.days", days.to_string(), "10 to 366");
            }
        }
        if self.checkpoint_every == 0 {
            return refuse("checkpoint_every", "0".into(), "at least 1");
        }
        Ok(())
    }
}

impl ConfigFile for ForecasterExperiment {
    const KIND: Kind = Kind::ForecasterTraining;

    fn check(&self) -> Result<(), CheckError> {
        Ok(Self::check(self)?)
    }
}
