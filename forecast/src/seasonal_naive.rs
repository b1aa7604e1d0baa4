//! Seasonal naive forecaster: the value of one season ago.
//!
//! The bar every model has to beat, and on clean daily load a high one. Hyndman and Athanasopoulos,
//! "Forecasting: Principles and Practice" (3rd ed.), section 5.2 for the method and 5.5 for its
//! spread: the h-step error has the standard deviation `sigma sqrt(k)`, where `k` counts the
//! seasons between the forecast step and the value it repeats.
//!
//! Choices where the book leaves room:
//! - **Shape from the sample, width from the formula.** Load is skewed (bursts go up), so quantiles
//!   are those of the in-sample seasonal differences, and only their growth with `sqrt(k)` is
//!   borrowed from the normal theory.
//! - **Centred on their median.** The method claims no drift, and its point forecast is then its
//!   median exactly.
//! - **Gaps.** The value repeated is the last one measured at the same phase, `k` seasons back; a
//!   difference over `k` seasons enters the sample divided by `sqrt(k)`. A phase that was never
//!   measured repeats the last measured value of any phase.
//! - **Less than one season** of history is fitted with a season of one step: the plain naive
//!   forecast, last value and one-step differences.
//! - **Fewer than two differences** say nothing about spread: all quantiles equal the point.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Fit, FitError, Forecast, Horizon, Predict, Series, quantile};

/// Settings of the seasonal naive forecaster, which repeats the value of one season ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeasonalNaive {
    /// Steps in a season, at least 1: a day or a week of them, see [`Series::steps_per_day`]. One
    /// step gives the plain naive forecast.
    pub season_steps: usize,
}

/// Fitted seasonal naive forecaster, which knows its series up to now.
///
/// [`Predict::update`] moves the repeated values forward, one store a step, and leaves the sample
/// of differences as it was fitted. The serde form is a complete snapshot, of about one season of
/// values and one difference a fitted step; reading one back checks it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedState")]
pub struct FittedSeasonalNaive {
    /// Number of steps seen so far, gaps included: the next value has this index.
    steps_seen: usize,
    /// Last measured value of any phase.
    last: LastMeasurement,
    /// Last measured value of each phase, `index % season`; its length is the season.
    by_phase: Vec<Option<LastMeasurement>>,
    /// In-sample differences over one season, ascending.
    differences: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastMeasurement {
    index: usize,
    value: f64,
}

impl Fit for SeasonalNaive {
    type Fitted = FittedSeasonalNaive;

    fn fit(&self, series: &Series) -> Result<FittedSeasonalNaive, FitError> {
        if self.season_steps == 0 {
            return Err(FitError::SeasonEmpty);
        }
        let season_steps = if series.len() < self.season_steps { 1 } else { self.season_steps };

        let mut by_phase: Vec<Option<LastMeasurement>> = vec![None; season_steps];
        let mut last = None;
        let mut differences = Vec::with_capacity(series.len().saturating_sub(season_steps));
        for (index, value) in series.observed() {
            let measured = LastMeasurement { index, value };
            if let Some(before) = by_phase[index % season_steps].replace(measured) {
                let seasons = (index - before.index) / season_steps;
                differences.push((value - before.value) / (seasons as f64).sqrt());
            }
            last = Some(measured);
        }
        differences.sort_by(f64::total_cmp);

        let last = last.ok_or(FitError::NothingObserved { len: series.len() })?;
        Ok(FittedSeasonalNaive { steps_seen: series.len(), last, by_phase, differences })
    }
}

impl Predict for FittedSeasonalNaive {
    fn predict(&self, horizon: Horizon, levels: &[f64]) -> Forecast {
        let difference = |level| quantile::of_sorted(&self.differences, level).unwrap_or(0.0);
        let median = difference(0.5);
        Forecast::from_quantiles(horizon, levels, |step, level| {
            let (repeated, seasons) = self.repeated(self.steps_seen + step);
            repeated + (difference(level) - median) * (seasons as f64).sqrt()
        })
    }

    fn update(&mut self, values: &[f64]) {
        for &value in values {
            if value.is_finite() {
                let measured = LastMeasurement { index: self.steps_seen, value };
                let phase = self.steps_seen % self.season_steps();
                self.by_phase[phase] = Some(measured);
                self.last = measured;
            }
            self.steps_seen += 1;
        }
    }
}

impl FittedSeasonalNaive {
    /// Number of steps in a season: as set, or 1 if the fitted series was shorter than a season.
    pub fn season_steps(&self) -> usize {
        self.by_phase.len()
    }

