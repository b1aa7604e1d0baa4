//! The load that the objective of a service asks for: joint scenarios of a forecast's errors, at a level that follows
//! misses.
//!
//! The decision is [`goodput_forecast::decide`], the one of the lending bench and of the forecast server. It is told
//! every new value and nothing else. A window is missed where its highest load exceeds the decided one. If one request
//! in a hundred may be late, one window in two hundred is to be missed. Nothing is kept for utilisation. Until twenty
//! errors of forecasts are known, nothing is decided.

use std::collections::BTreeMap;

use goodput_env::time::SimTime;
use goodput_env::view::ServiceView;
use goodput_forecast::decide::{Decider, Objective, OnlineDecider, OnlineTerms};

use super::outlook::Shared;
use super::steps::ForecastSteps;
use super::{Expected, ForecastingOptions, Outlook, SavedForecaster};

/// Share of windows to miss, relative to the share of requests that may be late. It is below 1, because requests are
/// late for longer than a shortage lasts, until the queue is gone. A fifth, as lenders aim at, took up to a quarter
/// more accelerators on real loads.
const AIM: f64 = 0.5;

/// Loads to provide for, by the objectives of services.
#[derive(Clone, Debug)]
pub struct Decided {
    forecasting: ForecastingOptions,
    /// By index of the service and steps of the window.
    windows: BTreeMap<(usize, usize), DecidedWindow>,
}

impl Decided {
    /// By the forecasters of `forecasting`; its level has no part in this.
    pub fn new(forecasting: ForecastingOptions) -> Self {
        Self { forecasting, windows: BTreeMap::new() }
    }

    /// Two that share their forecasters, for an autoscaler and an orchestrator.
    pub fn pair(self) -> [Box<dyn Outlook>; 2] {
        Shared::pair(self)
    }
}

impl Outlook for Decided {
    fn forecast(&mut self, service: &ServiceView<'_>, until: SimTime) -> Option<Expected> {
        // Past the end of its series a service has no new values.
        if service.is_over() {
            return None;
        }
        let steps = ForecastSteps::of(service, self.forecasting.saved_for(service));
        let reach = steps.ahead(until - service.now());
        let forecasting = &self.forecasting;
        let window = self.windows.entry((service.id().index(), reach));
        let window = window.or_insert_with(|| DecidedWindow::new(forecasting, service, steps, reach));
        window.take(service.history());
        window.expect()
    }
}

/// Decisions about one window ahead of one service.
#[derive(Clone, Debug)]
struct DecidedWindow {
    steps: ForecastSteps,
    terms: OnlineTerms,
    online: OnlineDecider,
    /// Number of steps that the decider knows.
    known: usize,
    /// Whether the decider sees logarithms of the load.
    logarithms: bool,
}

impl DecidedWindow {
    fn new(forecasting: &ForecastingOptions, service: &ServiceView<'_>, steps: ForecastSteps, reach: usize) -> Self {
        let model = forecasting.adaptive_for(service, steps.a_day());
        let horizon_steps = reach.min(model.day_steps);
        let terms = OnlineTerms {
            model: goodput_forecast::Adaptive { horizon_steps, ..model },
            step_millis: steps.length.as_millis(),
            reach_steps: reach,
            objective: Objective::Leases(1.0 - service.slo().target),
            aim: AIM,
        };
        let online = match forecasting.saved_for(service) {
            Some(SavedForecaster::Fitted(snapshot)) => {
                let forecaster = snapshot.forecaster.clone();
                let (mean, day) = (forecaster.mean_size(), terms.model.day_steps);
                OnlineDecider::continuing(Decider::around(forecaster, mean, day, 0..reach, terms.objective, AIM))
            }
            _ => OnlineDecider::default(),
        };
        Self { steps, terms, online, known: 0, logarithms: forecasting.saved_for(service).is_none() }
    }

    fn take(&mut self, history: &[u32]) {
        // Step by step, so that a decision does not depend on when it was asked for.
        while self.known < self.steps.complete(history) {
            let rate = self.steps.rate(history, self.known);
            self.online.extend(&self.terms, &[Some(if self.logarithms { rate.ln_1p() } else { rate })]);
            self.known += 1;
        }
    }

    fn expect(&self) -> Option<Expected> {
        let capacity = self.online.capacity()?;
        let usual = self.online.decider()?.expected().iter().copied().fold(0.0, f64::max);
        let rate = |value: f64| if self.logarithms { value.exp_m1() } else { value };
        Some(Expected::decided(rate(usual), rate(capacity)))
    }
}
