//! Scores: all metrics of one or many forecasts.
//!
//! Steps are pooled before anything is averaged: a mean of per-origin ratios would weigh a quiet
//! night as much as a busy day.

use ndarray::{Array1, ArrayView1};
use serde::Serialize;

use crate::{Forecast, metrics};

/// Scores of forecasts over the measured steps; [`metrics`] defines each metric.
///
/// A score is `None` where nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForecastScores {
    /// Number of steps scored.
    pub steps: usize,
    /// Mean absolute error, unit of the series.
    pub mae: Option<f64>,
    /// Root mean squared error, unit of the series.
    pub rmse: Option<f64>,
    /// Weighted absolute percentage error, a fraction.
    pub wape: Option<f64>,
    /// Symmetric mean absolute percentage error, 0 to 200.
    pub smape_percent: Option<f64>,
    /// Mean absolute scaled error; `None` also where there is no scale.
    pub mase: Option<f64>,
    /// One entry a quantile level, ascending.
    pub levels: Vec<LevelScore>,
}

/// Scores of the quantiles of one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelScore {
    /// The level, between 0 and 1.
    pub level: f64,
    /// Pinball loss, unit of the series.
    pub pinball: Option<f64>,
    /// Share of steps at or below the quantile: the nearer to the level the better.
    pub coverage: Option<f64>,
}

impl ForecastScores {
    /// Scores pairs of loads that came (gaps as NaN, shape `[horizon]`) and forecasts, all steps
    /// of all pairs together.
    ///
    /// `mase_scale` is [`metrics::seasonal_naive_mae`] of the history.
    ///
    /// # Panics
    /// When a pair differs in length, or two forecasts in their levels.
    pub fn pooled<'a>(
        pairs: impl IntoIterator<Item = (ArrayView1<'a, f64>, &'a Forecast)>,
        mase_scale: Option<f64>,
    ) -> Self {
        let pairs: Vec<(ArrayView1<'a, f64>, &'a Forecast)> = pairs.into_iter().collect();
        let levels = pairs.first().map(|(_, forecast)| forecast.levels().to_vec()).unwrap_or_default();
        assert!(
            pairs.iter().all(|(_, forecast)| forecast.levels().iter().eq(&levels)),
            "forecasts scored together have the same levels"
        );

        let actual = concatenate(pairs.iter().map(|(actual, _)| *actual));
        let point = concatenate(pairs.iter().map(|(_, forecast)| forecast.point()));
        let level_score = |(column, &level): (usize, &f64)| {
            let quantile = concatenate(pairs.iter().map(|(_, forecast)| forecast.column(column)));
            LevelScore {
                level,
                pinball: metrics::pinball(&actual, &quantile, level),
                coverage: metrics::coverage(&actual, &quantile),
            }
        };
        Self {
            steps: actual.iter().filter(|value| !value.is_nan()).count(),
            mae: metrics::mae(&actual, &point),
            rmse: metrics::rmse(&actual, &point),
            wape: metrics::wape(&actual, &point),
            smape_percent: metrics::smape_percent(&actual, &point),
            mase: mase_scale.and_then(|scale| metrics::mase(&actual, &point, scale)),
            levels: levels.iter().enumerate().map(level_score).collect(),
        }
    }
}

fn concatenate<'a>(parts: impl Iterator<Item = ArrayView1<'a, f64>>) -> Array1<f64> {
    parts.flat_map(|part| part.to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::Horizon;

    #[test]
    fn steps_are_pooled_before_they_are_averaged() {
        let quiet = Forecast::from_quantiles(Horizon::steps(2), &[0.9], |_, _| 2.0);
        let busy = Forecast::from_quantiles(Horizon::steps(1), &[0.9], |_, _| 90.0);
        let (quiet_actual, busy_actual) = (array![1.0, f64::NAN], array![99.0]);
        let scores = ForecastScores::pooled([(quiet_actual.view(), &quiet), (busy_actual.view(), &busy)], Some(2.5));
        assert_eq!(scores.steps, 2);
        assert_eq!(scores.wape, Some(10.0 / 100.0), "not the mean of 1/1 and 9/99");
        assert_eq!(scores.mae, Some(5.0));
        assert_eq!(scores.mase, Some(2.0));
        assert_eq!(scores.levels[0].coverage, Some(0.5));
    }

    #[test]
    fn no_forecast_has_no_scores() {
        let scores = ForecastScores::pooled([], None);
        assert_eq!((scores.steps, scores.mae, scores.mase), (0, None, None));
        assert!(scores.levels.is_empty());
    }
}
