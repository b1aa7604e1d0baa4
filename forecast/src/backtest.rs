//! Backtest of a forecaster from rolling origins.
//!
//! Stand at an origin, know only what came before it, forecast, move on, and score at the end. The
//! model is handed the values it may know, never the series, so it cannot see the future even by
//! mistake; the scale of MASE comes from the initial window alone, so that all origins and all
//! models share it. Hyndman and Athanasopoulos, "Forecasting: Principles and Practice" (3rd ed.),
//! section 5.10.

use std::num::NonZeroUsize;
use std::ops::Range;

use ndarray::{ArrayView1, s};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Fit, FitError, Forecast, ForecastError, ForecastScores, Horizon, Predict, Series, check_levels, metrics};

/// Settings of a backtest: the origins, the horizon, and when the model is fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backtest {
    /// Steps known at the first origin, at least 1.
    pub initial_steps: usize,
    /// Steps from one origin to the next, at least 1.
    pub stride_steps: usize,
    /// Steps forecast at each origin, at least 1; an origin with fewer steps left after it is not
    /// used.
    pub horizon: Horizon,
    /// Origins at which the model is fitted anew; at the others it is updated with the values since
    /// the last origin.
    pub refit: Refit,
    /// Quantile levels, ascending between 0 and 1.
    pub levels: Vec<f64>,
    /// Season of the naive forecast that scales MASE, in steps.
    pub scale_season_steps: usize,
}

/// Schedule of fits in a backtest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refit {
    /// At the first origin only.
    Never,
    /// At the first origin and at every given number of origins after it, on all values before the
    /// origin.
    EveryOrigins(NonZeroUsize),
    /// At the first origin, and at every given number of origins after it by [`Predict::refresh`],
    /// which estimates parameters anew and keeps everything that was learnt online.
    RefreshEvery(NonZeroUsize),
}

/// Result of a backtest: forecasts, outcomes and scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BacktestReport {
    /// One entry an origin, in order; at least one.
    pub origins: Vec<OriginReport>,
    /// The scale of MASE: [`metrics::seasonal_naive_mae`] of the initial window, `None` if it is
    /// shorter than a season.
    pub mase_scale: Option<f64>,
    /// Scores over all steps of all origins.
    pub scores: ForecastScores,
}

/// The forecast at one origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OriginReport {
    /// Index of the first step forecast: the model knew all steps before it.
    pub origin: usize,
    /// Whether the model was estimated anew here.
    pub refitted: bool,
    /// Forecast made at the origin.
    pub forecast: Forecast,
    /// Load that came, as many steps as were forecast, gaps included; the first step is the origin.
    pub actual: Series,
    /// Scores over the steps of this origin.
    pub scores: ForecastScores,
}

/// Reasons for which a backtest cannot run.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BacktestError {
    /// A length that has to be at least 1 is 0.
    #[error("`{setting}` is 0")]
    SettingZero {
        /// Name of the setting.
        setting: &'static str,
    },
    /// The series ends before the first horizon does.
    #[error("a series of {len} steps is too short: the first forecast needs {needed}")]
    SeriesTooShort {
        /// Steps of the series.
        len: usize,
        /// Initial window and horizon together.
        needed: usize,
    },
    /// The levels asked for are no quantile levels.
    #[error(transparent)]
    Levels(#[from] ForecastError),
    /// The model could not be fitted at an origin.
    #[error("fit at origin {origin}")]
    Fit {
        /// Index of the first step to forecast.
        origin: usize,
        /// Error of the fit.
        source: FitError,
    },
}

