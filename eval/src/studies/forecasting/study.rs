//! Running a study.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::path::Path;

use goodput_agents::bundle::forecaster::ForecasterBundle;
use goodput_agents::zoo;
use goodput_datasets::DataError;
use goodput_datasets::import::covariates::{self, epoch_millis_of_day};
use goodput_datasets::import::panel::{self, PanelSeries, SeriesPanel};
use goodput_datasets::samples::load_series;
use goodput_forecast::calendar::MILLIS_PER_DAY;
use goodput_forecast::covariates::{Covariates, Regressed};
use goodput_forecast::decide::Objective;
use goodput_forecast::lending::{LendingFleet, LendingScore};
use goodput_forecast::neural::NeuralNet;
use goodput_forecast::{
    Adaptive, Backtest, BacktestReport, Fit, FitError, ForecasterSnapshot, Horizon, Lender, Model, Refit, Series,
    season_steps,
};
use rayon::prelude::*;
use serde::Serialize;

use super::StudyError;
use crate::report::plots::Fan;
use goodput_configs::forecast::{CovariatesConfig, ForecastConfig, LendingConfig, Season, SeriesConfig};

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
    /// Name of the series in its panel; `None` for a table of one series.
    pub id: Option<String>,
    /// Whether times are dates, not numbers.
    pub dated: bool,
    /// Load series of the study.
    pub series: Series,
    /// Covariates of the series, which the forecaster of the study is given.
    pub covariates: Option<Covariates>,
    /// Forecaster of the study.
    pub model: Adaptive,
    /// Trained forecasters among those it weighs, by name.
    pub trained: Vec<ForecasterBundle>,
    /// Steps in a day, rounded.
    pub day_steps: usize,
    /// Short season of the models, which scales MASE.
    pub season: Season,
    /// Path of the series.
    source: String,
    /// Name of the series as a net of all series knows it: the stem of the file and the column.
    named: String,
    pub(super) backtest: Backtest,
    lending: Option<LendingConfig>,
}

/// Name of a series in the card of a net of all series: the stem of its file, and its column.
pub fn series_name(path: &Path, column: Option<&str>) -> String {
    format!("{}:{}", path.file_stem().unwrap_or_default().to_string_lossy(), column.unwrap_or_default())
}

/// Reads the series of a file. Strict: scores on a part of a series compare with nothing.
///
/// # Errors
/// A file that cannot be read or has no series; the first row that is refused, with its line.
pub fn read_panel(config: &SeriesConfig) -> Result<SeriesPanel, DataError> {
    let bytes = match load_series(&config.path)? {
        Some(bytes) => Cow::Borrowed(bytes),
        None => {
            let read = std::fs::read(&config.path);
            Cow::Owned(read.map_err(|source| DataError::Read { path: config.path.clone(), source })?)
        }
    };
    panel::parse(&config.path, &bytes, &config.options(), &config.ids)?.strict(&config.path)
}

/// Reads the one series of a file, as [`read_panel`] does.
///
/// # Errors
/// As [`read_panel`], and a panel of several series.
pub fn read_series(config: &SeriesConfig) -> Result<Series, DataError> {
    read_panel(config)?.only(&config.path)
}

/// Days after the end of a series for which dates of holidays are known: on a day that the file does not list, there
/// is none.
const HOLIDAY_DAYS: i64 = 400;

/// Reads the covariates of the series `id`.
fn read_covariates(config: &CovariatesConfig, id: Option<&str>, series: &Series) -> Result<Covariates, StudyError> {
    let mut columns = match &config.path {
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|source| DataError::Read { path: path.clone(), source })?;
            covariates::parse(path, &bytes, &config.columns, id)?
        }
        None => vec![],
    };
    let days: Vec<i64> = config.holidays.iter().filter_map(|day| epoch_millis_of_day(day)).collect();
    if !days.is_empty() {
        let end = series.end_epoch_millis() + HOLIDAY_DAYS * MILLIS_PER_DAY;
        columns.push(covariates::holidays(&days, series.start_epoch_millis(), end));
    }
    let covariates = Covariates::try_from(columns)?;
    covariates.check(series.start_epoch_millis(), series.step_millis(), series.len())?;
    Ok(covariates)
}

