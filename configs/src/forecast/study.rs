//! Studies of forecasters on a load series.

use std::path::PathBuf;

use goodput_datasets::import::covariates::epoch_millis_of_day;
use goodput_datasets::import::series::SeriesOptions;
use goodput_forecast::lending::LeaseTerms;
use goodput_forecast::{Adaptive, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CheckError;
use crate::kind::Kind;
use crate::reader::ConfigFile;
use crate::scenario::SetupError;

/// A study from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForecastConfig {
    /// Load series that is forecast.
    pub series: SeriesConfig,
    /// Covariates, which are known of a step before its load comes; none where the table is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covariates: Option<CovariatesConfig>,
    /// Forecaster that is studied.
    #[serde(default)]
    pub model: ModelConfig,
    /// Horizon and origins of the backtest.
    #[serde(default)]
    pub backtest: BacktestConfig,
    /// Terms of lending; no lending where it is left out.
    #[serde(default)]
    pub lending: Option<LendingConfig>,
}

/// Source of the load series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeriesConfig {
    /// A table of rates, a log of requests or samples of containers, as csv or Parquet. A table with a column
    /// `unique_id` is a panel of many series, as Nixtla's libraries have it (`unique_id, ds, y`). `sample:load` is part
    /// of the program: two weeks of requests to a language model.
    pub path: PathBuf,
    /// Column of values; by default the first after the times, or the number of requests of a log.
    #[serde(default)]
    pub column: Option<String>,
    /// Series of a panel that are kept: values of `unique_id` in a long table, columns in a wide one. A name that ends
    /// in `*` is every name that begins so. All series of a long table where it is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Seconds of a step; as in the table, or 600 of a log or of samples, where it is left out.
    #[serde(default)]
    pub step_secs: Option<f64>,
    /// Whether zeros are gaps: a collector that was silent.
    #[serde(default)]
    pub zeros_are_gaps: bool,
}

/// Covariates: a table of values by time, dates of holidays, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CovariatesConfig {
    /// A table with a column of times and a column for each covariate, as csv or Parquet, with rows as far ahead as is
    /// forecast. Its steps may be longer than those of the series: the value of a day holds all day. With a column
    /// `unique_id`, each series of a panel has the rows of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Columns of the table that are covariates; all of them where none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Days that are unlike others, as `2026-12-25`, on the clock of the series: the covariate `holiday`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holidays: Vec<String>,
}

impl ForecastConfig {
    /// Checks what can be checked without the series.
    ///
    /// # Errors
    /// [`SetupError::Value`] naming the key.
    pub fn check(&self) -> Result<(), SetupError> {
        let expect = |holds: bool, key, value: f64, expected: &str| match holds {
            true => Ok(()),
            false => Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() }),
        };
        let step = self.series.step_secs.unwrap_or(1.0);
        expect((0.001..=1e7).contains(&step), "series.step_secs", step, "0.001 to 10000000 seconds")?;
        let day = self.model.day_steps.unwrap_or(1);
        expect((1..=1_000_000).contains(&day), "model.day_steps", day as f64, "1 to 1000000")?;
        let BacktestConfig { initial_share, stride_hours, horizon_hours } = self.backtest;
        let within = initial_share > 0.0 && initial_share < 1.0;
        expect(within, "backtest.initial_share", initial_share, "above 0 and below 1")?;
        expect((1e-3..=1e4).contains(&stride_hours), "backtest.stride_hours", stride_hours, "0.001 to 10000 hours")?;
        expect((1e-3..=1e4).contains(&horizon_hours), "backtest.horizon_hours", horizon_hours, "0.001 to 10000 hours")?;
        if let Some(CovariatesConfig { path, columns, holidays }) = &self.covariates {
            let refused = |key, value: &str, expected: &str| SetupError::Value {
                key,
                value: value.into(),
                expected: expected.into(),
            };
            if path.is_none() && !columns.is_empty() {
                return Err(refused("covariates.columns", &columns[0], "the path of their table beside them"));
            }
            if path.is_none() && holidays.is_empty() {
                return Err(refused("covariates", "{}", "a path, holidays, or both"));
            }
            if let Some(day) = holidays.iter().find(|day| epoch_millis_of_day(day).is_none()) {
                return Err(refused("covariates.holidays", day, "a date such as 2026-12-25"));
            }
            // The load of a step ahead is not known before it comes.
            let has_load = path.as_ref() == Some(&self.series.path);
            let load = self.series.column.as_deref().unwrap_or("y");
            if has_load && (columns.is_empty() || columns.iter().any(|column| column == load)) {
                let named = columns.join(", ");
                return Err(refused("covariates.columns", &named, "columns of the table other than the load"));
            }
            if self.lending.is_some() {
                return Err(refused("covariates", "with lending", "a file without [lending]"));
            }
        }
        let Some(lending) = &self.lending else { return Ok(()) };
        let (count, per) = (lending.accelerators, lending.load_per_accelerator.unwrap_or(1.0));
        expect(count > 0, "lending.accelerators", f64::from(count), "at least 1")?;
        expect(per > 0.0 && per.is_finite(), "lending.load_per_accelerator", per, "a load above 0")?;
        let (hours, target) = (lending.lease_hours, lending.target);
        expect((1e-3..=1e4).contains(&hours), "lending.lease_hours", hours, "0.001 to 10000 hours")?;
        expect((0.0..1.0).contains(&target), "lending.target", target, "at least 0 and below 1")
    }
}