impl Backtest {
    /// Runs `model` over `series`.
    ///
    /// # Errors
    /// Settings of 0, bad levels, a series too short for one origin, or a model that cannot be
    /// fitted.
    pub fn run<M: Fit>(&self, model: &M, series: &Series) -> Result<BacktestReport, BacktestError> {
        self.check(series)?;
        let mase_scale = metrics::seasonal_naive_mae(&part(series, 0..self.initial_steps), self.scale_season_steps);

        let mut origins = Vec::new();
        let mut known: Option<(M::Fitted, usize)> = None;
        for (number, origin) in self.origin_indices(series.len()).enumerate() {
            let (fitted, refitted) = match known.take() {
                Some((mut fitted, known_steps)) if !self.refit.is_due(number) => {
                    // Only values before the origin are handed over: the model cannot see the
                    // future by mistake.
                    fitted.update(&series.values().slice(s![known_steps..origin]).to_vec());
                    if self.refit.is_refresh_due(number) {
                        fitted.refresh();
                    }
                    (fitted, false)
                }
                _ => {
                    let fitted = model.fit(&part(series, 0..origin));
                    let fitted = fitted.map_err(|source| BacktestError::Fit { origin, source })?;
                    (fitted, true)
                }
            };
            let forecast = fitted.predict(self.horizon, &self.levels);
            let actual = part(series, origin..origin + self.horizon.get());
            origins.push(OriginReport {
                origin,
                refitted,
                scores: ForecastScores::pooled([(actual.values(), &forecast)], mase_scale),
                forecast,
                actual,
            });
            known = Some((fitted, origin));
        }
        let scores = ForecastScores::pooled(origins.iter().map(OriginReport::pair), mase_scale);
        Ok(BacktestReport { origins, mase_scale, scores })
    }

    /// Indices of the origins in a series of `len` steps: those with a whole horizon after them.
    fn origin_indices(&self, len: usize) -> impl Iterator<Item = usize> + use<> {
        // The end is exclusive, hence the one more: the last origin has exactly one horizon after
        // it.
        let end = (len + 1).saturating_sub(self.horizon.get());
        (self.initial_steps..end).step_by(self.stride_steps)
    }

    fn check(&self, series: &Series) -> Result<(), BacktestError> {
        let lengths = [
            ("initial_steps", self.initial_steps),
            ("stride_steps", self.stride_steps),
            ("horizon", self.horizon.get()),
            ("scale_season_steps", self.scale_season_steps),
        ];
        if let Some((setting, _)) = lengths.into_iter().find(|(_, steps)| *steps == 0) {
            return Err(BacktestError::SettingZero { setting });
        }
        check_levels(&self.levels)?;
        let needed = self.initial_steps.saturating_add(self.horizon.get());
        if series.len() < needed {
            return Err(BacktestError::SeriesTooShort { len: series.len(), needed });
        }
        Ok(())
    }
}

impl BacktestReport {
    /// Scores over the first `steps` steps ahead of all origins: a forecast good for the next hour
    /// may be bad for the next day.
    pub fn scores_within(&self, steps: usize) -> ForecastScores {
        let forecasts: Vec<Forecast> = self.origins.iter().map(|origin| origin.forecast.first(steps)).collect();
        let actuals = self.origins.iter().map(|origin| {
            let steps = steps.min(origin.actual.len());
            origin.actual.values().slice_move(s![..steps])
        });
        ForecastScores::pooled(actuals.zip(&forecasts), self.mase_scale)
    }
}

impl OriginReport {
    fn pair(&self) -> (ArrayView1<'_, f64>, &Forecast) {
        (self.actual.values(), &self.forecast)
    }
}

impl Refit {
    /// Whether origin `number`, counted from 0, is one to refit at.
    fn is_due(self, number: usize) -> bool {
        match self {
            Refit::Never | Refit::RefreshEvery(_) => number == 0,
            Refit::EveryOrigins(origins) => number.is_multiple_of(origins.get()),
        }
    }

    fn is_refresh_due(self, number: usize) -> bool {
        matches!(self, Refit::RefreshEvery(origins) if number.is_multiple_of(origins.get()))
    }
}

