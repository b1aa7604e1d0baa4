//! Running a study.

use std::num::NonZeroUsize;

use goodput_agents::bundle::forecaster::{ForecasterBundle, ForecasterError};
use goodput_datasets::DataError;
use goodput_datasets::import::{ImportReport, series};
use goodput_forecast::decide::Objective;
use goodput_forecast::lending::{LendingFleet, LendingScore};
use goodput_forecast::neural::NeuralNet;
use goodput_forecast::{
    Adaptive, Backtest, BacktestError, BacktestReport, FitError, Horizon, Lender, Model, Refit, Series, block_bootstrap,
};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::report::plots::Fan;
use goodput_configs::forecast::{ForecastConfig, LendingConfig, SeriesConfig};
use goodput_configs::scenario::SetupError;

/// Reason for which a study cannot be run.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The series cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A setting is out of its range.
    #[error(transparent)]
    Setting(#[from] SetupError),
    /// The backtest cannot be run.
    #[error("backtest: {0}")]
    Backtest(#[from] BacktestError),
    /// The forecaster cannot be fitted.
    #[error("fit: {0}")]
    Fit(#[from] FitError),
    /// A trained forecaster cannot be read.
    #[error(transparent)]
    Bundle(#[from] ForecasterError),
    /// A trained forecaster of another step or day.
    #[error(
        "{name} was trained on steps of {} s, {} a day, and the series has steps of {} s, {} a day: set series.step_secs, or train on this series",
        of.0 as f64 / 1e3, of.1, series.0 as f64 / 1e3, series.1
    )]
    OtherSteps {
        /// Name of the forecaster.
        name: String,
        /// Milliseconds of its step, steps of its day.
        of: (i64, usize),
        /// Step in milliseconds and steps of a day of the series.
        series: (i64, usize),
    },
    /// A backtest that begins before the end of what a forecaster was trained on.
    #[error(
        "{name} has seen the series up to {unseen_from_epoch_millis} ms since 1970, and the first forecast is at {first_epoch_millis}: set backtest.initial_share to at least {share:.3}, or train with a smaller data.known_share"
    )]
    Seen {
        /// Name of the forecaster.
        name: String,
        /// First time it has not seen.
        unseen_from_epoch_millis: i64,
        /// Time of the first forecast.
        first_epoch_millis: i64,
        /// Share that would do.
        share: f64,
    },
    /// A series that ends before the parts of a study do.
    #[error(
        "{name} has {days:.1} days, and known_days, validation_days and two days of test are {needed:.1}: shorten them"
    )]
    Short {
        /// Name of the load.
        name: String,
        /// Days of the series.
        days: f64,
        /// Days that the study needs.
        needed: f64,
    },
    /// A day is not a whole number of steps.
    #[error(
        "a day is not a whole number of steps of {step_millis} ms: set model.day_steps, or resample with series.step_secs"
    )]
    Day {
        /// Step of the series in milliseconds.
        step_millis: i64,
    },
}

/// Scores of one forecaster over one distance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreRow {
    /// Name of the forecaster.
    pub model: String,
    /// Hours ahead that are scored.
    pub hours: f64,
    /// Mean absolute scaled error.
    pub mase: Option<f64>,
    /// Weighted absolute percentage error.
    pub wape: Option<f64>,
    /// Twice the mean pinball loss over the levels, relative to the mean load: about the CRPS.
    pub crps: Option<f64>,
    /// Coverage of the 0.9 quantile.
    pub coverage: Option<f64>,
    /// 95 % interval of its mean absolute error minus that of the default, by blocks of a day;
    /// `None` for the default itself.
    pub difference: Option<(f64, f64)>,
}

/// Result of one lending rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LendingRow {
    /// Name of the lending rule.
    pub lender: String,
    /// Score of the lending rule.
    pub score: LendingScore,
}

/// A series with everything that a study needs.
#[derive(Clone, Debug)]
pub struct Study {
    /// Load series of the study.
    pub series: Series,
    /// Repairs and refusals of the importer.
    pub import: ImportReport,
    /// Forecaster of the study.
    pub model: Adaptive,
    /// Trained forecasters among those it weighs, by name.
    pub trained: Vec<ForecasterBundle>,
    /// Steps in a day.
    pub day_steps: usize,
    /// Path of the series.
    source: String,
    backtest: Backtest,
    lending: Option<LendingConfig>,
}

/// Reads a series. Strict: scores on a part of a series compare with nothing.
///
/// # Errors
/// A file that cannot be read or is no series; the first row that is refused, with its line.
pub fn read_series(config: &SeriesConfig) -> Result<(Series, ImportReport), DataError> {
    let text = std::fs::read(&config.path).map_err(|source| DataError::Read { path: config.path.clone(), source })?;
    let (series, report) = series::parse(&config.path, &text, &config.options())?;
    match report.refused.examples.iter().min_by_key(|(line, _)| *line) {
        Some((line, problem)) => {
            Err(DataError::Row { path: config.path.clone(), line: *line, problem: problem.clone() })
        }
        None => Ok((series, report)),
    }
}

