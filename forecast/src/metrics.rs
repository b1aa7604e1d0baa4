//! Metrics of forecasts against the load that came.
//!
//! Notation: `y` what came, `f` the point forecast, `q` the forecast quantile at a level `tau`, and
//! sums and means run over the steps at which `y` was measured. One set of rules for all:
//! - A gap in `y` (NaN) is not scored. Where nothing was measured there is no score: `None`.
//! - A forecast is not forgiven for being NaN: the score is then NaN.
//! - A ratio with a zero denominator is 0 when the error is 0 too, else infinite: being wrong about
//!   nothing is as wrong as can be.
//!
//! Every function takes any view of `f64` (slices, vectors and arrays by reference), and panics
//! when the two have different lengths.

use ndarray::ArrayView1;

use crate::Series;

/// Mean absolute error: `mean |y - f|`, in the unit of the series.
pub fn mae<'a>(actual: impl Into<ArrayView1<'a, f64>>, point: impl Into<ArrayView1<'a, f64>>) -> Option<f64> {
    mean(measured(actual.into(), point.into()).map(|(y, f)| (y - f).abs()))
}

/// Root mean squared error: `sqrt(mean (y - f)^2)`, in the unit of the series.
pub fn rmse<'a>(actual: impl Into<ArrayView1<'a, f64>>, point: impl Into<ArrayView1<'a, f64>>) -> Option<f64> {
    mean(measured(actual.into(), point.into()).map(|(y, f)| (y - f).powi(2))).map(f64::sqrt)
}

/// Weighted absolute percentage error: `sum |y - f| / sum |y|`, a fraction.
pub fn wape<'a>(actual: impl Into<ArrayView1<'a, f64>>, point: impl Into<ArrayView1<'a, f64>>) -> Option<f64> {
    let (mut errors, mut loads, mut count) = (0.0, 0.0, 0_usize);
    for (y, f) in measured(actual.into(), point.into()) {
        errors += (y - f).abs();
        loads += y.abs();
        count += 1;
    }
    (count > 0).then(|| ratio(errors, loads))
}

/// Symmetric mean absolute percentage error: `mean 200 |y - f| / (|y| + |f|)`, in percent, between
/// 0 and 200.
///
/// A step with `y = f = 0` counts 0.
pub fn smape_percent<'a>(actual: impl Into<ArrayView1<'a, f64>>, point: impl Into<ArrayView1<'a, f64>>) -> Option<f64> {
    mean(measured(actual.into(), point.into()).map(|(y, f)| ratio(200.0 * (y - f).abs(), y.abs() + f.abs())))
}

/// Mean absolute percentage error: `mean 100 |y - f| / |y|`, in percent; infinite where a load of 0
/// was missed.
pub fn mape_percent<'a>(actual: impl Into<ArrayView1<'a, f64>>, point: impl Into<ArrayView1<'a, f64>>) -> Option<f64> {
    mean(measured(actual.into(), point.into()).map(|(y, f)| ratio(100.0 * (y - f).abs(), y)))
}

/// Mean absolute scaled error: `mean |y - f| / scale`, where `scale` is [`seasonal_naive_mae`] of
/// the history before the forecast.
///
/// Below 1 is better than repeating the last season was in the history. Hyndman and Koehler,
/// "Another look at measures of forecast accuracy", International Journal of Forecasting 22(4),
/// 2006, with the seasonal scale.
pub fn mase<'a>(
    actual: impl Into<ArrayView1<'a, f64>>,
    point: impl Into<ArrayView1<'a, f64>>,
    scale: f64,
) -> Option<f64> {
    mae(actual, point).map(|error| ratio(error, scale))
}

/// The scale of [`mase`]: `mean |y_t - y_(t-m)|` with `m = season_steps`, over the steps of
/// `history` at which both were measured.
///
/// `None` when there is no such pair, or no season.
pub fn seasonal_naive_mae(history: &Series, season_steps: usize) -> Option<f64> {
    if season_steps == 0 {
        return None;
    }
    let season_before = |index: usize| history.get(index.checked_sub(season_steps)?);
    mean(history.observed().filter_map(|(index, y)| Some((y - season_before(index)?).abs())))
}

/// Pinball loss of a quantile: `mean max(tau (y - q), (tau - 1) (y - q))`, in the unit of the
/// series; half the MAE at `tau = 0.5`.
///
/// Koenker and Bassett, "Regression quantiles", Econometrica 46(1), 1978. Its mean over many
/// levels, doubled, approaches the CRPS.
pub fn pinball<'a>(
    actual: impl Into<ArrayView1<'a, f64>>,
    quantile: impl Into<ArrayView1<'a, f64>>,
    level: f64,
) -> Option<f64> {
    let loss = |(y, q): (f64, f64)| {
        if y >= q { level * (y - q) } else { (1.0 - level) * (q - y) }
    };
    mean(measured(actual.into(), quantile.into()).map(loss))
}

