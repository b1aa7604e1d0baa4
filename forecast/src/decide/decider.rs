//! One decision after another about one window ahead.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Objective, OnlineLevel, PooledForecast};
use crate::{Adaptive, Fit, FitError, FittedAdaptive, Predict, Series};

/// Usual part of what may be missed that a level aims at: misses come in hours at a time, a window is decided about
/// as a whole, and a week does not pay an hour back.
pub const USUAL_AIM: f64 = 0.2;
/// Change of the tail probability for a wholly missed decision, relative to the aim.
pub(crate) const RATE: f64 = 0.2;
/// Share of the known series on which the forecaster is fitted first; the rest teaches residual paths.
const FITTED_SHARE: f64 = 0.5;

/// Rule that says, at each moment, the capacity for the steps of a window ahead. The serde form is a complete snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Decider {
    forecaster: FittedAdaptive,
    pooled: PooledForecast,
    objective: Objective,
    level: OnlineLevel,
    window: Range<usize>,
    day_steps: usize,
    since_refresh: usize,
}

impl Decider {
    /// Decider for the steps `window` ahead, counted from 0, that knows the series `known`. It aims at the part `aim`,
    /// in (0, 1], of what may be missed.
    ///
    /// # Errors
    /// A series that cannot be fitted.
    pub fn new(
        model: &Adaptive,
        known: &Series,
        window: Range<usize>,
        objective: Objective,
        aim: f64,
    ) -> Result<Self, FitError> {
        let first = ((known.len() as f64 * FITTED_SHARE) as usize).max(1).min(known.len());
        let head = known.slice(0..first).unwrap_or_else(|_| known.clone());
        let mean = head.observed().map(|(_, load)| load.abs()).sum::<f64>() / head.observed_len().max(1) as f64;
        let mut decider = Self::around(model.fit(&head)?, mean, model.day_steps, window, objective, aim);
        known.values().iter().skip(first).for_each(|&load| decider.update(load));
        Ok(decider)
    }

    /// Decider for the steps `window` ahead that goes on with `forecaster`, of a load of mean size `mean` with
    /// `day_steps` steps a day. Of the errors of its forecasts nothing is known yet.
    pub fn around(
        forecaster: FittedAdaptive,
        mean: f64,
        day_steps: usize,
        window: Range<usize>,
        objective: Objective,
        aim: f64,
    ) -> Self {
        let aim = match objective {
            Objective::Steps(_) | Objective::Leases(_) | Objective::Late(_) => aim * objective.tail(),
            Objective::Cost { .. } => objective.tail(),
        };
        let mut decider = Self {
            pooled: PooledForecast::new(window.clone(), objective.statistic(), day_steps, mean, &[aim]),
            level: OnlineLevel::new(aim, RATE * aim),
            forecaster,
            objective,
            window,
            day_steps: day_steps.max(1),
            since_refresh: 0,
        };
        decider.look_ahead();
        decider
    }

    /// Takes in the load of the step that has passed; one that is not finite is a gap.
    pub fn update(&mut self, load: f64) {
        self.pooled.learn(load.is_finite().then_some(load));
        self.forecaster.update(&[load]);
        self.since_refresh += 1;
        if self.since_refresh == self.day_steps {
            self.forecaster.refresh();
            self.since_refresh = 0;
        }
        self.look_ahead();
    }

    fn look_ahead(&mut self) {
        self.pooled.issue(self.forecaster.uncorrected(self.window.end));
    }

    /// Load to keep room for in the window; infinite while nothing is known of the errors of forecasts.
    pub fn capacity(&self) -> f64 {
        let loads = self.pooled.exceeded_with(&[self.level.tail()]);
        loads.and_then(|loads| loads.first().copied()).map_or(f64::INFINITY, |load| load.max(0.0))
    }

    /// Forecaster of the load, which knows all steps up to now.
    pub fn forecaster(&self) -> &FittedAdaptive {
        &self.forecaster
    }

    /// Expected load of each step from the present one to the end of the window.
    pub fn expected(&self) -> &[f64] {
        self.pooled.point()
    }

    /// Takes in the outcome of a decision after the end of the window: the share of its steps, of its leases, or of its
    /// requests that was missed. A decision about cost has a fixed level, and does not listen.
    pub fn settle(&mut self, missed: f64) {
        self.settle_weighted(missed, 1.0);
    }

    /// Takes in the outcome of a decision that weighs `weight`, relative to the mean of all.
    pub(super) fn settle_weighted(&mut self, missed: f64, weight: f64) {
        match self.objective {
            Objective::Steps(_) | Objective::Leases(_) | Objective::Late(_) => self.level.settle(missed, weight),
            Objective::Cost { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_goes_on_as_the_decider_does() {
        let load = |step: usize| if step % 17 == 3 { f64::NAN } else { 10.0 + (step % 12) as f64 };
        let series = Series::new(0, 1000, (0..120).map(load).collect()).unwrap();
        let decider = Decider::new(&Adaptive::daily(12), &series, 0..3, Objective::Leases(0.05), USUAL_AIM).unwrap();
        let text = serde_json::to_string(&decider).unwrap();
        let mut both = [serde_json::from_str(&text).unwrap(), decider];
        for step in 120..160 {
            let [read, kept] = &mut both;
            assert_eq!(read.capacity(), kept.capacity(), "step {step}");
            for decider in [read, kept] {
                decider.settle(f64::from(u8::from(step % 5 == 0)));
                decider.update(load(step));
            }
        }
    }
}