impl Study {
    /// Reads what a file names.
    ///
    /// # Errors
    /// A series that cannot be read, or has no days.
    pub fn new(config: &ForecastConfig) -> Result<Self, StudyError> {
        config.check()?;
        let (series, import) = read_series(&config.series)?;
        let step_millis = series.step_millis();
        let day_steps = config.model.day_steps.or(series.steps_per_day()).ok_or(StudyError::Day { step_millis })?;
        let steps = |hours: f64| ((hours * day_steps as f64 / 24.0).round() as usize).max(1);
        let horizon = steps(config.backtest.horizon_hours);
        let stride = steps(config.backtest.stride_hours);
        let backtest = Backtest {
            initial_steps: ((series.len() as f64 * config.backtest.initial_share.clamp(0.0, 1.0)) as usize).max(1),
            stride_steps: stride,
            horizon: Horizon::steps(horizon),
            refit: Refit::RefreshEvery(NonZeroUsize::new(day_steps / stride).unwrap_or(NonZeroUsize::MIN)),
            levels: levels(),
            scale_season_steps: day_steps,
        };
        let mut trained = Vec::new();
        for path in &config.model.bundles {
            let bundle = ForecasterBundle::load(path)?;
            let (of, own) = ((bundle.card.step_millis, bundle.net.spec().day_steps), (step_millis, day_steps));
            if of != own {
                return Err(StudyError::OtherSteps { name: bundle.name, of, series: own });
            }
            trained.push(bundle);
        }
        let mut model = config.model.forecaster(day_steps, horizon);
        model.nets = trained.iter().map(|bundle| bundle.net.clone()).collect();
        let path = config.series.path.display();
        let source = config.series.column.as_ref().map_or(format!("{path}"), |column| format!("{path}, {column}"));
        Ok(Self { series, import, model, trained, day_steps, source, backtest, lending: config.lending.clone() })
    }

    /// Checks that no trained forecaster has seen the part of the series that it is to forecast.
    fn check_unseen(&self) -> Result<(), StudyError> {
        let first_epoch_millis = self.series.time_epoch_millis(self.backtest.initial_steps);
        match self.trained.iter().find(|bundle| bundle.card.unseen_from_epoch_millis > first_epoch_millis) {
            None => Ok(()),
            Some(bundle) => {
                let unseen_from_epoch_millis = bundle.card.unseen_from_epoch_millis;
                let seen = (unseen_from_epoch_millis - self.series.start_epoch_millis()) as f64;
                let whole = (self.series.end_epoch_millis() - self.series.start_epoch_millis()) as f64;
                let (name, share) = (bundle.name.clone(), (1e3 * seen / whole.max(1.0)).ceil() / 1e3);
                Err(StudyError::Seen { name, unseen_from_epoch_millis, first_epoch_millis, share })
            }
        }
    }

    /// Subject of the forecast, in a sentence.
    pub fn about(&self) -> String {
        let secs = self.series.step_millis() as f64 / 1e3;
        let (steps, measured) = (self.series.len(), self.series.observed_len());
        let from = self.backtest.initial_steps;
        format!(
            "{}: {steps} steps of {secs} s, of which {measured} are measured; forecast from step {from} on.",
            self.source
        )
    }

    /// Runs the forecaster of the file.
    ///
    /// # Errors
    /// A series too short for one origin, or forecasts of what a trained forecaster has seen.
    pub fn run(&self) -> Result<BacktestReport, StudyError> {
        self.check_unseen()?;
        Ok(self.backtest.run(&self.model, &self.series)?)
    }

