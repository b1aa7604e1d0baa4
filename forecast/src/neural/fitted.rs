//! Trained nets as forecasters of a series.

use serde::{Deserialize, Serialize};

use super::net::NeuralNet;
use crate::adaptive::bounded;
use crate::history::LoadHistory;
use crate::models::Path;
use crate::{Fit, FitError, Forecast, Horizon, Predict, Series, check_levels};

/// Trained net that knows a series up to now. The serde form is a complete snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedNet {
    net: NeuralNet,
    past: LoadHistory,
}

/// Fitting a trained net takes in the series and estimates nothing.
impl Fit for NeuralNet {
    type Fitted = FittedNet;

    fn fit(&self, series: &Series) -> Result<FittedNet, FitError> {
        if series.observed_len() == 0 {
            return Err(FitError::NothingObserved { len: series.len() });
        }
        let day = self.day_steps();
        let mut fitted = FittedNet { net: self.clone(), past: LoadHistory::new(day, day, self.lookback()) };
        fitted.update(&series.values().to_vec());
        Ok(fitted)
    }
}

impl FittedNet {
    /// Net that makes the forecasts.
    pub fn net(&self) -> &NeuralNet {
        &self.net
    }

    /// All quantiles of the next `steps` values, level after level. What is farther than the net's
    /// horizon is forecast from its medians, with quantiles as wide as those of a first forecast.
    fn quantiles(&self, steps: usize) -> Vec<Vec<f64>> {
        let (spec, horizon) = (self.net.spec(), self.net.horizon());
        let mut window = window(&self.past, &self.net);
        let mut levels = vec![Vec::with_capacity(steps); spec.levels.len()];
        while levels[0].len() < steps {
            let quantiles = self.net.quantiles(&window);
            for (level, part) in levels.iter_mut().zip(quantiles.chunks_exact(horizon)) {
                level.extend_from_slice(part);
            }
            let medians = quantiles.chunks_exact(horizon).nth(spec.median()).unwrap_or_default();
            window.extend_from_slice(medians);
            window.drain(..horizon);
        }
        levels
    }
}

impl Predict for FittedNet {
    fn predict(&self, horizon: Horizon, levels: &[f64]) -> Forecast {
        if let Err(error) = check_levels(levels) {
            panic!("quantile levels have to be checked before predicting: {error}");
        }
        let quantiles = self.quantiles(horizon.get());
        let known = &self.net.spec().levels;
        Forecast::from_quantiles(horizon, levels, |step, level| {
            interpolated(known, |index| quantiles[index][step], level)
        })
    }

    fn update(&mut self, values: &[f64]) {
        for &value in values {
            self.past.push(bounded(value));
        }
    }
}

/// The quantile at `level` from those at ascending `known` levels, on a line in the log odds: exact
/// for a logistic distribution, tails included.
fn interpolated(known: &[f64], value: impl Fn(usize) -> f64, level: f64) -> f64 {
    if known.len() == 1 {
        return value(0);
    }
    let odds = |level: f64| (level / (1.0 - level)).ln();
    // Levels outside the known ones continue the line of the outermost pair.
    let after = known.partition_point(|&other| other < level).clamp(1, known.len() - 1);
    let (low, high) = (odds(known[after - 1]), odds(known[after]));
    let share = (odds(level) - low) / (high - low);
    // A known level gives back its value exactly, without the rounding of the line.
    if known[after] == level {
        return value(after);
    }
    value(after - 1) + share * (value(after) - value(after - 1))
}

/// Last values, as many as the net looks back. The first known value stands for the values before it; of a net of all
/// series, which learns so, the known values of the same time of the day.
fn window(past: &LoadHistory, net: &NeuralNet) -> Vec<f64> {
    let (known, day) = (past.len(), net.day_steps());
    let seen = |lag: usize| match lag.checked_sub(known).filter(|_| net.spec().is_global()) {
        None | Some(0) => lag,
        Some(before) => lag.checked_sub(before.div_ceil(day) * day).filter(|&lag| lag > 0).unwrap_or(lag),
    };
    (1..=net.lookback()).rev().map(|lag| past.lag(seen(lag))).collect()
}

/// Steps that a net has to know before it says more than the last value: a whole window, and a quarter of a day of a
/// net of all series.
fn least_known(net: &NeuralNet) -> usize {
    if net.spec().is_global() { net.day_steps().div_ceil(4) } else { net.lookback() }
}

/// Trained net as a member of the ensemble of [`Adaptive`](crate::Adaptive), which uses its
/// medians.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct NetPath(pub NeuralNet);

impl Path for NetPath {
    fn refit(&mut self, _: &LoadHistory) {}

    fn push(&mut self, _: &LoadHistory) {}

    /// Path of medians; until enough is known, the last value, as for every model that looks back so far.
    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        if past.len() < least_known(&self.0) {
            return out.fill(past.lag(1));
        }
        let mut window = window(past, &self.0);
        for out in out.chunks_mut(self.0.horizon()) {
            let medians = self.0.median(&window);
            out.copy_from_slice(&medians[..out.len()]);
            window.extend_from_slice(&medians);
            window.drain(..medians.len());
        }
    }
}
