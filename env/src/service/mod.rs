//! Inference services: a request rate over time, replicas that answer the requests, and a latency
//! objective.
//!
//! Rates are milli-requests per second and times milliseconds. So a count of requests is a whole
//! number of micro-requests, and sums over services, nodes and intervals are exact.

mod profile;
mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::time::SimTime;

pub use profile::{AnswerProfile, ServingPoint, ServingProfile};
pub use tokens::{TokenCell, TokenLatency, TokenProfile};

/// Index of a service in [`crate::job::Workload::services`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServiceId(pub u32);

impl ServiceId {
    /// Position of the service in its workload.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Latency objective: at least a fraction `target` of all requests takes at most `latency`. For a language model that
/// is the time to the first token; the objective for further tokens is part of the profile of its replicas, and a
/// request that misses either of both violates the objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Name of the class by which reports group services, for example `interactive`.
    pub class: String,
    /// Latency above which a request violates the objective.
    pub latency: SimTime,
    /// Fraction of requests that must meet the latency, in (0, 1); 0.99 makes it an objective on
    /// the 99th percentile.
    pub target: f64,
}

/// Request rate over time, constant over each step, from time zero on; zero after the last step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSeries {
    step: SimTime,
    /// Milli-requests per second by step.
    rates: Arc<[u32]>,
    /// Steps that nothing measured, ascending.
    gaps: Arc<[usize]>,
    /// Whether further steps are to be recorded: the series of a live service.
    open: bool,
}

/// Inference service. A policy may know all of it except the future rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Name of the service.
    pub name: String,
    /// Index of the tenant that owns the service, in the workload's tenants.
    pub tenant: u32,
    /// Request rate over time.
    pub rates: RateSeries,
    /// Squared coefficient of variation of the time between requests: 1 for independent users, more
    /// for bursts within a step.
    pub arrival_cv2: f64,
    /// Squared coefficient of variation of the work in a request.
    pub work_cv2: f64,
    /// Profile of a replica by name of accelerator type. An absent type cannot run the service.
    pub profiles: BTreeMap<String, ServingProfile>,
    /// Accelerator type that gives the speed on a type called `gpu`.
    pub reference: String,
    /// Number of accelerators of one node that a replica holds.
    pub gpus_per_replica: u32,
    /// Latency objective of the service.
    pub slo: Slo,
    /// Time from the decision to start a replica until it answers requests; the replica holds its
    /// accelerators meanwhile.
    pub cold_start: SimTime,
    /// Time for which a replica still holds its accelerators after its removal, to finish its
    /// requests.
    pub drain: SimTime,
    /// Fewest replicas that a policy may leave to the service.
    pub min_replicas: u32,
    /// Most replicas that the service may have.
    pub max_replicas: u32,
}

/// Error in the description of a service.
#[derive(Debug, Error, PartialEq)]
pub enum ServiceError {
    /// The step of a rate series is not positive.
    #[error("the step of a rate series is {step}, it must be positive")]
    Step {
        /// Length of the step.
        step: SimTime,
    },
    /// A rate is negative, not finite or too large.
    #[error("rate {index} is {value} requests per second, expected 0 to {}", RateSeries::MAX)]
    Rate {
        /// Position in the series.
        index: usize,
        /// Value of the rate, requests per second.
        value: f64,
    },
    /// A profile has no points.
    #[error("a serving profile needs at least one point")]
    NoPoint,
    /// The concurrency does not ascend, a latency is not positive, or the throughput falls.
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
    /// Empty series, without requests.
    fn default() -> Self {
        Self { step: SimTime::from_secs(60), rates: Arc::new([]), gaps: Arc::default(), open: false }
    }
}

impl RateSeries {
    /// Largest rate, requests per second.
    pub const MAX: f64 = 4e6;

    /// Creates a series from requests per second in steps of length `step`.
    ///
    /// # Errors
    /// [`ServiceError`] for a step that is not positive and rates that are negative, not finite or
    /// above [`Self::MAX`].
    pub fn new(step: SimTime, per_sec: &[f64]) -> Result<Self, ServiceError> {
        if step <= SimTime::ZERO {
            return Err(ServiceError::Step { step });
        }
        let milli = |(index, &value): (usize, &f64)| match (0.0..=Self::MAX).contains(&value) {
            true => Ok((value * 1e3).round() as u32),
            false => Err(ServiceError::Rate { index, value }),
        };
        let rates = per_sec.iter().enumerate().map(milli).collect::<Result<_, _>>()?;
        Ok(Self { step, rates, gaps: Arc::default(), open: false })
    }

