//! One decision after another about one window ahead.

use std::ops::Range;

use super::{Objective, OnlineLevel, ResidualPaths};
use crate::{Adaptive, Fit, FitError, FittedAdaptive, Predict, Series};

/// Share of what may be missed that the level aims at: misses come in hours at a time, a window is decided about as a
/// whole, and a week does not pay an hour back.
const AIM: f64 = 0.2;
/// Change of the tail probability for a wholly missed decision, relative to the aim.
const RATE: f64 = 0.2;
/// Share of the known series on which the forecaster is fitted first; the rest teaches residual paths.
const FITTED_SHARE: f64 = 0.5;

/// Rule that says, at each moment, the capacity for the steps of a window ahead.
#[derive(Debug, Clone)]
pub struct Decider {
    forecaster: FittedAdaptive,
    residuals: ResidualPaths,
    objective: Objective,
    level: OnlineLevel,
    window: Range<usize>,
    day_steps: usize,
    since_refresh: usize,
    /// Forecast of the window from the present step on.
    point: Vec<f64>,
}

impl Decider {
    /// Decider for the steps `window` ahead, counted from 0, that knows the series `known`.
    ///
    /// # Errors
    /// A series that cannot be fitted.
    pub fn new(model: &Adaptive, known: &Series, window: Range<usize>, objective: Objective) -> Result<Self, FitError> {
        let first = ((known.len() as f64 * FITTED_SHARE) as usize).max(1).min(known.len());
        let head = known.slice(0..first).unwrap_or_else(|_| known.clone());
        let forecaster = model.fit(&head)?;
        let mean = head.observed().map(|(_, load)| load.abs()).sum::<f64>() / head.observed_len().max(1) as f64;
        let aim = match objective {
            Objective::Steps(_) | Objective::Leases(_) => AIM * objective.tail(),
            Objective::Cost { .. } => objective.tail(),
        };
        let mut decider = Self {
            residuals: ResidualPaths::new(window.end, model.day_steps, mean),
            level: OnlineLevel::new(aim, RATE * aim),
            forecaster,
            objective,
            window,
            day_steps: model.day_steps.max(1),
            since_refresh: 0,
            point: Vec::new(),
        };
        decider.look_ahead();
        known.values().iter().skip(first).for_each(|&load| decider.update(load));
        Ok(decider)
    }

    /// Takes in the load of the step that has passed; one that is not finite is a gap.
    pub fn update(&mut self, load: f64) {
        self.residuals.learn(load.is_finite().then_some(load));
        self.forecaster.update(&[load]);
        self.since_refresh += 1;
        if self.since_refresh == self.day_steps {
            self.forecaster.refresh();
            self.since_refresh = 0;
        }
        self.look_ahead();
    }

    fn look_ahead(&mut self) {
        self.point = self.forecaster.uncorrected(self.window.end);
        self.residuals.issue(&self.point);
    }

    /// Load to keep room for in the window; infinite while nothing is known of the errors of forecasts.
    pub fn capacity(&self) -> f64 {
        let scenarios = self.residuals.scenarios(&self.point);
        let statistic = self.objective.statistic();
        let ahead = scenarios.and_then(|scenarios| scenarios.distribution(&self.window, statistic));
        ahead.map_or(f64::INFINITY, |ahead| ahead.exceeded_with(self.level.tail()).max(0.0))
    }

    /// Takes in the outcome of a decision after the end of the window: the share of its steps, or of its leases, that
    /// was missed. A decision about cost has a fixed level, and does not listen.
    pub fn settle(&mut self, missed: f64) {
        match self.objective {
            Objective::Steps(_) | Objective::Leases(_) => self.level.settle(missed),
            Objective::Cost { .. } => {}
        }
    }
}
