//! Inference services: a rate of requests over time, replicas that answer them, and how fast an answer has to be.
//!
//! Rates are milli-requests per second and times milliseconds, so a count of requests is a whole number of micro-requests and sums over
//! services, nodes and intervals are exact.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::time::SimTime;

/// Index of a service in [`crate::job::Workload::services`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServiceId(pub u32);

impl ServiceId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How fast answers have to be: a share of `target` of all requests within `latency`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Name of the class that reports put together, for example `interactive`.
    pub class: String,
    /// A request that takes longer violates the objective.
    pub latency: SimTime,
    /// Share of requests that must not, in (0, 1); 0.99 makes it an objective on the 99th percentile.
    pub target: f64,
}

/// Requests per second, constant over each step, from time zero on; none after the last step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSeries {
    step: SimTime,
    /// Milli-requests per second by step.
    rates: Arc<[u32]>,
}

/// One point of a serving profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServingPoint {
    /// Requests that a replica works on at the same time: its batch size.
    pub concurrency: u32,
    /// How long each of them then takes, seconds.
    pub latency_secs: f64,
}

/// Latency of a replica by the number of requests it works on at once, as published profiles of batch sizes give it. More requests wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServingProfile(Vec<ServingPoint>);

/// A service; all of it may be known to a policy, but for the rates to come.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Name.
    pub name: String,
    /// Whose it is; index into the workload's tenants.
    pub tenant: u32,
    /// Requests over time.
    pub rates: RateSeries,
    /// Squared coefficient of variation of the time between requests: 1 for independent users, more for bursts within a step.
    pub arrival_cv2: f64,
    /// Squared coefficient of variation of the work in a request.
    pub work_cv2: f64,
    /// Speed of a replica by name of accelerator type. A type that is absent cannot run it.
    pub profiles: BTreeMap<String, ServingProfile>,
    /// The type whose speed a type called `gpu` has.
    pub reference: String,
    /// Accelerators of one node that a replica holds.
    pub gpus_per_replica: u32,
    /// Objective.
    pub slo: Slo,
    /// From a decision to start a replica until it answers; its accelerators are held.
    pub cold_start: SimTime,
    /// How long a replica that is to go still holds its accelerators, to finish what it works on.
    pub drain: SimTime,
    /// Fewest replicas a policy may leave it.
    pub min_replicas: u32,
    /// Most replicas it may have.
    pub max_replicas: u32,
}

/// Why a service cannot be built.
#[derive(Debug, Error, PartialEq)]
pub enum ServiceError {
    /// A step without extent.
    #[error("the step of a rate series is {step}, it must be positive")]
    Step {
        /// The step.
        step: SimTime,
    },
    /// A rate that is no rate.
    #[error("rate {index} is {value} requests per second, expected 0 to {}", RateSeries::MAX)]
    Rate {
        /// Position in the series.
        index: usize,
        /// What it is.
        value: f64,
    },
    /// No point at all.
    #[error("a serving profile needs at least one point")]
    NoPoint,
    /// Points out of order, or a latency that is none.
    #[error(
        "point {index} of a serving profile: concurrency must ascend from at least 1, latency must be positive, and throughput \
         (concurrency over latency) must not fall"
    )]
    Point {
        /// Position in the profile.
        index: usize,
    },
}

impl Default for RateSeries {
    /// No requests.
    fn default() -> Self {
        Self { step: SimTime::from_secs(60), rates: Arc::new([]) }
    }
}

impl RateSeries {
    /// Most requests per second.
    pub const MAX: f64 = 4e6;

    /// From requests per second.
    ///
    /// # Errors
    /// [`ServiceError`] for a step that is not positive and rates that are negative, not finite or above [`Self::MAX`].
    pub fn new(step: SimTime, per_sec: &[f64]) -> Result<Self, ServiceError> {
        if step <= SimTime::ZERO {
            return Err(ServiceError::Step { step });
        }
        let milli = |(index, &value): (usize, &f64)| match (0.0..=Self::MAX).contains(&value) {
            true => Ok((value * 1e3).round() as u32),
            false => Err(ServiceError::Rate { index, value }),
        };
        Ok(Self { step, rates: per_sec.iter().enumerate().map(milli).collect::<Result<_, _>>()? })
    }

    /// Records a measured rate, in thousandths of a request per second. The step of `at` is the last one afterwards;
    /// steps for which nothing was recorded keep the rate before them, and the first ones the first rate recorded.
    /// A rate measured before the last step is dropped.
    pub fn record(&mut self, at: SimTime, rate_milli: u32) {
        let steps = self.index_at(at) + 1;
        if steps < self.rates.len() || steps == self.rates.len() && self.rates.last() == Some(&rate_milli) {
            return;
        }
        let before = self.rates.last().copied().unwrap_or(rate_milli);
        let mut rates = Vec::with_capacity(steps);
        rates.extend_from_slice(&self.rates);
        rates.resize(steps, before);
        rates[steps - 1] = rate_milli;
        self.rates = rates.into();
    }