    /// Records the rate of now, in thousandths of a request per second. The series is open from then on.
    ///
    /// The step of `at` becomes the last one. Steps without a record keep the rate before them, and steps before the
    /// first record get the first recorded rate. A rate of before the last step is dropped.
    pub fn record(&mut self, at: SimTime, rate_milli: u32) {
        let steps = self.index_at(at) + 1;
        // Skip the copy of the shared series where the record changes nothing.
        if self.open
            && (steps < self.rates.len() || steps == self.rates.len() && self.rates.last() == Some(&rate_milli))
        {
            return;
        }
        self.append(&[(at, rate_milli)]);
    }

    /// Records rates that were measured step by step, as [`Self::record`] does, and copies the series once for all of
    /// them. Steps without a record are gaps.
    pub fn record_measured(&mut self, records: &[(SimTime, u32)]) {
        if !records.is_empty() {
            let gaps = self.append(records);
            if !gaps.is_empty() {
                self.gaps = self.gaps.iter().copied().chain(gaps).collect();
            }
        }
    }

    /// Appends rates, and returns the steps that have none of their own.
    fn append(&mut self, records: &[(SimTime, u32)]) -> Vec<usize> {
        let (mut rates, mut without) = (self.rates.to_vec(), Vec::new());
        for &(at, rate_milli) in records {
            let steps = self.index_at(at) + 1;
            if steps < rates.len() {
                continue;
            }
            without.extend(rates.len()..steps - 1);
            let before = rates.last().copied().unwrap_or(rate_milli);
            rates.resize(steps, before);
            rates[steps - 1] = rate_milli;
        }
        (self.rates, self.open) = (rates.into(), true);
        without
    }

    /// Whether nothing measured the rate of this step.
    pub fn is_gap(&self, step: usize) -> bool {
        self.gaps.binary_search(&step).is_ok()
    }

    /// Ends a series that was open: no request comes after its last step.
    pub fn close(&mut self) {
        self.open = false;
    }

    /// Whether no request comes any more at `at`: the series has come to its end.
    pub fn is_over(&self, at: SimTime) -> bool {
        !self.open && self.index_at(at) >= self.rates.len()
    }

    /// Length of a step.
    pub fn step(&self) -> SimTime {
        self.step
    }

    /// Milli-requests per second by step.
    pub fn values(&self) -> &[u32] {
        &self.rates
    }

    /// End of the last step.
    pub fn end(&self) -> SimTime {
        SimTime::from_millis(self.step.as_millis().saturating_mul(self.rates.len() as i64))
    }

    /// Index of the step that contains `at`.
    pub fn index_at(&self, at: SimTime) -> usize {
        (at.as_millis().max(0) / self.step.as_millis()) as usize
    }

    /// Milli-requests per second at `at`.
    pub fn at(&self, at: SimTime) -> u32 {
        self.rates.get(self.index_at(at)).copied().unwrap_or(0)
    }

    /// Start of the first step after the one of `at` with a different rate, or the end of the
    /// series; [`SimTime::NEVER`] after that.
    pub fn next_change(&self, at: SimTime) -> SimTime {
        let index = self.index_at(at);
        let Some(&rate) = self.rates.get(index) else { return SimTime::NEVER };
        let same = self.rates[index..].iter().take_while(|&&next| next == rate).count();
        SimTime::from_millis(self.step.as_millis() * (index + same) as i64)
    }
}

impl Service {
    /// Profile on the accelerator type called `accelerator`; `None` where the service cannot run
    /// there.
    pub fn profile(&self, accelerator: &str) -> Option<&ServingProfile> {
        let reference = || self.profiles.get(&self.reference).filter(|_| accelerator == "gpu");
        self.profiles.get(accelerator).or_else(reference)
    }

    /// Whether the service runs a language model, with objectives for tokens.
    pub fn runs_tokens(&self) -> bool {
        self.profiles.values().any(|profile| matches!(profile, ServingProfile::Tokens(_)))
    }
}
