//! Latency of the requests to a service.

use smallvec::SmallVec;

use crate::service::{Service, ServingProfile};

/// Number of classes of latency.
pub const BINS: usize = 49;

/// What comes to a service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Requests per second.
    pub rate: f64,
    /// Squared coefficient of variation of the time between them.
    pub arrival_cv2: f64,
    /// Squared coefficient of variation of the work in one.
    pub work_cv2: f64,
    /// Longest latency that keeps the objective, seconds.
    pub slo_secs: f64,
}

impl Demand {
    /// What comes to `service` at a rate in milli-requests per second.
    pub fn of(service: &Service, rate_milli: u32) -> Self {
        Self {
            rate: f64::from(rate_milli) / 1e3,
            arrival_cv2: service.arrival_cv2,
            work_cv2: service.work_cv2,
            slo_secs: service.slo.latency.as_secs_f64(),
        }
    }
}

/// What an interval came to, micro-requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Requests of the interval that took longer than the objective allows.
    pub violated: u64,
    /// Requests that wait at its end.
    pub waiting: u64,
    /// Requests of the interval by latency.
    pub latencies: [u64; BINS],
}

/// Replicas by the profile of their accelerator type.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet<'a>(pub SmallVec<[(&'a ServingProfile, u32); 2]>);

impl Fleet<'_> {
    /// Requests per second that its replicas can answer.
    pub fn capacity(&self) -> f64 {
        self.0.iter().map(|(profile, count)| profile.throughput() * f64::from(*count)).sum()
    }

    /// An interval of `secs` with `requests` micro-requests at a constant rate, after one that left `backlog` waiting.
    pub fn interval(&self, demand: &Demand, backlog: u64, requests: u64, secs: f64) -> Interval {
        let served = (self.capacity() * secs * 1e6) as u64;
        let waiting = (backlog + requests).saturating_sub(served);
        let violated = if waiting > 0 || demand.rate >= self.capacity() { requests } else { 0 };
        Interval { violated, waiting, latencies: [0; BINS] }
    }
}
