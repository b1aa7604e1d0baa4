//! A forecaster behind a regression on covariates.

use serde::{Deserialize, Serialize};

use super::{CovariateEffects, Covariates};
use crate::{Fit, FitError, Forecast, Horizon, Predict, Series};

/// Settings of a forecaster with the covariates of its series.
#[derive(Debug, Clone)]
pub struct Regressed<M> {
    /// Forecaster of the load without the effects.
    pub inner: M,
    /// Covariates, which reach as far ahead as is forecast.
    pub covariates: Covariates,
    /// Steps in a day, at least 1.
    pub day_steps: usize,
}

/// Effects of covariates, and the covariates that the effects belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CovariateRegression {
    /// Coefficients, with the scales that they are for.
    pub effects: CovariateEffects,
    /// Covariates by time.
    pub covariates: Covariates,
}

/// Fitted forecaster with the effects of covariates. The effects are estimated once, by the fit: values of later steps
/// reach the forecaster without them, so that all it knows is on one scale.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedRegressed<F> {
    /// Forecaster of the load without the effects.
    pub inner: F,
    /// Regression on the covariates.
    pub regression: CovariateRegression,
    /// Time of the next step, milliseconds since 1970.
    pub next_epoch_millis: i64,
    /// Length of a step, milliseconds.
    pub step_millis: i64,
}

impl<M: Fit> Fit for Regressed<M> {
    type Fitted = FittedRegressed<M::Fitted>;

    fn fit(&self, series: &Series) -> Result<Self::Fitted, FitError> {
        let effects = CovariateEffects::estimate(&self.covariates, series, self.day_steps)?;
        let plain = series.iter().enumerate().map(|(index, load)| {
            let effect = effects.at(&self.covariates, series.time_epoch_millis(index));
            load.map_or(f64::NAN, |load| effects.without(load, effect))
        });
        // An effect beyond all numbers is a load that is not known.
        let plain = plain.map(|load| if load.is_finite() { load } else { f64::NAN }).collect();
        let plain = series.with_values(plain);
        Ok(FittedRegressed {
            inner: self.inner.fit(&plain)?,
            regression: CovariateRegression { effects, covariates: self.covariates.clone() },
            next_epoch_millis: series.end_epoch_millis(),
            step_millis: series.step_millis(),
        })
    }
}

impl<F> FittedRegressed<F> {
    fn effect(&self, step: usize) -> f64 {
        self.regression.effects.at(&self.regression.covariates, self.next_epoch_millis + step as i64 * self.step_millis)
    }
}

impl<F: Predict> Predict for FittedRegressed<F> {
    /// As the forecaster has it, with the effects of the steps ahead; a covariate without a value has no effect.
    fn predict(&self, horizon: Horizon, levels: &[f64]) -> Forecast {
        let (all, _) = crate::forecast::with_median(levels);
        let plain = self.inner.predict(horizon, &all);
        let effects: Vec<f64> = (0..horizon.get()).map(|step| self.effect(step)).collect();
        Forecast::from_quantiles(horizon, levels, |step, level| {
            let column = all.partition_point(|&other| other < level);
            self.regression.effects.with(plain.quantiles()[[step, column]], effects[step])
        })
    }

    fn update(&mut self, values: &[f64]) {
        for &value in values {
            let plain =
                if value.is_finite() { self.regression.effects.without(value, self.effect(0)) } else { f64::NAN };
            self.inner.update(&[plain]);
            self.next_epoch_millis += self.step_millis;
        }
    }

