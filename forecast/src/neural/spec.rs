//! Specification of a net: its architecture, lookback, horizon and quantile levels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::head::NetLoss;
use super::parameters::{Parameter, ParameterReader};
use super::scale::Centre;
use super::{Dlinear, Global, Lstm, Nhits, PatchTst, global};
use crate::{ForecastError, check_levels};

/// Specification that decides the shape of a net.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Layers of the net.
    pub architecture: Architecture,
    /// Steps in a day: a gap is filled from one day before.
    pub day_steps: usize,
    /// Number of steps that the net sees.
    pub lookback: usize,
    /// Number of steps that are forecast at once; farther steps are forecast from forecasts.
    pub horizon: usize,
    /// Levels of the quantiles, 0.5 among them; others are interpolated.
    pub levels: Vec<f64>,
    /// Centre that the values of a window are relative to.
    pub centre: Centre,
    /// Loss that training minimises.
    pub loss: NetLoss,
    /// Steps in a day of the series, where the net is one of all series and has days of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_day_steps: Option<usize>,
}

/// The layers between a window and its forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// Linear maps of the trend and of the rest.
    Dlinear(Dlinear),
    /// A recurrent net.
    Lstm(Lstm),
    /// Perceptrons at several rates.
    Nhits(Nhits),
    /// A transformer over patches.
    PatchTst(PatchTst),
    /// One net for all load series.
    Global(Global),
}

/// Sizes of the input and of the output of a net.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetShape {
    /// Steps in a day.
    pub day: usize,
    pub lookback: usize,
    pub horizon: usize,
    pub levels: usize,
    /// Index of the level 0.5.
    pub median: usize,
}

impl NetShape {
    /// Numbers that the last layer answers with: all steps of the first level, then of the next.
    pub fn outputs(&self) -> usize {
        self.horizon * self.levels
    }
}

/// Interface of an architecture. Its three passes over the parameters go through them in one order.
pub(super) trait Layers {
    /// Settings that cannot work with this shape: the key and what is expected.
    fn check(&self, shape: &NetShape) -> Result<(), (&'static str, String)>;
    /// All parameters, in order.
    fn parameters(&self, shape: &NetShape) -> Vec<Parameter>;
    /// Features of a window that the layers see: the window itself, its parts, or its patches.
    fn features(&self, _: &NetShape, window: &[f32]) -> Vec<f32> {
        window.to_vec()
    }
    /// From features to raw outputs.
    fn forward(&self, shape: &NetShape, weights: &mut ParameterReader<'_>, features: &[f32]) -> Vec<f32>;
    /// Raw outputs for a batch, in burn.
    #[cfg(feature = "train")]
    fn graph(&self, shape: &NetShape, graph: &mut super::graph::Graph<'_>) -> burn::tensor::Tensor<2>;
}

/// Settings from which no net can be made.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A length that has to be at least 1, or a setting that does not fit the others.
    #[error("`{key}`: expected {expected}")]
    Setting {
        /// Key of the setting.
        key: &'static str,
        /// Value that would be accepted.
        expected: String,
    },
    /// Levels that are no quantile levels.
    #[error("`levels`: {0}")]
    Levels(#[from] ForecastError),
}

/// Most steps of a day: one a second.
const MOST_DAY_STEPS: usize = 86_400;
/// Most numbers a net may have: 256 MiB of weights, far beyond what a load series can teach.
const LARGEST: usize = 1 << 26;

impl Architecture {
    pub(super) fn layers(&self) -> &dyn Layers {
        match self {
            Architecture::Dlinear(layers) => layers,
            Architecture::Lstm(layers) => layers,
            Architecture::Nhits(layers) => layers,
            Architecture::PatchTst(layers) => layers,
            Architecture::Global(layers) => layers,
        }
    }

    /// Name of the architecture in files and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Architecture::Dlinear(_) => "dlinear",
            Architecture::Lstm(_) => "lstm",
            Architecture::Nhits(_) => "nhits",
            Architecture::PatchTst(_) => "patchtst",
            Architecture::Global(_) => "global",
        }
    }
}

impl Spec {
    /// Levels of the quantile heads unless others are asked for.
    pub const LEVELS: [f64; 7] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99];

    /// A net that sees two days of `day_steps`, or a week of a net of all series, and forecasts one day, with the usual
    /// levels and the pinball loss.
    pub fn daily(architecture: Architecture, day_steps: usize) -> Self {
        let (days, centre) = match &architecture {
            Architecture::Global(_) => (global::DAYS, Centre::Own),
            _ => (2, Centre::Last),
        };
        Self {
            architecture,
            day_steps,
            lookback: days * day_steps,
            horizon: day_steps,
            levels: Self::LEVELS.to_vec(),
            centre,
            loss: NetLoss::Pinball,
            series_day_steps: None,
        }
    }

    /// Checks that a net can be made.
    ///
    /// # Errors
    /// The first setting that does not work, by its key.
    pub fn check(&self) -> Result<(), SpecError> {
        let setting = |key, expected: &str| SpecError::Setting { key, expected: expected.into() };
        if self.lookback < 2 {
            return Err(setting("lookback", "at least 2 steps"));
        }
        if self.horizon == 0 {
            return Err(setting("horizon", "at least 1 step"));
        }
        check_levels(&self.levels)?;
        if !self.levels.contains(&0.5) {
            return Err(ForecastError::NoMedian.into());
        }
        if self.loss == NetLoss::Squared && self.levels.len() > 1 {
            return Err(setting("levels", "only 0.5 with the squared loss, which knows no quantiles"));
        }
        if self.lookback.saturating_mul(self.horizon).saturating_mul(self.levels.len()) > LARGEST {
            return Err(setting("lookback", "fewer steps, or a shorter horizon"));
        }
        if self.series_day_steps.is_some_and(|steps| steps == 0 || steps > MOST_DAY_STEPS || !self.is_global()) {
            return Err(setting("series_day_steps", "1 to 86400, of a net of all series"));
        }
        let shape = self.shape();
        self.architecture.layers().check(&shape).map_err(|(key, expected)| SpecError::Setting { key, expected })?;
        if self.parameters().iter().map(Parameter::len).sum::<usize>() > LARGEST {
            return Err(setting("architecture", "fewer than 67 million parameters"));
        }
        Ok(())
    }

    pub(super) fn shape(&self) -> NetShape {
        let (day, levels, median) = (self.day_steps, self.levels.len(), self.median());
        NetShape { day, lookback: self.lookback, horizon: self.horizon, levels, median }
    }

    /// Whether the net is one of all series, and not of the one that it was trained on.
    pub fn is_global(&self) -> bool {
        matches!(self.architecture, Architecture::Global(_))
    }

    pub(super) fn parameters(&self) -> Vec<Parameter> {
        self.architecture.layers().parameters(&self.shape())
    }

    /// The level that is the point forecast.
    pub(super) fn median(&self) -> usize {
        self.levels.iter().position(|&level| level == 0.5).unwrap_or(0)
    }
}

/// An error unless `value` is within `least..=most`.
pub(super) fn within(key: &'static str, value: usize, least: usize, most: usize) -> Result<(), (&'static str, String)> {
    if (least..=most).contains(&value) { Ok(()) } else { Err((key, format!("{least} to {most}, not {value}"))) }
}
