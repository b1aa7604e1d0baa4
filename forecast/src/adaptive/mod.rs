//! Default forecaster: an ensemble of cheap models weighed by recent errors, with conformal
//! quantiles.
//!
//! - **Point.** The weighted median of its models' paths. A model's weight is `(1 / MAE)^2` of its
//!   own past forecasts, by how far ahead they looked, half forgotten after a day ([`weights`]).
//!   The median, and not the mean, because one model that is badly wrong must not move it.
//! - **Quantiles.** Conformal: the point plus a weighted quantile of past errors at that distance,
//!   each divided by how large errors were when it was made and multiplied by how large they are
//!   now, upwards and downwards apart; the level asked follows the coverage of the last days
//!   ([`conformal`]).
//! - **Alarm.** A chart of short-range errors says when the load has changed its regime
//!   ([`Alarm`]).
//! - **Online.** Every past forecast used for either was made without knowing what came: the fit
//!   plays the last week of its series through [`Predict::update`].
//!
//! One model alone is a list of one, so every [`Model`] has quantiles.

mod alarm;
mod conformal;
mod coverage;
mod state;
mod weights;
mod window;

use serde::{Deserialize, Serialize};

use crate::history::LoadHistory;
use crate::models::{EnsembleMember, Seasons};
use crate::neural::{NetPath, NeuralNet};
use crate::{Fit, FitError, Model, Predict, Series};

pub use alarm::{Alarm, Shift};
pub use state::FittedAdaptive;
pub(crate) use state::bounded;

/// Settings of the default forecaster: there is nothing to tune but the seasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adaptive {
    /// Steps in a day, at least 1.
    pub day_steps: usize,
    /// Steps in a week, at least as many.
    pub week_steps: usize,
    /// Farthest step for which errors are learnt; farther steps repeat the width of this one. At
    /// least 1.
    pub horizon_steps: usize,
    /// Models that the ensemble weighs.
    pub models: Vec<Model>,
    /// Windows ahead of which the maximum is forecast too: `(first step, steps)`, the first step
    /// counted from 0.
    pub windows: Vec<(usize, usize)>,
    /// Trained nets weighed beside the models; they have nothing left to estimate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nets: Vec<NeuralNet>,
}

/// Days at the end of the series that a fit replays, to learn weights and errors.
const REPLAY_DAYS: usize = 7;
/// Days needed before the replay, to fit the models.
const FIT_DAYS: usize = 3;
/// Weeks of values that a forecaster keeps.
const KEEP_WEEKS: usize = 26;

impl Adaptive {
    /// The default models, for a series with `day_steps` steps a day: a horizon of one day.
    pub fn daily(day_steps: usize) -> Self {
        Self {
            day_steps,
            week_steps: 7 * day_steps,
            horizon_steps: day_steps,
            models: Model::DEFAULT.to_vec(),
            windows: vec![],
            nets: vec![],
        }
    }

    /// One model alone.
    pub fn single(model: Model, day_steps: usize) -> Self {
        Self { models: vec![model], ..Self::daily(day_steps) }
    }

    /// Adds a window: the maximum over `steps` steps from step `first` ahead on, counted from 0.
    #[must_use]
    pub fn with_window(mut self, first: usize, steps: usize) -> Self {
        self.windows.push((first, steps));
        self
    }

    fn seasons(&self) -> Seasons {
        let day = self.day_steps.max(1);
        Seasons { day, week: self.week_steps.max(day), horizon: self.horizon_steps.max(1) }
    }
}

impl Fit for Adaptive {
    type Fitted = FittedAdaptive;

    fn fit(&self, series: &Series) -> Result<FittedAdaptive, FitError> {
        if self.day_steps == 0 {
            return Err(FitError::SeasonEmpty);
        }
        if series.observed_len() == 0 {
            return Err(FitError::NothingObserved { len: series.len() });
        }
        let seasons = self.seasons();
        // A short series gives at most half of itself to the first fit; the rest must teach weights
        // and errors.
        let enough = (FIT_DAYS * seasons.day).min(series.len() / 2);
        let start = series.len().saturating_sub(REPLAY_DAYS * seasons.day).max(enough);
        let mut past = LoadHistory::new(seasons.day, seasons.week, KEEP_WEEKS * seasons.week);
        let values = series.values();
        for &value in values.iter().take(start) {
            past.push(state::bounded(value));
        }
        let nets = self.nets.iter().map(|net| EnsembleMember::Net(Box::new(NetPath(net.clone()))));
        let members = self.models.iter().map(|model| model.member(seasons)).chain(nets).collect();
        let mut fitted = FittedAdaptive::new(past, members, seasons, &self.windows);
        fitted.refresh();
        for (index, &value) in values.iter().enumerate().skip(start) {
            // Models are refitted daily, as they are in use, so that the replay meets errors of
            // real forecasts.
            if index > start && (index - start).is_multiple_of(seasons.day) {
                fitted.refresh();
            }
            fitted.update(&[value]);
        }
        // A replay that ends on a whole day owes a refit before the next value.
        if (series.len() - start).is_multiple_of(seasons.day) {
            fitted.refresh();
        }
        Ok(fitted)
    }
}