    fn refresh(&mut self) {
        self.inner.refresh();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests")]
mod tests {
    use super::*;
    use crate::covariates::NamedSeries;
    use crate::{Adaptive, Backtest, ForecasterSnapshot, Refit};

    const HOUR: i64 = 3_600_000;
    const DAY: usize = 24;

    /// A promotion on every eleventh day, of which the seasons know nothing.
    fn promotion(steps: usize) -> Vec<f64> {
        (0..steps).map(|step| f64::from(u8::from((step / DAY) % 11 == 5))).collect()
    }

    /// A load of the day's shape with noise, which a promotion doubles at noon.
    fn load(steps: usize, promotion: &[f64]) -> Vec<f64> {
        let of = |step: usize| {
            let turn = std::f64::consts::TAU * (step % DAY) as f64 / DAY as f64;
            let noise = ((step * step * 7919) % 101) as f64 / 101.0;
            (100.0 - 60.0 * turn.cos() + 4.0 * noise) * (promotion[step] * (0.4 - 0.3 * turn.cos())).exp()
        };
        (0..steps).map(of).collect()
    }

    fn series(days: usize) -> Series {
        Series::new(0, HOUR, load(days * DAY, &promotion(days * DAY)).into()).unwrap()
    }

    fn covariates(values: Vec<f64>) -> Covariates {
        let series = Series::new(0, HOUR, values.into()).unwrap();
        vec![NamedSeries { name: "promotion".into(), series }].try_into().unwrap()
    }

    fn backtest() -> Backtest {
        Backtest {
            initial_steps: 60 * DAY,
            stride_steps: DAY,
            horizon: Horizon::steps(DAY),
            refit: Refit::Never,
            levels: vec![0.1, 0.5, 0.9],
            scale_season_steps: DAY,
        }
    }

    #[test]
    fn a_covariate_that_moves_the_load_takes_most_of_the_error_away() {
        let series = series(100);
        let regressed =
            Regressed { inner: Adaptive::daily(DAY), covariates: covariates(promotion(101 * DAY)), day_steps: DAY };
        let with = backtest().run(&regressed, &series).unwrap().scores.mae.unwrap();
        let without = backtest().run(&Adaptive::daily(DAY), &series).unwrap().scores.mae.unwrap();
        assert!(with < 0.5 * without, "{with} of {without}");
    }

    #[test]
    fn a_covariate_without_an_effect_changes_nothing() {
        let series = Series::new(0, HOUR, load(60 * DAY, &[0.0; 60 * DAY]).into()).unwrap();
        let noise: Vec<f64> = (0..60 * DAY).map(|step| ((step / DAY * 7919) % 13) as f64).collect();
        let effects = CovariateEffects::estimate(&covariates(noise), &series, DAY).unwrap();
        assert!(effects.are_none(), "{effects:?}");
    }

    #[test]
    fn a_gap_in_a_covariate_is_refused_and_a_forecast_beyond_it_is_found() {
        let series = series(30);
        let mut values = promotion(31 * DAY);
        let regressed = |values: Vec<f64>| Regressed {
            inner: Adaptive::daily(DAY),
            covariates: covariates(values),
            day_steps: DAY,
        };
        let fitted = regressed(values.clone()).fit(&series).unwrap();
        let ahead = |steps| fitted.regression.covariates.check(fitted.next_epoch_millis, fitted.step_millis, steps);
        assert!(ahead(DAY).is_ok());
        let beyond = ahead(DAY + 1).unwrap_err();
        assert!(beyond.to_string().contains("`promotion` has no value at 2678400000"), "{beyond}");
        values[100] = f64::NAN;
        let error = regressed(values).fit(&series).unwrap_err().to_string();
        assert!(error.contains("no value at 360000000"), "{error}");
    }

    #[test]
    fn a_snapshot_keeps_the_covariates_ahead_and_goes_on_as_the_forecaster_does() {
        let series = series(30);
        let regressed =
            Regressed { inner: Adaptive::daily(DAY), covariates: covariates(promotion(33 * DAY)), day_steps: DAY };
        let mut fitted = regressed.fit(&series).unwrap();
        let snapshot = ForecasterSnapshot::of_regressed(fitted.clone(), DAY);
        let text = serde_json::to_string(&snapshot).unwrap();
        let read: ForecasterSnapshot = serde_json::from_str(&text).unwrap();
        let mut read = FittedRegressed {
            inner: read.forecaster,
            regression: read.regression.unwrap(),
            next_epoch_millis: read.next_epoch_millis,
            step_millis: read.step_millis,
        };
        assert!(read.regression.covariates.check(29 * DAY as i64 * HOUR, HOUR, 1).is_err(), "the past is not kept");
        for forecaster in [&mut fitted, &mut read] {
            forecaster.update(&load(31 * DAY, &promotion(31 * DAY))[30 * DAY..]);
        }
        let (horizon, levels) = (Horizon::steps(DAY), [0.1, 0.5, 0.9]);
        let (whole, again) = (fitted.predict(horizon, &levels), read.predict(horizon, &levels));
        for (a, b) in whole.quantiles().iter().zip(again.quantiles()) {
            assert!((a - b).abs() <= 1e-9 * a.abs(), "{a} {b}");
        }
    }
}
