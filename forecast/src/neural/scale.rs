//! Units of a window: the centre and the spread relative to which a net sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Centre that the values of a window are relative to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Centre {
    /// Last value of the window, from which the next values continue.
    #[default]
    Last,
    /// Mean of the window.
    Mean,
    /// No centre of its own: values are relative to the mean and spread of the training series.
    Series,
    /// Last value of the window, in units of the spread of the window alone: what a window looks like does not depend
    /// on the series trained on, so one net can know many.
    Own,
}

/// Mean and spread of the series that a net was trained on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Overall {
    pub mean: f64,
    pub spread: f64,
}

/// Centre and spread of one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Units {
    pub centre: f64,
    pub spread: f64,
}

/// Largest distance of the mean of a series from that trained on, in the larger of their spreads,
/// and the largest ratio of their spreads, where windows have no units of their own.
const FAR: f64 = 4.0;
const TIMES: f64 = 10.0;

/// Smallest spread of a window relative to the series': a constant window is not blown up.
const LEAST: f64 = 1e-2;

/// Smallest spread of a window with units of its own, relative to the mean size of its values.
const LEAST_OF_SIZE: f64 = 0.03;

impl Overall {
    /// Mean and spread of the finite numbers among `values`.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let values = values.filter(|value| value.is_finite());
        let count = values.clone().count().max(1) as f64;
        let mean = values.clone().sum::<f64>() / count;
        let spread = (values.map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        Self { mean, spread: if spread.is_finite() && spread > 0.0 { spread } else { 1.0 } }
    }

    /// Whether a series of this scale looks like what was trained on. Windows in units of their own
    /// do, unless they are all so much smaller that they would be taken for constants.
    pub fn covers(&self, centre: Centre, other: &Self) -> bool {
        match centre {
            Centre::Series => {
                let near = (other.mean - self.mean).abs() <= FAR * self.spread.max(other.spread);
                near && (1.0 / TIMES..=TIMES).contains(&(other.spread / self.spread))
            }
            Centre::Last | Centre::Mean => other.spread >= LEAST * self.spread,
            Centre::Own => true,
        }
    }

    /// Units of the window `known`.
    pub fn units(&self, centre: Centre, window: &[f64]) -> Units {
        if centre == Centre::Series {
            return Units { centre: self.mean, spread: self.spread };
        }
        let own = Self::of(window.iter().copied());
        let last = window.last().copied().unwrap_or(self.mean);
        if centre == Centre::Own {
            let size = window.iter().map(|value| value.abs()).sum::<f64>() / window.len().max(1) as f64;
            let least = LEAST_OF_SIZE * size;
            let spread = if least > 0.0 { own.spread.max(least) } else { 1.0 };
            return Units { centre: last, spread };
        }
        Units {
            centre: if centre == Centre::Last { last } else { own.mean },
            spread: own.spread.max(LEAST * self.spread),
        }
    }
}

impl Units {
    pub fn inward(&self, value: f64) -> f32 {
        ((value - self.centre) / self.spread) as f32
    }

    pub fn outward(&self, value: f32) -> f64 {
        self.centre + f64::from(value) * self.spread
    }
}
