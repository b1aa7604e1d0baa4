//! Decider of a load that is still coming in, under the share of steps that it missed.
//!
//! A step is missed where it needed more than the least capacity that was asked for since the step came into
//! reach: until an order of now serves, capacity cannot grow. Under [`Objective::Late`] what counts is the share of
//! requests that were late, where it is measured.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Decider, Objective};
use crate::{Adaptive, Series};

/// Days until which the forecaster is estimated anew whenever the series has doubled.
const YOUNG_DAYS: usize = 8;

/// Terms of the decisions of an [`OnlineDecider`].
#[derive(Debug, Clone, PartialEq)]
pub struct OnlineTerms {
    /// Forecaster of the load.
    pub model: Adaptive,
    /// Milliseconds of a step.
    pub step_millis: i64,
    /// Steps until an order of now serves, the present one included; at least 1.
    pub reach_steps: usize,
    /// Share of the steps, of the windows of `reach_steps` steps, or of the requests that may be missed.
    pub objective: Objective,
    /// Part, in (0, 1], of what may be missed that is aimed at.
    pub aim: f64,
}

/// Requests of a step that were late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateRequests {
    /// Share of the requests of the step, in `[0, 1]`.
    pub share: f64,
    /// Requests of the step, relative to the mean of all steps.
    pub weight: f64,
}

/// Decider that begins with no load at all. The serde form is a complete snapshot but for the terms: its owner has them
/// in a file, and gives them with each load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OnlineDecider {
    /// Loads from the first on; `None` once the forecaster is grown.
    young: Option<Vec<Option<f64>>>,
    decider: Option<Decider>,
    /// Loads asked for at the last steps within reach, newest last; `None` while errors are not known.
    asked: VecDeque<Option<f64>>,
    /// Loads that were expected for the last steps at the end of the reach, newest last.
    far: VecDeque<f64>,
}

impl Default for OnlineDecider {
    fn default() -> Self {
        Self { young: Some(Vec::new()), decider: None, asked: VecDeque::new(), far: VecDeque::new() }
    }
}

impl OnlineDecider {
    /// Goes on with a decider that knows a series already.
    pub fn continuing(decider: Decider) -> Self {
        Self { young: None, decider: Some(decider), ..Self::default() }
    }

    /// Takes in the loads of the steps that have passed, `None` for a gap. Returns, for each step, the load that was
    /// expected for it when an order could still serve in time; `None` where there was no forecast yet.
    pub fn extend(&mut self, terms: &OnlineTerms, loads: &[Option<f64>]) -> Vec<Option<f64>> {
        let foreseen = loads.iter().map(|&load| self.push(terms, load, None)).collect();
        self.grow(terms, loads);
        foreseen
    }

    /// Takes in the load of one step that has passed, `None` for a gap, and the requests of that step that were late,
    /// `None` where nothing measures them.
    pub fn pass(&mut self, terms: &OnlineTerms, load: Option<f64>, late: Option<LateRequests>) {
        self.push(terms, load, late);
        self.grow(terms, &[load]);
    }

    fn push(&mut self, terms: &OnlineTerms, load: Option<f64>, late: Option<LateRequests>) -> Option<f64> {
        let foreseen = if self.far.len() == terms.reach_steps { self.far.pop_front() } else { None };
        if let Some(decider) = &mut self.decider {
            let least = self.asked.iter().flatten().copied().reduce(f64::min);
            if let (Some(load), Some(least)) = (load, least) {
                match late.filter(|_| matches!(terms.objective, Objective::Late(_))) {
                    Some(late) => decider.settle_weighted(late.share, late.weight),
                    None => decider.settle(f64::from(u8::from(load > least))),
                }
            }
            decider.update(load.unwrap_or(f64::NAN));
            self.ask(terms);
        }
        foreseen
    }

