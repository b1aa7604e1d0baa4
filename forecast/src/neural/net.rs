//! Trained nets: their weights, and the forward pass in plain Rust.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::head::{self, HeadKind};
use super::parameters::{Parameter, ParameterReader};
use super::rate::resampled;
use super::scale::Overall;
use super::spec::{Spec, SpecError};

/// Net with its weights, as a bundle stores it. The serde form is complete, and reading it back
/// checks it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredNet", into = "StoredNet")]
pub struct NeuralNet {
    spec: Spec,
    parameters: Vec<Parameter>,
    overall: Overall,
    weights: Vec<f32>,
}

/// Unchecked serde form of a net.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredNet {
    spec: Spec,
    head: HeadKind,
    overall: Overall,
    weights: Vec<f32>,
}

/// Reasons for which parts make no net.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum NetError {
    /// The spec cannot work.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Too few or too many weights.
    #[error("{found} weights for a net that has {expected}")]
    Length {
        /// Number of weights that the net has.
        expected: usize,
        /// Number of weights that were given.
        found: usize,
    },
    /// A NaN or an infinity.
    #[error("weight {index} of `{name}` is not finite")]
    NotFinite {
        /// Name of the matrix.
        name: String,
        /// Position in the matrix.
        index: usize,
    },
    /// The spread of the series trained on is a positive number.
    #[error("a series of mean {mean} and spread {spread}")]
    Scale {
        /// Mean that was given.
        mean: f64,
        /// Spread that was given.
        spread: f64,
    },
}

impl NeuralNet {
    /// Net from its parts; `mean` and `spread` are the figures of the training series.
    ///
    /// # Errors
    /// A spec that cannot work, weights of another number, or a number that is not finite.
    pub fn from_parts(spec: Spec, mean: f64, spread: f64, weights: Vec<f32>) -> Result<Self, NetError> {
        spec.check()?;
        if !(mean.is_finite() && spread.is_finite() && spread > 0.0) {
            return Err(NetError::Scale { mean, spread });
        }
        let parameters = spec.parameters();
        let expected = parameters.iter().map(Parameter::len).sum();
        if weights.len() != expected {
            return Err(NetError::Length { expected, found: weights.len() });
        }
        let net = Self { spec, parameters, overall: Overall { mean, spread }, weights };
        for (name, _, values) in net.tensors() {
            if let Some(index) = values.iter().position(|value| !value.is_finite()) {
                return Err(NetError::NotFinite { name: name.into(), index });
            }
        }
        Ok(net)
    }

    /// Names and shapes `[rows, columns]` of all matrices, in the order of the flat vector.
    ///
    /// # Errors
    /// A spec that cannot work.
    pub fn shapes(spec: &Spec) -> Result<Vec<(String, [usize; 2])>, SpecError> {
        spec.check()?;
        Ok(spec
            .parameters()
            .into_iter()
            .map(|parameter| (parameter.name, [parameter.rows, parameter.columns]))
            .collect())
    }

    /// Specification of the net.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Mean and spread of the series trained on.
    pub fn scale(&self) -> (f64, f64) {
        (self.overall.mean, self.overall.spread)
    }

    /// Whether the net can be asked about a series with these values: in the same units as the one
    /// trained on, or, where windows have units of their own, not so much smaller that all of them
    /// would look constant.
    pub fn suits(&self, values: impl Iterator<Item = f64> + Clone) -> bool {
        self.overall.covers(self.spec.centre, &Overall::of(values))
    }

    /// All weights, in the order of the flat vector.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The matrices: name, shape `[rows, columns]`, numbers row by row.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, [usize; 2], &[f32])> {
        let mut rest = self.weights.as_slice();
        self.parameters.iter().map(move |parameter| {
            let (values, after) = rest.split_at(parameter.len());
            rest = after;
            (parameter.name.as_str(), [parameter.rows, parameter.columns], values)
        })
    }

    /// The net for a series with `day_steps` steps in a day: only a net of all series is one for other steps than
    /// those trained on.
    ///
    /// # Errors
    /// No steps at all, or more than one a second; another day than that of a net of one series.
    pub fn for_day(self, day_steps: usize) -> Result<Self, SpecError> {
        let series_day_steps = (day_steps != self.spec.day_steps).then_some(day_steps);
        let spec = Spec { series_day_steps, ..self.spec };
        spec.check()?;
        Ok(Self { spec, ..self })
    }

    /// Steps in a day of the series.
    pub fn day_steps(&self) -> usize {
        self.spec.series_day_steps.unwrap_or(self.spec.day_steps)
    }

    /// Steps of the series that the net looks back.
    pub fn lookback(&self) -> usize {
        self.in_series(self.spec.lookback)
    }

    /// Steps of the series that are forecast at once.
    pub fn horizon(&self) -> usize {
        self.in_series(self.spec.horizon)
    }

    fn in_series(&self, steps: usize) -> usize {
        (steps * self.day_steps() / self.spec.day_steps.max(1)).max(1)
    }

    /// Quantiles of the [`Self::horizon`] values after a window of [`Self::lookback`]: all steps of the first
    /// level, then of the next, in the units of the series.
    ///
    /// # Panics
    /// When the window has another length.
    pub fn quantiles(&self, window: &[f64]) -> Vec<f64> {
        assert_eq!(window.len(), self.lookback(), "a net that looks back {} steps", self.lookback());
        let (own, series) = (self.spec.day_steps, self.day_steps());
        if own == series {
            return self.of_window(window);
        }
        let quantiles = self.of_window(&resampled(window, series, own));
        quantiles.chunks_exact(self.spec.horizon).flat_map(|level| resampled(level, own, series)).collect()
    }

    /// Quantiles in steps of the net.
    fn of_window(&self, window: &[f64]) -> Vec<f64> {
        let units = self.overall.units(self.spec.centre, window);
        let inward: Vec<f32> = window.iter().map(|&value| units.inward(value)).collect();
        let features = self.spec.architecture.layers().features(&self.spec.shape(), &inward);
        self.of_features(&features).into_iter().map(|value| units.outward(value)).collect()
    }

    /// The median of the next `horizon` values.
    ///
    /// # Panics
    /// When the window has another length than [`Self::lookback`].
    pub fn median(&self, window: &[f64]) -> Vec<f64> {
        let start = self.spec.median() * self.horizon();
        self.quantiles(window)[start..start + self.horizon()].to_vec()
    }

    /// Quantiles from the features of a window, in the units of the window.
    pub(super) fn of_features(&self, features: &[f32]) -> Vec<f32> {
        let shape = self.spec.shape();
        let mut weights = ParameterReader::new(&self.parameters, &self.weights);
        let mut raw = self.spec.architecture.layers().forward(&shape, &mut weights, features);
        head::quantiles(&shape, &mut raw);
        raw
    }

    #[cfg(feature = "train")]
    pub(super) fn weights_mut(&mut self) -> &mut Vec<f32> {
        &mut self.weights
    }
}

impl From<NeuralNet> for StoredNet {
    fn from(net: NeuralNet) -> Self {
        Self { spec: net.spec, head: HeadKind::default(), overall: net.overall, weights: net.weights }
    }
}

impl TryFrom<StoredNet> for NeuralNet {
    type Error = NetError;

    fn try_from(record: StoredNet) -> Result<Self, NetError> {
        Self::from_parts(record.spec, record.overall.mean, record.overall.spread, record.weights)
    }
}