    /// Length of a step.
    pub fn step(&self) -> SimTime {
        self.step
    }

    /// Milli-requests per second by step.
    pub fn values(&self) -> &[u32] {
        &self.rates
    }

    /// When the last step ends.
    pub fn end(&self) -> SimTime {
        SimTime::from_millis(self.step.as_millis().saturating_mul(self.rates.len() as i64))
    }

    /// The step that `at` falls into.
    pub fn index_at(&self, at: SimTime) -> usize {
        (at.as_millis().max(0) / self.step.as_millis()) as usize
    }

    /// Milli-requests per second at `at`.
    pub fn at(&self, at: SimTime) -> u32 {
        self.rates.get(self.index_at(at)).copied().unwrap_or(0)
    }

    /// The first step after that of `at` whose rate differs, or the end of the series; [`SimTime::NEVER`] after that.
    pub fn next_change(&self, at: SimTime) -> SimTime {
        let index = self.index_at(at);
        let Some(&rate) = self.rates.get(index) else { return SimTime::NEVER };
        let same = self.rates[index..].iter().take_while(|&&next| next == rate).count();
        SimTime::from_millis(self.step.as_millis() * (index + same) as i64)
    }
}

impl ServingProfile {
    /// Checks the points.
    ///
    /// # Errors
    /// [`ServiceError`] where there is none or they do not ascend.
    pub fn new(points: Vec<ServingPoint>) -> Result<Self, ServiceError> {
        if points.is_empty() {
            return Err(ServiceError::NoPoint);
        }
        let (mut concurrency, mut throughput) = (0, 0.0);
        for (index, point) in points.iter().enumerate() {
            let rate = f64::from(point.concurrency) / point.latency_secs;
            let sound = point.concurrency > concurrency && point.latency_secs > 0.0 && rate.is_finite();
            if !sound || rate < throughput * (1.0 - 1e-9) {
                return Err(ServiceError::Point { index });
            }
            (concurrency, throughput) = (point.concurrency, rate);
        }
        Ok(Self(points))
    }

    /// The points, ascending.
    pub fn points(&self) -> &[ServingPoint] {
        &self.0
    }

    /// Most requests at a time.
    pub fn concurrency(&self) -> u32 {
        self.0.last().map_or(1, |point| point.concurrency)
    }

    /// Requests per second of a replica that always has enough of them.
    pub fn throughput(&self) -> f64 {
        self.0.last().map_or(0.0, |point| f64::from(point.concurrency) / point.latency_secs)
    }

    /// Seconds a request takes while `requests` are worked on, interpolated linearly; as for one where there are fewer.
    pub fn latency_secs(&self, requests: f64) -> f64 {
        let above = self.0.partition_point(|point| f64::from(point.concurrency) < requests);
        match (above.checked_sub(1).map(|below| self.0[below]), self.0.get(above).copied()) {
            (Some(below), Some(above)) => {
                let (from, to) = (f64::from(below.concurrency), f64::from(above.concurrency));
                below.latency_secs + (above.latency_secs - below.latency_secs) * (requests - from) / (to - from)
            }
            (None, Some(only)) | (Some(only), None) => only.latency_secs,
            (None, None) => 0.0,
        }
    }
}

impl ServingProfile {
    /// Seconds a request takes on a replica that answers `rate` requests per second: at the concurrency that, by Little's law, makes this rate.
    /// A request that finds others is one more than they are.
    pub fn latency_at_rate(&self, rate: f64) -> f64 {
        let first = self.latency_secs(1.0);
        let mut low = ServingPoint { concurrency: 1, latency_secs: first };
        for &high in &self.0 {
            if f64::from(high.concurrency) / high.latency_secs >= rate && high.concurrency > low.concurrency {
                let slope = (high.latency_secs - low.latency_secs) / f64::from(high.concurrency - low.concurrency);
                let at = rate * (low.latency_secs - slope * f64::from(low.concurrency)) / (1.0 - rate * slope);
                return self.latency_secs(at.max(1.0));
            }
            low = high;
        }
        low.latency_secs
    }
}

impl Service {
    /// The profile on the accelerator type called `accelerator`; `None` where it cannot run there.
    pub fn profile(&self, accelerator: &str) -> Option<&ServingProfile> {
        let reference = || self.profiles.get(&self.reference).filter(|_| accelerator == "gpu");
        self.profiles.get(accelerator).or_else(reference)
    }
}