    /// Runs every model and every trained forecaster alone too, in parallel; the forecaster of the
    /// file comes first.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn compare(&self) -> Result<Vec<(String, BacktestReport)>, StudyError> {
        self.check_unseen()?;
        let only = |models: Vec<Model>, nets: Vec<NeuralNet>| Adaptive { models, nets, ..self.model.clone() };
        let models = Model::ALL.map(|model| (model.name(), only(vec![model], vec![])));
        let nets = self.trained.iter().map(|bundle| (bundle.name.as_str(), only(vec![], vec![bundle.net.clone()])));
        let first = std::iter::once(("default", self.model.clone()));
        let all: Vec<(&str, Adaptive)> = first.chain(models).chain(nets).collect();
        all.into_par_iter()
            .map(|(name, model)| Ok((name.to_string(), self.backtest.run(&model, &self.series)?)))
            .collect()
    }

    /// Scores over the first hour, the first six and the whole horizon, each forecaster against the
    /// first one.
    pub fn scores(&self, reports: &[(String, BacktestReport)]) -> Vec<ScoreRow> {
        let per_hour = self.day_steps as f64 / 24.0;
        let whole = self.backtest.horizon.get();
        let mut bands: Vec<usize> = [1.0, 6.0].iter().map(|hours| (hours * per_hour).round() as usize).collect();
        bands.retain(|&steps| steps >= 1 && steps < whole);
        bands.push(whole);
        let day_of_origins = (self.day_steps / self.backtest.stride_steps).max(1);
        let mut rows = Vec::new();
        for steps in bands {
            let first = reports.first().map(|(_, report)| losses(report, steps)).unwrap_or_default();
            for (index, (name, report)) in reports.iter().enumerate() {
                let scores = report.scores_within(steps);
                let mean_load =
                    scores.mae.zip(scores.wape).filter(|(_, wape)| *wape > 0.0).map(|(mae, wape)| mae / wape);
                let pinball: Option<Vec<f64>> = scores.levels.iter().map(|level| level.pinball).collect();
                let crps = pinball
                    .zip(mean_load)
                    .map(|(losses, mean)| 2.0 * losses.iter().sum::<f64>() / losses.len() as f64 / mean);
                let differences: Vec<f64> = losses(report, steps).iter().zip(&first).map(|(a, b)| a - b).collect();
                rows.push(ScoreRow {
                    model: name.clone(),
                    hours: steps as f64 / per_hour,
                    mase: scores.mase,
                    wape: scores.wape,
                    crps,
                    coverage: scores.levels.iter().find(|level| level.level == 0.9).and_then(|level| level.coverage),
                    difference: if index == 0 {
                        None
                    } else {
                        block_bootstrap(&differences, day_of_origins, 1000, 0.95)
                    },
                });
            }
        }
        rows
    }

    /// Lends by the forecast, by the last value and by the truth; empty where the file lends
    /// nothing.
    ///
    /// # Errors
    /// A series that cannot be fitted.
    pub fn lend(&self) -> Result<Vec<LendingRow>, StudyError> {
        self.check_unseen()?;
        let Some(config) = &self.lending else { return Ok(vec![]) };
        let peak = self.series.observed().map(|(_, y)| y).fold(0.0, f64::max);
        let all = f64::from(config.accelerators.max(1));
        let load_per_accelerator = config.load_per_accelerator.unwrap_or(peak / all).max(f64::MIN_POSITIVE);
        let fleet = LendingFleet { accelerators: config.accelerators, load_per_accelerator };
        let lease = config.lease(self.day_steps as f64 / 24.0);
        let target = config.target;
        let steps = |target: f64| (format!("steps {target}"), Lender::Decided(Objective::Steps(target)));
        let leases = |target: f64| (format!("leases {target}"), Lender::Decided(Objective::Leases(target)));
        let cost =
            |shortage: f64| (format!("cost {shortage}:1"), Lender::Decided(Objective::Cost { shortage, idle: 1.0 }));
        let reactive = |headroom: f64| (format!("reactive +{:.0} %", 100.0 * headroom), Lender::Reactive { headroom });
        let lenders: Vec<(String, Lender)> =
            std::iter::once((format!("default: steps {target}"), Lender::Decided(Objective::Steps(target))))
                .chain([0.5, 0.2, 0.1, 0.05, 0.02, 0.005].map(steps))
                .chain([0.2, 0.1, 0.02].map(leases))
                .chain([20.0, 100.0].map(cost))
                .chain([0.0, 0.1, 0.2, 0.5, 1.0, 2.0].map(reactive))
                .chain([("oracle".to_string(), Lender::Oracle)])
                .collect();
        lenders
            .into_par_iter()
            .map(|(lender, how)| {
                let loans = how.run(&self.model, &self.series, &fleet, &lease, self.backtest.initial_steps)?;
                Ok(LendingRow { lender, score: LendingScore::of(&fleet, &loans) })
            })
            .collect()
    }

    /// The fan chart of the last origin.
    pub fn fan(&self, report: &BacktestReport) -> Option<Fan> {
        let last = report.origins.last()?;
        let known = self.series.slice(last.origin.saturating_sub(2 * self.day_steps)..last.origin).ok()?;
        let column = |level: f64| last.forecast.quantile(level).map(|values| values.to_vec());
        let bands =
            [(0.05, 0.95), (0.25, 0.75)].into_iter().filter_map(|(low, high)| Some((column(low)?, column(high)?)));
        Some(Fan {
            known: known.values().to_vec(),
            came: last.actual.values().to_vec(),
            median: last.forecast.point().to_vec(),
            bands: bands.collect(),
            steps_per_hour: self.day_steps as f64 / 24.0,
        })
    }
}

/// The levels of a study: 0.01, 0.05 to 0.95, 0.99.
fn levels() -> Vec<f64> {
    std::iter::once(0.01).chain((1..=19).map(|i| f64::from(i) * 5.0 / 100.0)).chain([0.99]).collect()
}

/// Mean absolute error of each origin over its first `steps`; 0 where nothing was measured.
fn losses(report: &BacktestReport, steps: usize) -> Vec<f64> {
    let loss = |origin: &goodput_forecast::OriginReport| {
        let pairs = origin.actual.values().to_vec().into_iter().zip(origin.forecast.point().to_vec()).take(steps);
        let errors: Vec<f64> = pairs.filter(|(y, _)| !y.is_nan()).map(|(y, f)| (y - f).abs()).collect();
        if errors.is_empty() { 0.0 } else { errors.iter().sum::<f64>() / errors.len() as f64 }
    };
    report.origins.iter().map(loss).collect()
}
