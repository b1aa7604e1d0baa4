//! Learned parameters of lending: servers kept at home, the moment of a recall, and the server that
//! is recalled.
//!
//! All that is learned is relative to the published rule (Aryl, arXiv:2202.07896), which the
//! numbers are 0 at. Forecasts are the same for all policies; what is made of them is not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use goodput_env::job::JobId;
use goodput_env::time::SimTime;
use goodput_env::view::JobView;

use super::{Prices, Terms};
use crate::compose::serving::Expected;

/// Departure of an orchestrator from the published rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lending {
    /// Rise of the high rate, as a part of its distance to the usual rate: another quantile of the
    /// same forecast. -1 takes the usual rate for the high one.
    pub caution: f64,
    /// Servers that stay at home beside those that are needed, or, below 0, are lent though they
    /// are.
    pub margin_servers: f64,
    /// Servers that may be missing at home before one is called back.
    pub tolerated_servers: f64,
    /// After calling back nothing is lent for so many periods.
    pub rest_periods: f64,
    /// Power of the accelerator time that a job loses by a restart in what preempting it costs.
    pub price_by_restart: f64,
    /// Power of its worth to the training policy in the same.
    pub price_by_worth: f64,
    /// Price of scaling a job in, relative to preempting it; scaling in stops the job as well.
    pub price_of_scaling_in: f64,
}

impl Lending {
    /// Names of the numbers, and how far a search first looks in each direction.
    pub const NAMES: [(&str, f64); 7] = [
        ("loan_caution", 0.5),
        ("loan_margin_servers", 0.7),
        ("loan_tolerated_servers", 0.7),
        ("loan_rest_periods", 1.0),
        ("loan_price_by_restart", 0.5),
        ("loan_price_by_worth", 0.5),
        ("loan_price_of_scaling_in", 0.3),
    ];

    /// From numbers in the order of [`Self::NAMES`].
    pub fn new(values: [f64; 7]) -> Self {
        let [caution, margin, tolerated, rest, by_restart, by_worth, scaling_in] = values;
        Self {
            caution: caution.clamp(-1.0, 10.0),
            margin_servers: margin,
            tolerated_servers: tolerated.max(0.0),
            rest_periods: rest.clamp(0.0, 288.0),
            price_by_restart: by_restart,
            price_by_worth: by_worth,
            price_of_scaling_in: scaling_in.clamp(0.0, 10.0),
        }
    }

    /// Expectation at another level of caution.
    pub(super) fn expected(&self, expected: Expected) -> Expected {
        let high = expected.high + self.caution * (expected.high - expected.usual);
        Expected { high: high.max(expected.usual), ..expected }
    }

    /// Time after a call in which nothing is lent.
    pub(super) fn rest(&self, terms: &Terms) -> SimTime {
        SimTime::from_millis((terms.period.as_millis() as f64 * self.rest_periods) as i64)
    }
}

/// Logarithms of the jobs' values, from a training policy to its orchestrator, which share this
/// map.
#[derive(Clone, Debug, Default)]
pub struct SharedJobValues(Arc<Mutex<BTreeMap<JobId, f64>>>);

impl SharedJobValues {
    /// `job` is worth so much now.
    pub fn tell(&self, job: JobId, log_worth: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(job, log_worth);
    }

    fn of(&self, job: JobId) -> Option<f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&job).copied()
    }
}

/// Prices of recalling servers.
#[derive(Clone, Debug, Default)]
pub struct RecallPricing {
    /// Departures of the orchestrator from the published rule.
    pub lending: Lending,
    /// Values from the training policy.
    pub worths: SharedJobValues,
}

impl RecallPricing {
    /// Prices of these jobs, relative to the mean of their logarithms; equal ones as published
    /// where nothing is learned. A job of unknown worth has the mean.
    pub(super) fn prices(&self, jobs: &[JobView<'_>]) -> Vec<Prices> {
        // A minute is added so that the logarithm of a short restart is not far from the others.
        let lost = jobs.iter().map(|job| Some((f64::from(job.gpus()) * job.restart_secs() + 60.0).ln()));
        let lost = centred(lost.collect());
        let worth = centred(jobs.iter().map(|job| self.worths.of(job.id())).collect());
        let lending = &self.lending;
        let price = |(lost, worth): (f64, f64)| {
            let log = lending.price_by_restart * lost + lending.price_by_worth * worth;
            // The clamp keeps prices within whole numbers that can be added up.
            Prices::relative(log.clamp(-8.0, 8.0).exp(), lending.price_of_scaling_in)
        };
        lost.into_iter().zip(worth).map(price).collect()
    }
}

/// Known values less their mean; 0 for unknown values.
fn centred(values: Vec<Option<f64>>) -> Vec<f64> {
    let known = values.iter().flatten().count().max(1) as f64;
    let mean = values.iter().flatten().sum::<f64>() / known;
    values.into_iter().map(|value| value.map_or(0.0, |value| value - mean)).collect()
}