/// Coverage of a quantile: the share of steps with `y <= q`, which should be its level. A quantile
/// that is NaN covers nothing.
pub fn coverage<'a>(actual: impl Into<ArrayView1<'a, f64>>, quantile: impl Into<ArrayView1<'a, f64>>) -> Option<f64> {
    mean(measured(actual.into(), quantile.into()).map(|(y, q)| if y <= q { 1.0 } else { 0.0 }))
}

/// Pairs of which the load was measured.
fn measured<'a>(actual: ArrayView1<'a, f64>, predicted: ArrayView1<'a, f64>) -> impl Iterator<Item = (f64, f64)> {
    assert_eq!(actual.len(), predicted.len(), "a metric compares as many forecasts as there are values");
    (0..actual.len()).map(move |step| (actual[step], predicted[step])).filter(|(y, _)| !y.is_nan())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_usize);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

fn ratio(error: f64, denominator: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / denominator.abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: f64 = f64::NAN;

    /// `y` 2, 4, gap, 6 against `f` 3, 4, 100, 2: errors 1, 0, 4.
    const ACTUAL: [f64; 4] = [2.0, 4.0, GAP, 6.0];
    const POINT: [f64; 4] = [3.0, 4.0, 100.0, 2.0];

    #[test]
    fn hand_worked_point_metrics() {
        assert_eq!(mae(&ACTUAL, &POINT), Some(5.0 / 3.0));
        assert_eq!(rmse(&ACTUAL, &POINT), Some((17.0_f64 / 3.0).sqrt()));
        assert_eq!(wape(&ACTUAL, &POINT), Some(5.0 / 12.0));
        // 100 * 1/2 = 50, 0 and 100 * 4/6.
        assert_eq!(mape_percent(&ACTUAL, &POINT), Some((50.0 + 400.0 / 6.0) / 3.0));
        // 200 * 1/5 = 40, 0 and 200 * 4/8 = 100.
        assert_eq!(smape_percent(&ACTUAL, &POINT), Some(140.0 / 3.0));
        assert_eq!(mase(&ACTUAL, &POINT, 2.0), Some(5.0 / 6.0));
    }

    #[test]
    fn hand_worked_quantile_metrics() {
        // Level 0.9: over by 1 costs 0.1, exact costs nothing, under by 4 costs 3.6.
        assert!((pinball(&ACTUAL, &POINT, 0.9).unwrap() - 3.7 / 3.0).abs() < 1e-12);
        assert_eq!(pinball(&ACTUAL, &POINT, 0.5), mae(&ACTUAL, &POINT).map(|mae| mae / 2.0));
        assert_eq!(coverage(&ACTUAL, &POINT), Some(2.0 / 3.0));
    }

    #[test]
    fn the_scale_skips_pairs_with_a_gap() {
        let history = Series::new(0, 1, vec![1.0, 5.0, 4.0, GAP, 6.0, 7.0].into()).unwrap();
        // Pairs two steps apart: 1-4, 4-6; 5-gap and gap-7 are left out.
        assert_eq!(seasonal_naive_mae(&history, 2), Some(2.5));
        assert_eq!(seasonal_naive_mae(&history, 6), None);
        assert_eq!(seasonal_naive_mae(&history, 0), None);
    }

    #[test]
    fn zero_denominators_are_zero_or_infinite() {
        let zero = [0.0, 0.0];
        let one = [1.0, 1.0];
        assert_eq!(wape(&zero, &zero), Some(0.0));
        assert_eq!(wape(&zero, &one), Some(f64::INFINITY));
        assert_eq!(smape_percent(&zero, &zero), Some(0.0));
        assert_eq!(smape_percent(&zero, &one), Some(200.0));
        assert_eq!(mase(&one, &one, 0.0), Some(0.0));
        assert_eq!(mase(&one, &zero, 0.0), Some(f64::INFINITY));
    }

    #[test]
    fn nothing_measured_is_no_score_and_a_nan_forecast_is_no_excuse() {
        assert_eq!(mae(&[GAP], &[1.0]), None);
        assert_eq!(wape(&[GAP], &[1.0]), None);
        assert_eq!(coverage(&[0.0; 0], &[0.0; 0]), None);
        assert!(mae(&[1.0], &[GAP]).unwrap().is_nan());
        assert!(pinball(&[1.0], &[GAP], 0.5).unwrap().is_nan());
        assert_eq!(coverage(&[1.0], &[GAP]), Some(0.0));
    }

    #[test]
    #[should_panic(expected = "as many forecasts")]
    fn different_lengths_are_a_mistake_of_the_caller() {
        let _ = mae(&[1.0], &[1.0, 2.0]);
    }
}
