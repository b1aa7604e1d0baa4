//! Steps of a service's load as its forecaster sees them.

use goodput_env::time::SimTime;
use goodput_env::view::ServiceView;
use goodput_forecast::Adaptive;

use super::{ForecastingOptions, SavedForecaster};

/// Shortest step of a forecaster: a day of minutes would cost the regressions a hundred times more and tell them
/// little.
const SHORTEST: SimTime = SimTime::from_secs(300);
const DAY: SimTime = SimTime::from_secs(86_400);

/// Steps of a forecaster, each of one or more steps of the service's series.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForecastSteps {
    /// Length of a step.
    pub length: SimTime,
    /// Steps of the service's series in each.
    taken_together: usize,
}

impl ForecastSteps {
    /// Steps for `service`. A forecaster made before was fitted to the steps of the load, so these stay as they are.
    pub fn of(service: &ServiceView<'_>, saved: Option<&SavedForecaster>) -> Self {
        let own = service.history_step().as_millis().max(1);
        let taken_together = match saved {
            Some(_) => 1,
            None => (SHORTEST.as_millis() as u64).div_ceil(own as u64) as usize,
        };
        Self { length: SimTime::from_millis(own * taken_together as i64), taken_together }
    }

    /// Number of steps in a day.
    pub fn a_day(&self) -> usize {
        (DAY.as_millis() / self.length.as_millis()).max(1) as usize
    }

    /// Steps that begin within `time` from now, but for those that are known. A step of several is known once it is
    /// over, so that the present one is among them.
    pub fn ahead(&self, time: SimTime) -> usize {
        let begun = (time.as_millis().max(1) as u64).div_ceil(self.length.as_millis() as u64) as usize;
        begun.min(10_000) + usize::from(self.taken_together > 1)
    }

    /// Number of whole steps in `history`.
    pub fn complete(&self, history: &[u32]) -> usize {
        history.len() / self.taken_together
    }

    /// Rate in a step of the load of `service`, requests per second: the highest one stands for all. `None` in a gap,
    /// in which nothing was measured.
    pub fn rate(&self, service: &ServiceView<'_>, step: usize) -> Option<f64> {
        let of_step = step * self.taken_together..(step + 1) * self.taken_together;
        of_step.filter_map(|step| service.measured(step)).reduce(f64::max)
    }
}

impl ForecastingOptions {
    /// Forecaster made before for a load with the steps of `service`.
    pub(super) fn saved_for(&self, service: &ServiceView<'_>) -> Option<&SavedForecaster> {
        let own = service.history_step().as_millis();
        self.saved.get(service.name()).filter(|saved| saved.step_millis() == own)
    }

    /// Settings of the forecaster of `service`: a trained net of its own, or the models.
    pub(super) fn adaptive_for(&self, service: &ServiceView<'_>, a_day: usize) -> Adaptive {
        let (models, nets) = match self.saved_for(service) {
            Some(SavedForecaster::Trained { net, .. }) => (Vec::new(), vec![(**net).clone()]),
            _ => (self.models.clone(), Vec::new()),
        };
        Adaptive { models, nets, horizon_steps: 1, ..Adaptive::daily(a_day) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_no_sooner_than_a_replica_that_is_ordered_now_is_warm() {
        let ahead = |taken_together, secs| {
            ForecastSteps { length: SimTime::from_secs(300), taken_together }.ahead(SimTime::from_secs(secs))
        };
        // The present step of five minutes is known: the next three begin within 15 minutes.
        assert_eq!([ahead(1, 900), ahead(1, 901), ahead(1, 0)], [3, 4, 1]);
        // Of five steps of a minute, the present ones are not known before all five are over.
        assert_eq!([ahead(5, 540), ahead(5, 900)], [3, 4]);
    }
}
