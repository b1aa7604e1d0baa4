//! The load ahead by a forecaster that is told every new value and nothing else.
//!
//! Of each service one forecaster is kept. It knows the steps of the series up to now, and what it
//! answers depends on them alone, not on when it was asked. It sees logarithms, because what a load
//! does is relative: a burst at noon is ten times that at night, and an error kept in requests per
//! second would be too large for one and too small for the other. Quantiles and maxima survive the
//! way back. A forecaster made before sees the load that it was made for. It is estimated anew when
//! its series has doubled, up to four days, and refreshed once a day from then on.

use goodput_env::time::SimTime;
use goodput_env::view::ServiceView;
use goodput_forecast::{Adaptive, Fit, FittedAdaptive, Predict, Series};

use super::outlook::Shared;
use super::steps::ForecastSteps;
use super::{Expected, ForecastingOptions, Outlook, SavedForecaster};

/// Days of series until which it is estimated anew at every doubling.
const YOUNG_DAYS: usize = 4;
/// Nothing beyond so many times the highest rate so far is expected: while few errors are known,
/// one of a model that knew nothing yet would be taken for a quantile.
const RECORDS: f64 = 2.0;

/// The highest rate to expect, as forecast.
#[derive(Clone, Debug)]
pub struct Ahead {
    forecasting: ForecastingOptions,
    watched: Vec<Option<Watched>>,
}

impl Ahead {
    /// By the forecasters of `forecasting`.
    pub fn new(forecasting: ForecastingOptions) -> Self {
        Self { forecasting, watched: Vec::new() }
    }

    /// Two that share their forecasters, for an autoscaler and an orchestrator.
    pub fn pair(self) -> [Box<dyn Outlook>; 2] {
        Shared::pair(self)
    }

    fn watched(&mut self, service: &ServiceView<'_>) -> &mut Watched {
        let index = service.id().index();
        if self.watched.len() <= index {
            self.watched.resize_with(index + 1, || None);
        }
        let forecasting = &self.forecasting;
        self.watched[index].get_or_insert_with(|| Watched::new(forecasting, service))
    }
}

impl Outlook for Ahead {
    fn forecast(&mut self, service: &ServiceView<'_>, until: SimTime) -> Option<Expected> {
        // Past the end of its series a service has no new values, and yesterday's would be expected
        // for ever.
        if service.is_over() {
            return None;
        }
        let level = self.forecasting.level.clamp(0.001, 0.999);
        let watched = self.watched(service);
        watched.reach(until - service.now());
        watched.take(service);
        watched.expect(until, level)
    }
}

/// The forecaster of one service.
#[derive(Clone, Debug)]
struct Watched {
    /// Settings of the estimation; `None` for a saved forecaster, which is fitted already.
    settings: Option<Adaptive>,
    /// Whether the forecaster sees logarithms of the load. A saved forecaster sees the load itself.
    logarithms: bool,
    fitted: Option<FittedAdaptive>,
    steps: ForecastSteps,
    /// Number of steps that the forecaster knows, and the highest rate in them.
    known: usize,
    highest: f64,
    /// Lengths of the windows, in steps, of which the forecaster learns the maximum.
    windows: Vec<usize>,
    /// Answers since the last step, by number of steps.
    answers: Vec<(usize, Expected)>,
}

impl Watched {
    fn new(forecasting: &ForecastingOptions, service: &ServiceView<'_>) -> Self {
        let saved = forecasting.saved_for(service);
        let steps = ForecastSteps::of(service, saved);
        let (settings, fitted) = match saved {
            Some(SavedForecaster::Fitted(snapshot)) => (None, Some(snapshot.forecaster.clone())),
            _ => (Some(forecasting.adaptive_for(service, steps.a_day())), None),
        };
        Self {
            settings,
            fitted,
            logarithms: saved.is_none(),
            steps,
            known: 0,
            highest: 0.0,
            windows: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Makes sure that it learns the maximum over so long a time. Whatever the moment, that is one
    /// of two numbers of steps.
    fn reach(&mut self, time: SimTime) {
        let steps = (time.as_millis() / self.steps.length.as_millis()) as usize;
        for steps in [steps.max(1), steps + 1] {
            if self.windows.contains(&steps) {
                continue;
            }
            self.windows.push(steps);
            match (&mut self.settings, &mut self.fitted) {
                (Some(settings), fitted) => {
                    let steps = steps.min(settings.day_steps);
                    settings.windows.push((0, steps));
                    if settings.horizon_steps < steps {
                        settings.horizon_steps = steps;
                        // All that was learnt of shorter ones is learnt again.
                        (*fitted, self.known) = (None, 0);
                    } else if let Some(fitted) = fitted {
                        fitted.watch(0, steps);
                    }
                }
                (None, Some(fitted)) => {
                    fitted.watch(0, steps);
                }
                (None, None) => {}
            }
        }
    }

    /// Takes in what is new of the load of `service`.
    fn take(&mut self, service: &ServiceView<'_>) {
        let (steps, logarithms) = (self.steps, self.logarithms);
        // A gap is no number.
        let rate = |step: usize| steps.rate(service, step).unwrap_or(f64::NAN);
        let value = |step: usize| if logarithms { rate(step).ln_1p() } else { rate(step) };
        while self.known < steps.complete(service.history()) {
            let (at, count) = (self.known, self.known + 1);
            // `f64::max` passes over gaps.
            (self.known, self.highest) = (count, self.highest.max(rate(at)));
            self.answers.clear();
            let Some(settings) = &self.settings else {
                if let Some(fitted) = &mut self.fitted {
                    fitted.update(&[value(at)]);
                    if count.is_multiple_of(steps.a_day()) {
                        fitted.refresh();
                    }
                }
                continue;
            };
            if count.is_power_of_two() && count <= YOUNG_DAYS * settings.day_steps {
                // With doublings, all estimates together cost about twice the last one.
                let values: Vec<f64> = (0..count).map(value).collect();
                let series = Series::new(0, steps.length.as_millis(), values.into());
                self.fitted = series.ok().and_then(|series| settings.fit(&series).ok());
            } else if let Some(fitted) = &mut self.fitted {
                fitted.update(&[value(at)]);
                if count.is_multiple_of(settings.day_steps) {
                    fitted.refresh();
                }
            }
        }
    }

    fn expect(&mut self, until: SimTime, level: f64) -> Option<Expected> {
        let fitted = self.fitted.as_mut()?;
        let steps = super::steps_until(self.steps.length, self.known, until).min(fitted.horizon().get());
        if steps == 0 {
            return None;
        }
        if let Some((_, expected)) = self.answers.iter().find(|(answered, _)| *answered == steps) {
            return Some(*expected);
        }
        let window = fitted.watch(0, steps);
        // The usual rate is the highest of the expected path, the high one a quantile of the
        // highest rate: how far maxima rise above the path belongs to what is not foreseen.
        let usual = fitted.uncorrected(steps).into_iter().fold(0.0, f64::max);
        let high = fitted.peak(window, &[level])?.first()?.max(usual);
        // A forecaster that was fitted before knows its errors, so it needs no limit.
        let most = if self.settings.is_some() { RECORDS * self.highest } else { f64::MAX };
        let rate = |value: f64| if self.logarithms { value.exp_m1() } else { value }.min(most);
        let expected = Expected::forecast(rate(usual), rate(high));
        self.answers.push((steps, expected));
        Some(expected)
    }
}
