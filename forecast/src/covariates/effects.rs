//! Effects of covariates on a load, by a ridge regression of what changed since a season before.
//!
//! Let `z` be `log(y + c)` of a load that is never negative, with `c` a tenth of its mean, and `y` itself otherwise.
//! The regression is `z[t] - z[t-s] = (f[t] - f[t-s])' beta`, with `s` a week (a day where three weeks are not known):
//! the shape of the week and a level that drifts slowly fall out. The features `f` of a covariate are its
//! standardised value, and that value times the sine and the cosine of the time of the day: a holiday takes away more
//! at noon than at night. The penalty is chosen by leaving out one season after another, and `no effect` is among the
//! choices: a covariate that does not help predict what was left out changes nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Covariates, NamedSeries, value_at};
use crate::linalg::{dot, solve_spd};
use crate::{FitError, Series};

/// Features of each covariate: its value, and that times the sine and the cosine of the time of the day.
const SHAPES: usize = 3;
/// Penalties that are tried, relative to the diagonal; no effect is tried as well.
const PENALTIES: [f64; 5] = [1e-3, 1e-2, 1e-1, 1.0, 10.0];
/// Part of the mean load that is added before the logarithm.
const SHIFT: f64 = 0.1;

/// Estimated effects of covariates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CovariateEffects {
    /// Addend of the logarithm; `None` where effects add to the load itself.
    shift: Option<f64>,
    /// Mean and spread of each covariate.
    scales: Vec<(f64, f64)>,
    day_steps: usize,
    step_millis: i64,
    /// Coefficients, [`SHAPES`] a covariate.
    coefficients: Vec<f64>,
}

/// Sums of the regression over the steps of one season.
#[derive(Clone)]
struct RegressionSums {
    gram: Vec<f64>,
    moment: Vec<f64>,
    square: f64,
}

impl RegressionSums {
    fn new(width: usize) -> Self {
        Self { gram: vec![0.0; width * width], moment: vec![0.0; width], square: 0.0 }
    }

    fn add(&mut self, row: &[f64], y: f64) {
        for (i, x) in row.iter().enumerate() {
            for (sum, other) in self.gram[i * row.len()..].iter_mut().zip(row) {
                *sum += x * other;
            }
            self.moment[i] += x * y;
        }
        self.square += y * y;
    }

    /// Sums of `self` plus `sign` times those of `other`.
    fn with(mut self, sign: f64, other: &Self) -> Self {
        self.gram.iter_mut().zip(&other.gram).for_each(|(sum, other)| *sum += sign * other);
        self.moment.iter_mut().zip(&other.moment).for_each(|(sum, other)| *sum += sign * other);
        self.square += sign * other.square;
        self
    }

    /// Coefficients under a penalty relative to the diagonal.
    fn solve(&self, penalty: f64) -> Vec<f64> {
        let width = self.moment.len();
        let (mut gram, mut coefficients) = (self.gram.clone(), self.moment.clone());
        for i in 0..width {
            gram[i * width + i] *= 1.0 + penalty;
        }
        solve_spd(&mut gram, width, &mut coefficients, 1);
        coefficients
    }

    /// Sum of squared errors of coefficients.
    fn loss(&self, coefficients: &[f64]) -> f64 {
        let width = self.moment.len();
        let quadratic: f64 =
            coefficients.iter().zip(self.gram.chunks(width)).map(|(b, row)| b * dot(row, coefficients)).sum();
        self.square - 2.0 * dot(coefficients, &self.moment) + quadratic
    }
}

impl CovariateEffects {
    /// Effects of `covariates` on `series`, which has `day_steps` steps a day.
    ///
    /// # Errors
    /// A series without a measured value, and a step of it without a value of a covariate.
    pub fn estimate(covariates: &Covariates, series: &Series, day_steps: usize) -> Result<Self, FitError> {
        if series.observed_len() == 0 {
            return Err(FitError::NothingObserved { len: series.len() });
        }
        if day_steps == 0 {
            return Err(FitError::SeasonEmpty);
        }
        covariates.check(series.start_epoch_millis(), series.step_millis(), series.len())?;
        let known = || series.observed().map(|(_, y)| y);
        let nonnegative = known().all(|y| y >= 0.0);
        let mean = known().map(f64::abs).sum::<f64>() / series.observed_len() as f64;
        let shift = (nonnegative && mean > 0.0).then_some(SHIFT * mean);
        let mut effects = Self {
            shift,
            scales: scales(covariates, series),
            day_steps,
            step_millis: series.step_millis(),
            coefficients: vec![0.0; SHAPES * covariates.columns.len()],
        };
        let seasons = effects.sums_by_season(covariates, series);
        effects.coefficients = chosen(&seasons, effects.coefficients.len());
        Ok(effects)
    }