    /// Value that is repeated at `index`, and the number of seasons begun since its measurement.
    fn repeated(&self, index: usize) -> (f64, usize) {
        let season_steps = self.season_steps();
        let source = self.by_phase[index % season_steps].unwrap_or(self.last);
        (source.value, (index - source.index).div_ceil(season_steps))
    }
}

/// Unchecked serde form of the state.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedState {
    steps_seen: usize,
    last: LastMeasurement,
    by_phase: Vec<Option<LastMeasurement>>,
    differences: Vec<f64>,
}

#[derive(Debug, Error)]
enum SnapshotError {
    #[error("seasonal naive snapshot has a season of 0 steps")]
    SeasonEmpty,
    #[error("seasonal naive snapshot has a value out of place at phase {phase}")]
    ValueOutOfPlace { phase: usize },
    #[error("seasonal naive snapshot has a last value that is not among its season")]
    LastValueUnknown,
    #[error("seasonal naive snapshot has differences that are not finite and ascending")]
    DifferencesNotAscending,
}

impl TryFrom<UncheckedState> for FittedSeasonalNaive {
    type Error = SnapshotError;

    fn try_from(snapshot: UncheckedState) -> Result<Self, SnapshotError> {
        let UncheckedState { steps_seen, last, by_phase, differences } = snapshot;
        let season_steps = by_phase.len();
        if season_steps == 0 {
            return Err(SnapshotError::SeasonEmpty);
        }
        let in_place = |phase: usize, measured: LastMeasurement| {
            measured.value.is_finite() && measured.index < steps_seen && measured.index % season_steps == phase
        };
        for (phase, measured) in by_phase.iter().enumerate() {
            if measured.is_some_and(|measured| !in_place(phase, measured)) {
                return Err(SnapshotError::ValueOutOfPlace { phase });
            }
        }
        if by_phase[last.index % season_steps] != Some(last) {
            return Err(SnapshotError::LastValueUnknown);
        }
        if !differences.iter().all(|difference| difference.is_finite()) || !differences.is_sorted() {
            return Err(SnapshotError::DifferencesNotAscending);
        }
        Ok(Self { steps_seen, last, by_phase, differences })
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    const GAP: Option<f64> = None;

    fn fitted(season_steps: usize, values: &[Option<f64>]) -> FittedSeasonalNaive {
        let series = Series::from_options(0, 1000, values.iter().copied()).unwrap();
        SeasonalNaive { season_steps }.fit(&series).unwrap()
    }

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    fn point(model: &FittedSeasonalNaive, steps: usize) -> Vec<f64> {
        model.predict(Horizon::steps(steps), &[]).point().to_vec()
    }

    #[test]
    fn hand_worked_two_steps_a_season() {
        // Differences over a season: 12-10 = 2, 21-20 = 1, 11-12 = -1, 25-21 = 4; ascending -1 1 2
        // 4, median 1.5, centred -2.5 -0.5 0.5 2.5. Level 0.2 sits at position 0.6: -2.5 + 0.6*2 =
        // -1.3; level 0.8 is its mirror: 1.3.
        let model = fitted(2, &some(&[10.0, 20.0, 12.0, 21.0, 11.0, 25.0]));
        let forecast = model.predict(Horizon::steps(5), &[0.2, 0.5, 0.8]);
        assert_eq!(forecast.point(), array![11.0, 25.0, 11.0, 25.0, 11.0]);
        assert_eq!(forecast.quantile(0.5).unwrap(), forecast.point());

        let spread = &forecast.quantile(0.8).unwrap() - &forecast.point();
        let expected = [1.3, 1.3, 1.3 * 2_f64.sqrt(), 1.3 * 2_f64.sqrt(), 1.3 * 3_f64.sqrt()];
        for (spread, expected) in spread.iter().zip(expected) {
            assert!((spread - expected).abs() < 1e-12, "{spread} is not {expected}");
        }
        let below = &forecast.point() - &forecast.quantile(0.2).unwrap();
        assert!((&below - &spread).iter().all(|difference| difference.abs() < 1e-12));
    }

    #[test]
    fn constant_and_zero_series_are_certain() {
        for value in [7.5, 0.0] {
            let model = fitted(3, &some(&[value; 12]));
            let forecast = model.predict(Horizon::steps(7), &[0.01, 0.99]);
            assert!(forecast.quantiles().iter().all(|&quantile| quantile == value));
            assert!(forecast.point().iter().all(|&point| point == value));
        }
    }

    #[test]
    fn less_than_a_season_repeats_the_last_value() {
        let model = fitted(48, &some(&[1.0, 4.0, 2.0]));
        assert_eq!(model.season_steps(), 1);
        assert_eq!(point(&model, 50), vec![2.0; 50]);
        // One-step differences 3 and -2, median 0.5, centred -2.5 and 2.5; level 0.9 is at 2.0, and
        // grows with sqrt(h).
        let upper = model.predict(Horizon::steps(4), &[0.9]);
        assert!((upper.quantiles()[[3, 0]] - (2.0 + 2.0 * 2.0)).abs() < 1e-12);
    }

    #[test]
    fn one_season_has_a_shape_but_no_spread() {
        let model = fitted(3, &some(&[1.0, 4.0, 2.0]));
        assert_eq!(point(&model, 4), [1.0, 4.0, 2.0, 1.0]);
        assert_eq!(model.predict(Horizon::steps(1), &[0.9]).quantiles()[[0, 0]], 1.0);
    }

    #[test]
    fn gaps_reach_back_to_the_last_measured_season() {
        let values = [Some(1.0), Some(2.0), GAP, Some(5.0), Some(4.0), GAP, Some(7.0), GAP, GAP];
        // Phases: 0 -> 1, 5, 7; 1 -> 2, 4, gap; 2 -> never measured, so the last value, 7.
        let model = fitted(3, &values);
        assert_eq!(point(&model, 4), [7.0, 4.0, 7.0, 7.0]);
        assert_eq!(model.repeated(9), (7.0, 1), "phase 0, measured at 6");
        assert_eq!(model.repeated(10), (4.0, 2), "phase 1, measured at 4");
        assert_eq!(model.repeated(11), (7.0, 2), "phase 2, from index 6: 5 steps are two seasons begun");

        // A difference over two seasons counts by its half in variance: (9-5)/sqrt(2).
        let apart = fitted(1, &[Some(5.0), GAP, Some(9.0)]);
        assert_eq!(apart.differences, [4.0 / 2_f64.sqrt()]);
    }

    #[test]
    fn updating_moves_the_season_and_not_the_spread() {
        let mut model = fitted(2, &some(&[10.0, 20.0, 12.0, 21.0]));
        let before = model.differences.clone();
        model.update(&[30.0, f64::NAN, f64::INFINITY]);
        assert_eq!(point(&model, 3), [21.0, 30.0, 21.0], "step 7 has phase 1, last measured at 3");
        assert_eq!(model.differences, before);
    }

    #[test]
    fn nothing_to_learn_from_is_an_error() {
        let series = Series::from_options(0, 1, [GAP, GAP]).unwrap();
        assert_eq!(SeasonalNaive { season_steps: 1 }.fit(&series), Err(FitError::NothingObserved { len: 2 }));
        assert_eq!(SeasonalNaive { season_steps: 0 }.fit(&series), Err(FitError::SeasonEmpty));
    }

    #[test]
    fn a_snapshot_is_checked_when_read() {
        let mut model = fitted(2, &[Some(1.5), GAP, Some(1.0 / 3.0)]);
        model.update(&[f64::NAN]);
        let json = serde_json::to_string(&model).unwrap();
        assert_eq!(serde_json::from_str::<FittedSeasonalNaive>(&json).unwrap(), model);

        let broken = [
            (r#""by_phase":[{"index":2,"value":0.3333333333333333},null]"#, r#""by_phase":[]"#, "season of 0"),
            (r#""steps_seen":4"#, r#""steps_seen":2"#, "out of place at phase 0"),
            (r#""last":{"index":2"#, r#""last":{"index":3"#, "last value"),
            (r#""differences":["#, r#""differences":[5.0,"#, "ascending"),
        ];
        for (from, to, complaint) in broken {
            assert!(json.contains(from), "{from} in {json}");
            let error = serde_json::from_str::<FittedSeasonalNaive>(&json.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(complaint), "{error}");
        }
    }
}