impl SeriesConfig {
    /// For the importer.
    pub fn options(&self) -> SeriesOptions {
        SeriesOptions { column: self.column.clone(), step_secs: self.step_secs, zeros_are_gaps: self.zeros_are_gaps }
    }
}

/// The forecaster: the fourteen models of the default are weighed, unless some are named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The models weighed; the fourteen of the default where none is named.
    #[serde(default)]
    pub models: Vec<Model>,
    /// Steps in a day; from the step of the series where it is left out. A series of numbered steps has the steps of
    /// its season here.
    #[serde(default)]
    pub day_steps: Option<usize>,
    /// Seasons of the models, and the season that scales MASE.
    #[serde(default, skip_serializing_if = "Season::is_day")]
    pub season: Season,
    /// Trained forecasters weighed beside the models, as `goodput train` writes them.
    #[serde(default)]
    pub bundles: Vec<PathBuf>,
}

/// Seasons of the models: a short one and a long one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Season {
    /// A day, and a week.
    #[default]
    Day,
    /// An hour, and a day.
    Hour,
    /// A week, and a year of 52 weeks.
    Week,
    /// The first hill of the autocorrelation before the first origin, and seven times that.
    Detected,
}

impl Season {
    fn is_day(&self) -> bool {
        *self == Self::Day
    }

    /// Name of the short season in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Week => "week",
            Self::Detected => "season",
        }
    }
}

/// Horizon and origins of the backtest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BacktestConfig {
    /// Share of the series known at the first origin.
    pub initial_share: f64,
    /// Hours from one origin to the next.
    pub stride_hours: f64,
    /// Hours that are forecast.
    pub horizon_hours: f64,
}

impl Default for BacktestConfig {
    fn default() -> Self {
        Self { initial_share: 0.65, stride_hours: 1.0, horizon_hours: 24.0 }
    }
}

/// Terms on which accelerators are lent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LendingConfig {
    /// Accelerators that serve the load.
    pub accelerators: u32,
    /// Load that one serves; so that all are needed at the peak of the series where it is left out.
    #[serde(default)]
    pub load_per_accelerator: Option<f64>,
    /// Hours of a lease.
    pub lease_hours: f64,
    /// Share of steps that may be violated.
    #[serde(default = "one_percent")]
    pub target: f64,
}

fn one_percent() -> f64 {
    0.01
}

impl LendingConfig {
    /// The lease in steps: it begins with the step after the next.
    pub fn lease(&self, steps_per_hour: f64) -> LeaseTerms {
        LeaseTerms { lead: 1, steps: ((self.lease_hours * steps_per_hour).round() as usize).max(1) }
    }
}

impl ModelConfig {
    /// The forecaster for a series with a short and a long season and a horizon of `horizon` steps. Of the models of
    /// the default, only the last value is left where less than a short season is `known`: nothing can be said about a
    /// season that has not been seen.
    pub fn forecaster(&self, [short, long]: [usize; 2], horizon: usize, known: usize) -> Adaptive {
        let models = match self.models.as_slice() {
            [] if known < short => vec![Model::Naive],
            [] => Model::DEFAULT.to_vec(),
            models => models.to_vec(),
        };
        Adaptive { models, week_steps: long, horizon_steps: horizon.max(1), ..Adaptive::daily(short) }
    }
}

impl ConfigFile for ForecastConfig {
    const KIND: Kind = Kind::ForecastStudy;

    fn check(&self) -> Result<(), CheckError> {
        Ok(Self::check(self)?)
    }
}