    /// Sums of the regression, by season.
    fn sums_by_season(&self, covariates: &Covariates, series: &Series) -> Vec<RegressionSums> {
        let week = 7 * self.day_steps;
        let season = if series.len() >= 3 * week { week } else { self.day_steps };
        let width = self.coefficients.len();
        let at = |index: usize| series.time_epoch_millis(index);
        let mut of_season: BTreeMap<usize, RegressionSums> = BTreeMap::new();
        let (mut now, mut before) = (vec![0.0; width], vec![0.0; width]);
        for (index, y) in series.observed().filter(|(index, _)| *index >= season) {
            let Some(earlier) = series.get(index - season) else { continue };
            self.features(covariates, at(index), &mut now);
            self.features(covariates, at(index - season), &mut before);
            now.iter_mut().zip(&before).for_each(|(now, before)| *now -= before);
            let change = self.scaled(y) - self.scaled(earlier);
            of_season.entry(index / season).or_insert_with(|| RegressionSums::new(width)).add(&now, change);
        }
        of_season.into_values().collect()
    }

    fn scaled(&self, load: f64) -> f64 {
        self.shift.map_or(load, |shift| (load.max(0.0) + shift).ln())
    }

    /// Features at a time, [`SHAPES`] a covariate; 0 where a covariate has no value.
    fn features(&self, covariates: &Covariates, epoch_millis: i64, row: &mut [f64]) {
        let phase = epoch_millis.div_euclid(self.step_millis).rem_euclid(self.day_steps as i64);
        let (sin, cos) = (std::f64::consts::TAU * phase as f64 / self.day_steps as f64).sin_cos();
        let columns = covariates.columns.iter().zip(&self.scales);
        for (shapes, (column, (mean, spread))) in row.chunks_exact_mut(SHAPES).zip(columns) {
            let value = value_at(&column.series, epoch_millis).map_or(0.0, |value| (value - mean) / spread);
            shapes.copy_from_slice(&[value, value * sin, value * cos]);
        }
    }

    /// Effect at a time, on the scale of the regression.
    pub(super) fn at(&self, covariates: &Covariates, epoch_millis: i64) -> f64 {
        let mut row = vec![0.0; self.coefficients.len()];
        self.features(covariates, epoch_millis, &mut row);
        dot(&row, &self.coefficients)
    }

    /// Load without an effect.
    pub(super) fn without(&self, load: f64, effect: f64) -> f64 {
        self.shift.map_or(load - effect, |shift| (load + shift) * (-effect).exp() - shift)
    }

    /// Load with an effect.
    pub(super) fn with(&self, load: f64, effect: f64) -> f64 {
        self.shift.map_or(load + effect, |shift| ((load + shift) * effect.exp() - shift).max(0.0))
    }

    /// Whether no covariate has an effect.
    pub fn are_none(&self) -> bool {
        self.coefficients.iter().all(|coefficient| *coefficient == 0.0)
    }
}

/// Mean and spread of each covariate over the steps of a series; a spread of 1 where it never changes.
fn scales(covariates: &Covariates, series: &Series) -> Vec<(f64, f64)> {
    let steps = series.len() as f64;
    let of = |column: &NamedSeries| {
        let at = |index| value_at(&column.series, series.time_epoch_millis(index)).unwrap_or(0.0);
        let values = || (0..series.len()).map(at);
        let mean = values().sum::<f64>() / steps;
        let spread = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / steps).sqrt();
        (mean, if spread > 1e-9 * mean.abs().max(1e-9) { spread } else { 1.0 })
    };
    covariates.columns.iter().map(of).collect()
}

/// Coefficients of the penalty that predicts seasons best which were left out; zeros where none predicts better than
/// no effect.
fn chosen(seasons: &[RegressionSums], width: usize) -> Vec<f64> {
    let all = seasons.iter().fold(RegressionSums::new(width), |sum, season| sum.with(1.0, season));
    let none: f64 = seasons.iter().map(|season| season.square).sum();
    let losses = PENALTIES.map(|penalty| {
        let loss = |season: &RegressionSums| season.loss(&all.clone().with(-1.0, season).solve(penalty));
        (seasons.iter().map(loss).sum::<f64>(), penalty)
    });
    match losses.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((loss, penalty)) if loss < none => all.solve(penalty),
        _ => vec![0.0; width],
    }
}