    /// Estimates a young forecaster anew when its series has doubled: all estimates together cost about twice the last.
    fn grow(&mut self, terms: &OnlineTerms, loads: &[Option<f64>]) {
        let Some(young) = &mut self.young else { return };
        let before = young.len().checked_ilog2();
        young.extend(loads);
        if young.len().checked_ilog2() != before {
            let window = 0..terms.reach_steps;
            let series = Series::from_options(0, terms.step_millis, young.iter().copied()).ok();
            let estimate = |series| Decider::new(&terms.model, &series, window, terms.objective, terms.aim).ok();
            if let Some(decider) = series.and_then(estimate) {
                // What the younger forecaster asked for now gives way. The level begins anew: it was steered by the
                // misses of a forecaster that knew half as much.
                if self.decider.replace(decider).is_some() {
                    self.asked.pop_back();
                    self.far.pop_back();
                }
                self.ask(terms);
            }
        }
        let grown = self.young.as_ref().is_some_and(|young| young.len() >= YOUNG_DAYS * terms.model.day_steps);
        if grown && self.decider.is_some() {
            self.young = None;
        }
    }

    /// Notes what is asked for at the present step.
    fn ask(&mut self, terms: &OnlineTerms) {
        let Some(decider) = &self.decider else { return };
        let capacity = decider.capacity();
        self.asked.push_back(capacity.is_finite().then_some(capacity));
        self.far.extend(decider.expected().last());
        while self.asked.len() > terms.reach_steps {
            self.asked.pop_front();
        }
    }

    /// Load to keep room for until an order of now serves; `None` while too little is known of errors.
    pub fn capacity(&self) -> Option<f64> {
        self.asked.back().copied().flatten()
    }

    /// Decider as it stands; `None` before the first estimate.
    pub fn decider(&self) -> Option<&Decider> {
        self.decider.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> OnlineTerms {
        OnlineTerms {
            model: Adaptive { horizon_steps: 3, ..Adaptive::daily(24) },
            step_millis: 3_600_000,
            reach_steps: 3,
            objective: Objective::Leases(0.01),
            aim: 1.0,
        }
    }

    /// High for the half of each day, with a little of what is not foreseen.
    fn load(step: usize) -> f64 {
        (if step % 24 < 12 { 10.0 } else { 2.0 }) + (step * 7_919 % 10) as f64 / 20.0
    }

    #[test]
    fn steps_one_by_one_are_decided_about_as_the_load_rises() {
        let (terms, mut online) = (terms(), OnlineDecider::default());
        assert_eq!(online.capacity(), None);
        let mut missed = 0;
        for step in 0..24 * 40 {
            online.extend(&terms, &[Some(load(step))]);
            let most = (step + 1..step + 4).map(load).fold(0.0, f64::max);
            let Some(capacity) = online.capacity().filter(|_| step > 24 * 20) else { continue };
            missed += u32::from(capacity < most);
            // In the middle of the night there is no room for the day.
            assert!(step % 24 != 14 || capacity < 5.0, "{step}: {capacity}");
        }
        assert!(missed <= 480 / 50, "{missed} of 480 windows");
    }

    #[test]
    fn a_snapshot_goes_on_as_the_decider_does() {
        let (terms, mut online) = (terms(), OnlineDecider::default());
        (0..24 * 6).for_each(|step| drop(online.extend(&terms, &[(step % 17 != 3).then(|| load(step))])));
        let mut read: OnlineDecider = serde_json::from_str(&serde_json::to_string(&online).unwrap()).unwrap();
        for step in 24 * 6..24 * 8 {
            let foreseen = [&mut online, &mut read].map(|online| online.extend(&terms, &[Some(load(step))]));
            assert_eq!(foreseen[0], foreseen[1]);
            assert_eq!(online.capacity(), read.capacity(), "step {step}");
        }
    }

    #[test]
    fn late_requests_steer_where_they_are_measured_and_counted() {
        let share = |objective: Objective, late: Option<f64>| {
            let terms = OnlineTerms { objective, ..terms() };
            let mut online = OnlineDecider::default();
            for step in 0..24 * 12 {
                let late = late.map(|share| LateRequests { share, weight: 1.0 });
                online.pass(&terms, Some(load(step)), late);
            }
            online.capacity().unwrap()
        };
        let (late, windows) = (Objective::Late(0.1), Objective::Leases(0.1));
        assert!(share(late, Some(1.0)) > share(late, Some(0.0)), "late requests ask for more");
        assert_eq!(share(late, None), share(windows, None), "windows count where nothing is measured");
        assert_eq!(share(windows, Some(1.0)), share(windows, None), "windows count where they are named");
    }
}