impl Study {
    /// Reads what a file names: a study for each series, in their order.
    ///
    /// # Errors
    /// A series that cannot be read, or has no season.
    pub fn all(config: &ForecastConfig) -> Result<Vec<Self>, StudyError> {
        config.check()?;
        let SeriesPanel { series, dated, .. } = read_panel(&config.series)?;
        let bundles = config.model.bundles.iter().map(|path| zoo::open_forecaster(path));
        let bundles = bundles.collect::<Result<Vec<_>, _>>()?;
        let studies = series.into_iter().map(|PanelSeries { id, series }| {
            let known = config.covariates.as_ref();
            let known = known.map(|known| read_covariates(known, id.as_deref(), &series)).transpose();
            let study = known.and_then(|covariates| Ok(Self { covariates, ..Self::of(config, series, &bundles)? }));
            match (study, id) {
                (Ok(study), id) => {
                    let column = id.clone().or_else(|| config.series.column.clone());
                    let named = series_name(&config.series.path, column.as_deref());
                    Ok(Self { id, dated, named, ..study })
                }
                (Err(fault), Some(id)) => Err(StudyError::Of { id, fault: Box::new(fault) }),
                (Err(fault), None) => Err(fault),
            }
        });
        studies.collect()
    }

    fn of(config: &ForecastConfig, series: Series, bundles: &[ForecasterBundle]) -> Result<Self, StudyError> {
        let step_millis = series.step_millis();
        let season = config.model.season;
        let initial_steps = ((series.len() as f64 * config.backtest.initial_share.clamp(0.0, 1.0)) as usize).max(1);
        let day = config.model.day_steps.or(series.steps_per_day());
        let whole = |steps: Option<usize>| steps.ok_or(StudyError::Day { season: season.name(), step_millis });
        let [short, long] = match season {
            Season::Day => whole(day).map(|day| [day, 7 * day])?,
            Season::Hour => {
                let hour = whole(day.filter(|day| day.is_multiple_of(24)).map(|day| day / 24))?;
                [hour, 24 * hour]
            }
            Season::Week => whole(day.map(|day| 7 * day).or(series.steps_per_week())).map(|week| [week, 52 * week])?,
            Season::Detected => {
                let known = series.slice(0..initial_steps.min(series.len())).unwrap_or_else(|_| series.clone());
                let found = season_steps(&known).ok_or(StudyError::NoSeason)?;
                [found, 7 * found]
            }
        };
        let clock = (MILLIS_PER_DAY as f64 / step_millis as f64).round() as usize;
        let day_steps = day.unwrap_or(clock).max(1);
        let steps = |hours: f64| ((hours * day_steps as f64 / 24.0).round() as usize).max(1);
        let horizon = steps(config.backtest.horizon_hours);
        let stride = steps(config.backtest.stride_hours);
        let backtest = Backtest {
            initial_steps,
            stride_steps: stride,
            horizon: Horizon::steps(horizon),
            refit: Refit::RefreshEvery(NonZeroUsize::new(day_steps / stride).unwrap_or(NonZeroUsize::MIN)),
            levels: levels(),
            scale_season_steps: short,
        };
        if season != Season::Day && (config.lending.is_some() || !bundles.is_empty()) {
            return Err(StudyError::OnlyDays { season: season.name() });
        }
        let mut trained = Vec::new();
        for bundle in bundles {
            let own = (step_millis, short);
            let bundle = bundle.clone().suited(own).map_err(|of| {
                let name = bundle.name.clone();
                StudyError::OtherSteps { name, of, series: own }
            })?;
            trained.push(bundle);
        }
        let mut model = config.model.forecaster([short, long], horizon, initial_steps);
        model.nets = trained.iter().map(|bundle| bundle.net.clone()).collect();
        let path = config.series.path.display();
        let source = config.series.column.as_ref().map_or(format!("{path}"), |column| format!("{path}, {column}"));
        let lending = config.lending.clone();
        Ok(Self {
            id: None,
            dated: false,
            series,
            covariates: None,
            model,
            trained,
            day_steps,
            season,
            source,
            named: String::new(),
            backtest,
            lending,
        })
    }

