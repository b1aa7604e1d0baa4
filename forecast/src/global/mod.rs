//! One model of many tenants' series, for the tenant that is too new to have one of its own.
//!
//! Global models: Montero-Manso and Hyndman, "Principles and algorithms for forecasting groups of time series: locality and globality", International Journal of Forecasting
//! 37, 2021. Here the direct ridge regressions, whose features are differences from the last value (so that the level goes), on all series divided by their spread: rows of every tenant go
//! into the same sums, so a fit costs what its rows do and another tenant is a few more rows.

use serde::{Deserialize, Serialize};

use crate::history::History;
use crate::models::{DirectRidge, Path};
use crate::{FitError, Series};

/// Penalty relative to the diagonal, as for one series.
const RIDGE: f64 = 1e-3;

/// Settings of direct ridge regressions over many series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlobalRidge {
    /// Steps in a day, at least 1.
    pub day_steps: usize,
    /// Farthest step with a regression of its own; farther ones take its coefficients. At least 1.
    pub horizon_steps: usize,
}

/// Coefficients that hold for every tenant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedGlobalRidge {
    day_steps: usize,
    model: DirectRidge,
}

impl GlobalRidge {
    /// The regressions for steps as long as those of `tenants`, which count alike per step whatever their level.
    ///
    /// # Errors
    /// A day of no steps, or tenants of whom none has a measured load that is not zero.
    pub fn fit(&self, tenants: &[Series]) -> Result<FittedGlobalRidge, FitError> {
        if self.day_steps == 0 {
            return Err(FitError::SeasonEmpty);
        }
        let mut model = DirectRidge::new(self.horizon_steps.max(1), RIDGE, 1.0);
        let mut any = false;
        for tenant in tenants {
            if let Some((past, _)) = scaled(tenant, self.day_steps) {
                model.add_series(&past);
                any = true;
            }
        }
        if !any {
            return Err(FitError::NothingObserved { len: tenants.iter().map(Series::len).sum() });
        }
        model.solve();
        Ok(FittedGlobalRidge { day_steps: self.day_steps, model })
    }
}

impl FittedGlobalRidge {
    /// The next `steps` values of a tenant, not below zero; of less than two days its last value, of no load zeros.
    pub fn predict(&self, tenant: &Series, steps: usize) -> Vec<f64> {
        let mut out = vec![0.0; steps];
        if let Some((past, unit)) = scaled(tenant, self.day_steps) {
            self.model.path(&past, &mut out);
            for out in &mut out {
                *out = (*out * unit).max(0.0);
            }
        }
        out
    }
}

/// A series in units of its standard deviation, of its mean size where it is constant, and that unit; `None` without any load.
///
/// Not of its mean: squares of a tenant that comes in bursts would drown all others.
fn scaled(series: &Series, day: usize) -> Option<(History, f64)> {
    let mean = |of: &dyn Fn(f64) -> f64| {
        series.observed().map(|(_, value)| of(value)).sum::<f64>() / series.observed_len().max(1) as f64
    };
    let level = mean(&|value| value);
    let spread = mean(&|value| (value - level) * (value - level)).sqrt();
    let unit = if spread > 1e-9 * level.abs() { spread } else { mean(&f64::abs) };
    if !(unit > 0.0 && unit.is_finite()) {
        return None;
    }
    // One season only: a tenant that is new has no week.
    let mut past = History::new(day, day, series.len());
    for &value in series.values() {
        past.push(value / unit);
    }
    Some((past, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: usize = 24;

    fn tenant(level: f64, phase: usize, len: usize) -> Series {
        let at = |index: usize| {
            let hour = (index + phase) as f64 / DAY as f64 * std::f64::consts::TAU;
            let noise = (index * index * 7919 % 101) as f64 / 101.0 - 0.5;
            level * (1.0 + 0.5 * hour.sin() + 0.1 * noise)
        };
        Series::new(0, 3_600_000, (0..len).map(at).collect()).unwrap()
    }

    fn fitted() -> FittedGlobalRidge {
        let tenants: Vec<Series> = (0..6).map(|k| tenant(10.0_f64.powi(k), 3 * k as usize, 240)).collect();
        GlobalRidge { day_steps: DAY, horizon_steps: DAY }.fit(&tenants).unwrap()
    }

    #[test]
    fn a_new_tenant_of_two_days_is_forecast_in_its_own_unit() {
        let model = fitted();
        for level in [1e-3, 7.0, 1e6] {
            let whole = tenant(level, 11, 72);
            let out = model.predict(&whole.slice(0..48).unwrap(), DAY);
            for (step, out) in out.iter().enumerate() {
                let truth = whole.get(48 + step).unwrap();
                assert!((out - truth).abs() < 0.15 * level, "{step}: {out} {truth}");
            }
        }
    }

    #[test]
    fn nothing_is_no_reason_to_panic() {
        let model = fitted();
        let empty = Series::new(0, 1, vec![].into()).unwrap();
        assert_eq!(model.predict(&empty, 3), [0.0; 3]);
        let one = Series::new(0, 1, vec![4.0].into()).unwrap();
        assert_eq!(model.predict(&one, 2), [4.0, 4.0]);
        let settings = GlobalRidge { day_steps: DAY, horizon_steps: 4 };
        assert!(matches!(settings.fit(&[empty]), Err(FitError::NothingObserved { len: 0 })));
        assert!(matches!(GlobalRidge { day_steps: 0, ..settings }.fit(&[one]), Err(FitError::SeasonEmpty)));
    }
}