/// Part of a series: the values known at an origin, or the values after it.
fn part(series: &Series, range: Range<usize>) -> Series {
    series.slice(range).expect("an origin and its horizon lie inside the series")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeasonalNaive;

    fn every(origins: usize) -> Refit {
        Refit::EveryOrigins(NonZeroUsize::new(origins).unwrap())
    }

    fn backtest(refit: Refit) -> Backtest {
        Backtest {
            initial_steps: 4,
            stride_steps: 3,
            horizon: Horizon::steps(2),
            refit,
            levels: vec![0.5],
            scale_season_steps: 2,
        }
    }

    fn series(len: usize) -> Series {
        Series::new(1_000, 10, (0..len).map(|index| (index * index) as f64).collect()).unwrap()
    }

    #[test]
    fn hand_worked_origins_and_scores() {
        let report = backtest(Refit::Never).run(&SeasonalNaive { season_steps: 2 }, &series(12)).unwrap();
        // 0 1 4 9 | 16 25 36 | 49 64 81 | 100 121: origins 4, 7 and 10; 10 + 2 = 12 just fits.
        let origins: Vec<usize> = report.origins.iter().map(|origin| origin.origin).collect();
        assert_eq!(origins, [4, 7, 10]);
        assert_eq!(report.origins[1].actual.start_epoch_millis(), 1_070);
        // Forecasts repeat two steps before: 4 9 for 16 25, 25 36 for 49 64, 64 81 for 100 121.
        let errors = [12.0, 16.0, 24.0, 28.0, 36.0, 40.0];
        assert_eq!(report.scores.mae, Some(errors.iter().sum::<f64>() / 6.0));
        assert_eq!(report.origins[0].scores.mae, Some(14.0));
        // The initial window 0 1 4 9 has seasonal differences 4 and 8.
        assert_eq!(report.mase_scale, Some(6.0));
        assert_eq!(report.scores.mase, Some(26.0 / 6.0));
        assert_eq!(report.scores_within(1).mae, Some((12.0 + 24.0 + 36.0) / 3.0));
        assert_eq!(report.scores_within(99), report.scores);
    }

    #[test]
    fn refits_when_it_is_due_and_updates_otherwise() {
        let refitted = |refit| -> Vec<bool> {
            let report = backtest(refit).run(&SeasonalNaive { season_steps: 2 }, &series(18)).unwrap();
            report.origins.iter().map(|origin| origin.refitted).collect()
        };
        assert_eq!(refitted(Refit::Never), [true, false, false, false, false]);
        assert_eq!(refitted(every(1)), [true; 5]);
        assert_eq!(refitted(every(2)), [true, false, true, false, true]);
    }

    #[test]
    fn settings_and_series_are_checked() {
        let model = SeasonalNaive { season_steps: 2 };
        let run = |change: fn(&mut Backtest), len: usize| {
            let mut backtest = backtest(Refit::Never);
            change(&mut backtest);
            backtest.run(&model, &series(len)).unwrap_err().to_string()
        };
        assert_eq!(run(|_| {}, 5), "a series of 5 steps is too short: the first forecast needs 6");
        assert_eq!(run(|backtest| backtest.stride_steps = 0, 9), "`stride_steps` is 0");
        assert_eq!(run(|backtest| backtest.horizon = Horizon::steps(0), 9), "`horizon` is 0");
        assert_eq!(
            run(|backtest| backtest.levels = vec![2.0], 9),
            "quantile level 2 at index 0 is not between 0 and 1"
        );
    }

    #[test]
    fn a_model_that_cannot_be_fitted_names_the_origin() {
        let gaps = Series::from_options(0, 1, [None; 8]).unwrap();
        let error = backtest(Refit::Never).run(&SeasonalNaive { season_steps: 2 }, &gaps).unwrap_err();
        assert_eq!(error, BacktestError::Fit { origin: 4, source: FitError::NothingObserved { len: 4 } });
    }

    #[test]
    fn settings_read_as_they_are_written() {
        let json = serde_json::to_string(&backtest(every(6))).unwrap();
        assert!(json.contains(r#""horizon":2,"refit":{"every_origins":6}"#), "{json}");
        assert_eq!(serde_json::from_str::<Backtest>(&json).unwrap(), backtest(every(6)));
    }
}
