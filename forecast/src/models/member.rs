//! Names of the models of the path, and the fitted model behind each name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::boosted::Boosted;
use super::direct_ridge::DirectRidge;
use super::fourier_ar::FourierAr;
use super::holt_winters::HoltWinters;
use super::level_naive::LevelNaive;
use super::logged::Logged;
use super::nlinear::NLinear;
use super::profile::SeasonProfile;
use super::repeat::Repeat;
use super::{Path, Seasons};
use crate::history::LoadHistory;
use crate::neural::NetPath;

/// Name of a model of the path; the file of each model has its formula and source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Model {
    /// Last value of the series.
    Naive,
    /// Value of a day ago.
    Day,
    /// Value of a week ago.
    Week,
    /// Value of a day ago, with the level corrected.
    LevelDay,
    /// Value of a week ago, with the level corrected.
    LevelWeek,
    /// Damped additive Holt-Winters.
    HoltWinters,
    /// Damped additive Holt-Winters of the logarithm.
    LogHoltWinters,
    /// Ridge regressions, one for each step of the horizon.
    DirectRidge,
    /// Ridge regressions of the logarithm, one for each step of the horizon.
    LogDirectRidge,
    /// Fourier series with autoregressive errors.
    FourierAr,
    /// Fourier series with autoregressive errors, of the logarithm.
    LogFourierAr,
    /// Median shape of the day.
    Profile,
    /// Median shape of the week.
    WeekProfile,
    /// Closed-form NLinear of two days.
    Nlinear,
    /// Boosted trees on the median shape of the day.
    Boosted,
}

impl Model {
    /// All models, the members of the default forecaster first.
    pub const ALL: [Model; 15] = [
        Model::Naive,
        Model::Day,
        Model::Week,
        Model::LevelDay,
        Model::LevelWeek,
        Model::HoltWinters,
        Model::LogHoltWinters,
        Model::DirectRidge,
        Model::LogDirectRidge,
        Model::FourierAr,
        Model::LogFourierAr,
        Model::Profile,
        Model::WeekProfile,
        Model::Nlinear,
        Model::Boosted,
    ];

    /// The members of the default forecaster: those that cost little.
    pub const DEFAULT: [Model; 14] = match Self::ALL.first_chunk() {
        Some(first) => *first,
        None => panic!("there are more models than members of the default"),
    };

    /// Name of the model in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Model::Naive => "naive",
            Model::Day => "day",
            Model::Week => "week",
            Model::LevelDay => "level_day",
            Model::LevelWeek => "level_week",
            Model::HoltWinters => "holt_winters",
            Model::LogHoltWinters => "log_holt_winters",
            Model::DirectRidge => "direct_ridge",
            Model::LogDirectRidge => "log_direct_ridge",
            Model::FourierAr => "fourier_ar",
            Model::LogFourierAr => "log_fourier_ar",
            Model::Profile => "profile",
            Model::WeekProfile => "week_profile",
            Model::Nlinear => "nlinear",
            Model::Boosted => "boosted",
        }
    }

    /// Model that has not seen a value yet.
    pub(crate) fn member(self, Seasons { day, week, horizon }: Seasons) -> EnsembleMember {
        let ridge = || DirectRidge::new(horizon, RIDGE, half_life(RIDGE_DAYS * day));
        let fourier = || FourierAr::new(day, PAIRS, (FOURIER_DAYS * day) as f64);
        match self {
            Model::Naive => EnsembleMember::Repeat(Repeat::new(1)),
            Model::Day => EnsembleMember::Repeat(Repeat::new(day)),
            Model::Week => EnsembleMember::Repeat(Repeat::new(week)),
            Model::LevelDay => EnsembleMember::LevelNaive(LevelNaive::new(day, horizon)),
            Model::LevelWeek => EnsembleMember::LevelNaive(LevelNaive::new(week, horizon)),
            Model::HoltWinters => EnsembleMember::HoltWinters(HoltWinters::new(day)),
            Model::LogHoltWinters => EnsembleMember::LogHoltWinters(Logged::new(HoltWinters::new(day))),
            Model::DirectRidge => EnsembleMember::DirectRidge(ridge()),
            Model::LogDirectRidge => EnsembleMember::LogDirectRidge(Logged::new(ridge())),
            Model::FourierAr => EnsembleMember::FourierAr(fourier()),
            Model::LogFourierAr => EnsembleMember::LogFourierAr(Logged::new(fourier())),
            Model::Profile => EnsembleMember::Profile(SeasonProfile::new(day, 7, 2, CARRY)),
            Model::WeekProfile => EnsembleMember::Profile(SeasonProfile::new(week, 4, 1, CARRY)),
            Model::Nlinear => EnsembleMember::NLinear(NLinear::new(2 * day, horizon)),
            Model::Boosted => EnsembleMember::Boosted(Boosted::new(SeasonProfile::new(day, 7, 2, CARRY), horizon)),
        }
    }
}

/// Penalty of the direct regressions, relative to the diagonal of `X'X`.
const RIDGE: f64 = 1e-3;
/// Days after which a row of the direct regressions counts half.
const RIDGE_DAYS: usize = 14;
/// Days after which a value counts half in the Fourier regression.
const FOURIER_DAYS: usize = 7;
/// Pairs of sine and cosine on the day.
const PAIRS: usize = 6;
/// Factor by which a profile's last deviation fades per step.
const CARRY: f64 = 0.9;

/// Factor by which a weight is discounted per step, for a half-life of `steps`.
fn half_life(steps: usize) -> f64 {
    0.5_f64.powf(1.0 / steps.max(1) as f64)
}

/// A fitted model of any kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum EnsembleMember {
    Repeat(Repeat),
    LevelNaive(LevelNaive),
    HoltWinters(HoltWinters),
    LogHoltWinters(Logged<HoltWinters>),
    DirectRidge(DirectRidge),
    LogDirectRidge(Logged<DirectRidge>),
    FourierAr(FourierAr),
    LogFourierAr(Logged<FourierAr>),
    Profile(SeasonProfile),
    NLinear(NLinear),
    Boosted(Boosted),
    Net(Box<NetPath>),
}

macro_rules! each {
    ($member:expr, $model:ident => $call:expr) => {
        match $member {
            EnsembleMember::Repeat($model) => $call,
            EnsembleMember::LevelNaive($model) => $call,
            EnsembleMember::HoltWinters($model) => $call,
            EnsembleMember::LogHoltWinters($model) => $call,
            EnsembleMember::DirectRidge($model) => $call,
            EnsembleMember::LogDirectRidge($model) => $call,
            EnsembleMember::FourierAr($model) => $call,
            EnsembleMember::LogFourierAr($model) => $call,
            EnsembleMember::Profile($model) => $call,
            EnsembleMember::NLinear($model) => $call,
            EnsembleMember::Boosted($model) => $call,
            EnsembleMember::Net($model) => $call,
        }
    };
}

impl Path for EnsembleMember {
    fn refit(&mut self, past: &LoadHistory) {
        each!(self, model => model.refit(past));
    }

    fn push(&mut self, past: &LoadHistory) {
        each!(self, model => model.push(past));
    }

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        each!(self, model => model.path(past, out));
    }
}
