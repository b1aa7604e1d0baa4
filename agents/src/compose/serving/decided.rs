//! The load that the objective of a service asks for: joint scenarios of a forecast's errors, at a level that follows
//! misses.
//!
//! The decision is [`goodput_forecast::decide`], the one of the lending bench and of the forecast server. It is told
//! every new value, and how many requests were late. The decided load is exceeded in a share of windows. This share
//! follows the windows of which the highest load exceeded the decided one: if one request in a hundred may be late, one
//! window in two hundred is to be missed. With [`SteeredBy::LateRequests`] the share follows the requests that were
//! late, which the simulator counts. Nothing is kept for utilisation. Until twenty errors of forecasts are known,
//! nothing is decided.

use std::collections::BTreeMap;

use goodput_env::time::SimTime;
use goodput_env::view::{Answered, ServiceView};
use goodput_forecast::decide::{Decider, LateRequests, Objective, OnlineDecider, OnlineTerms};

use super::outlook::Shared;
use super::steps::ForecastSteps;
use super::{Expected, ForecastingOptions, Outlook, SavedForecaster, SteeredBy};

/// Share of windows to miss, relative to the share of requests that may be late. It is below 1, because requests are
/// late for longer than a shortage lasts, until the queue is gone. A fifth, as lenders aim at, took up to a quarter
/// more accelerators on real loads.
const WINDOWS_AIM: f64 = 0.5;

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
        window.take(service);
        window.expect()
    }
}

/// Decisions about one window ahead of one service.
#[derive(Clone, Debug)]
struct DecidedWindow {
    steps: ForecastSteps,
    terms: OnlineTerms,
    online: OnlineDecider,
    /// Number of steps that the decider knows, and the requests of these steps where they steer the level.
    known: usize,
    answered: Answered,
    /// Whether the decider sees logarithms of the load.
    logarithms: bool,
}

impl DecidedWindow {
    fn new(forecasting: &ForecastingOptions, service: &ServiceView<'_>, steps: ForecastSteps, reach: usize) -> Self {
        let model = forecasting.adaptive_for(service, steps.a_day());
        let horizon_steps = reach.min(model.day_steps);
        let may_miss = 1.0 - service.slo().target;
        let (objective, aim) = match forecasting.steered_by {
            SteeredBy::Windows => (Objective::Leases(may_miss), WINDOWS_AIM),
            SteeredBy::LateRequests => (Objective::Late(may_miss), 1.0),
        };
        let terms = OnlineTerms {
            model: goodput_forecast::Adaptive { horizon_steps, ..model },
            step_millis: steps.length.as_millis(),
            reach_steps: reach,
            objective,
            aim,
        };
        let online = match forecasting.saved_for(service) {
            Some(SavedForecaster::Fitted(snapshot)) => {
                let forecaster = snapshot.forecaster.clone();
                let (mean, day) = (forecaster.mean_size(), terms.model.day_steps);
                OnlineDecider::continuing(Decider::around(forecaster, mean, day, 0..reach, objective, aim))
            }
            _ => OnlineDecider::default(),
        };
        Self {
            steps,
            terms,
            online,
            known: 0,
            answered: Answered::default(),
            logarithms: forecasting.saved_for(service).is_none(),
        }
    }

    /// Takes in the steps that have passed since the last time. The requests since then are divided among these steps
    /// alike, because a balancer counts requests and not steps.
    fn take(&mut self, service: &ServiceView<'_>) {
        let complete = self.steps.complete(service.history());
        if self.known >= complete {
            return;
        }
        let steered = matches!(self.terms.objective, Objective::Late(_));
        let late = if steered { self.late_since(service.answered(), complete) } else { None };
        // Step by step, so that a decision does not depend on when it was asked for.
        for step in self.known..complete {
            let rate = self.steps.rate(service, step);
            self.online.pass(&self.terms, rate.map(|rate| if self.logarithms { rate.ln_1p() } else { rate }), late);
        }
        self.known = complete;
    }

    /// Late requests of each step since the last time; `None` before the first request.
    fn late_since(&mut self, answered: Answered, complete: usize) -> Option<LateRequests> {
        let requests = answered.requests.saturating_sub(self.answered.requests);
        let late = answered.late.saturating_sub(self.answered.late);
        self.answered = answered;
        let mean = answered.requests as f64 / complete as f64;
        let weight = requests as f64 / ((complete - self.known) as f64 * mean);
        // Steps without requests weigh nothing.
        let share = if requests > 0 { late as f64 / requests as f64 } else { 0.0 };
        (answered.requests > 0).then_some(LateRequests { share, weight })
    }

    fn expect(&self) -> Option<Expected> {
        let capacity = self.online.capacity()?;
        let usual = self.online.decider()?.expected().iter().copied().fold(0.0, f64::max);
        let rate = |value: f64| if self.logarithms { value.exp_m1() } else { value };
        Some(Expected::decided(rate(usual), rate(capacity)))
    }
}