    /// Steps in an hour.
    pub(super) fn steps_per_hour(&self) -> f64 {
        self.day_steps as f64 / 24.0
    }

    /// Checks that no trained forecaster has seen the part of the series that it is to forecast.
    fn check_unseen(&self) -> Result<(), StudyError> {
        if let Some(bundle) = self.trained.iter().find(|bundle| bundle.card.names(&self.named)) {
            return Err(StudyError::Trained { name: bundle.name.clone(), series: self.named.clone() });
        }
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
        let of = self.id.as_ref().map(|id| format!(", {id}")).unwrap_or_default();
        format!(
            "{}{of}: {steps} steps of {secs} s, of which {measured} are measured; forecast from step {from} on.",
            self.source
        )
    }

    /// Runs the forecaster of the file, the forecaster without its covariates, and beside them the naive forecasts: the
    /// last value, and the values of one short and of one long season before.
    ///
    /// # Errors
    /// A series too short for one origin, or forecasts of what a trained forecaster has seen.
    pub fn run(&self) -> Result<Vec<(String, BacktestReport)>, StudyError> {
        let naive =
            [Model::Naive, Model::Day, Model::Week].map(|model| (model.name(), self.alone(vec![model], vec![])));
        self.beside(naive)
    }

    fn alone(&self, models: Vec<Model>, nets: Vec<NeuralNet>) -> Adaptive {
        Adaptive { models, nets, ..self.model.clone() }
    }

    fn beside<'a>(
        &self,
        others: impl IntoIterator<Item = (&'a str, Adaptive)>,
    ) -> Result<Vec<(String, BacktestReport)>, StudyError> {
        self.check_unseen()?;
        let default = ("default", self.model.clone(), self.covariates.clone());
        let plain = self.covariates.as_ref().map(|_| ("without_covariates", self.model.clone(), None));
        let others = others.into_iter().map(|(name, model)| (name, model, None));
        let all: Vec<_> = std::iter::once(default).chain(plain).chain(others).collect();
        let run = |(name, model, covariates): (&str, Adaptive, Option<Covariates>)| {
            let report = match covariates {
                Some(covariates) => self.backtest.run(&self.regressed(model, covariates), &self.series),
                None => self.backtest.run(&model, &self.series),
            };
            Ok((name.to_string(), report?))
        };
        all.into_par_iter().map(run).collect()
    }

    /// A forecaster with covariates.
    fn regressed(&self, inner: Adaptive, covariates: Covariates) -> Regressed<Adaptive> {
        Regressed { inner, covariates, day_steps: self.day_steps }
    }

    /// The forecaster of the file, fitted to all of the series.
    ///
    /// # Errors
    /// A series that cannot be fitted.
    pub fn fitted(&self) -> Result<ForecasterSnapshot, FitError> {
        match self.covariates.clone() {
            Some(covariates) => {
                let fitted = self.regressed(self.model.clone(), covariates).fit(&self.series)?;
                Ok(ForecasterSnapshot::of_regressed(fitted, self.day_steps))
            }
            None => {
                let snapshot = ForecasterSnapshot::fit(&self.model, &self.series)?;
                Ok(ForecasterSnapshot { day_steps: self.day_steps, ..snapshot })
            }
        }
    }

    /// Runs every model and every trained forecaster alone too, in parallel; the forecaster of the
    /// file comes first.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn compare(&self) -> Result<Vec<(String, BacktestReport)>, StudyError> {
        let models = Model::ALL.map(|model| (model.name(), self.alone(vec![model], vec![])));
        let nets = self.trained.iter();
        let nets = nets.map(|bundle| (bundle.name.as_str(), self.alone(vec![], vec![bundle.net.clone()])));
        self.beside(models.into_iter().chain(nets))
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
        let lease = config.lease(self.steps_per_hour());
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
            steps_per_hour: self.steps_per_hour(),
        })
    }
}

/// The levels of a study: 0.01, 0.05 to 0.95, 0.99.
fn levels() -> Vec<f64> {
    std::iter::once(0.01).chain((1..=19).map(|i| f64::from(i) * 5.0 / 100.0)).chain([0.99]).collect()
}
