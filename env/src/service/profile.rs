//! Speed of a replica: of whole answers by batch size, or of the tokens of a language model by load.

use serde::{Deserialize, Serialize};

use super::{ServiceError, TokenProfile};

/// Speed of a replica.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ServingProfile {
    /// Whole answers: one latency.
    Answers(AnswerProfile),
    /// Tokens of a language model: the time to the first token, and the time of a further token.
    Tokens(Box<TokenProfile>),
}

/// Point of a serving profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServingPoint {
    /// Number of requests that a replica processes at a time: its batch size.
    pub concurrency: u32,
    /// Latency of each request at this concurrency, seconds.
    pub latency_secs: f64,
}

/// Latency of whole answers of a replica by the number of requests that it processes at once, from published
/// profiles of batch sizes. Requests beyond the largest number wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnswerProfile(Vec<ServingPoint>);

impl ServingProfile {
    /// Profile of whole answers; checks the points.
    ///
    /// # Errors
    /// As [`AnswerProfile::new`].
    pub fn new(points: Vec<ServingPoint>) -> Result<Self, ServiceError> {
        AnswerProfile::new(points).map(Self::Answers)
    }

    /// Requests per second of a replica that never runs out of requests.
    pub fn throughput(&self) -> f64 {
        match self {
            Self::Answers(answers) => answers.throughput(),
            Self::Tokens(tokens) => tokens.per_sec,
        }
    }

    /// Latency of a request that finds an idle replica, seconds; to the first token for a language model.
    pub fn idle_secs(&self) -> f64 {
        match self {
            Self::Answers(answers) => answers.latency_secs(1.0),
            Self::Tokens(tokens) => tokens.idle_ttft_secs,
        }
    }
}

impl AnswerProfile {
    /// Checks the points and creates a profile.
    ///
    /// # Errors
    /// [`ServiceError`] where there are no points, the concurrency does not ascend, a latency is
    /// not positive, or the throughput falls.
    pub fn new(points: Vec<ServingPoint>) -> Result<Self, ServiceError> {
        if points.is_empty() {
            return Err(ServiceError::NoPoint);
        }
        let (mut concurrency, mut throughput) = (0, 0.0);
        for (index, point) in points.iter().enumerate() {
            let rate = f64::from(point.concurrency) / point.latency_secs;
            let sound = point.concurrency > concurrency && point.latency_secs > 0.0 && rate.is_finite();
            // Equal throughputs may differ by the rounding of the division, hence the tolerance.
            if !sound || rate < throughput * (1.0 - 1e-9) {
                return Err(ServiceError::Point { index });
            }
            (concurrency, throughput) = (point.concurrency, rate);
        }
        Ok(Self(points))
    }

    /// Points of the profile, in ascending order.
    pub fn points(&self) -> &[ServingPoint] {
        &self.0
    }

    /// Largest number of requests that a replica processes at a time.
    pub fn concurrency(&self) -> u32 {
        self.0.last().map_or(1, |point| point.concurrency)
    }

    /// Requests per second of a replica that never runs out of requests.
    pub fn throughput(&self) -> f64 {
        self.0.last().map_or(0.0, |point| f64::from(point.concurrency) / point.latency_secs)
    }

    /// Latency of a request at `requests` concurrent requests, seconds, interpolated linearly;
    /// below one as at one.
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

impl AnswerProfile {
    /// Latency of a request on a replica that answers `rate` requests per second, seconds.
    ///
    /// By Little's law the rate determines the concurrency, and the concurrency the latency. A
    /// request that finds others makes the concurrency one more than theirs.
    pub fn latency_at_rate(&self, rate: f64) -> f64 {
        let first = self.latency_secs(1.0);
        let mut low = ServingPoint { concurrency: 1, latency_secs: first };
        for &high in &self.0 {
            // The first point may itself be at concurrency 1, which gives a segment without length.
            if f64::from(high.concurrency) / high.latency_secs >= rate && high.concurrency > low.concurrency {
                // On this linear segment, solve `rate * latency(n) = n` for the concurrency n.
                let slope = (high.latency_secs - low.latency_secs) / f64::from(high.concurrency - low.concurrency);
                let at = rate * (low.latency_secs - slope * f64::from(low.concurrency)) / (1.0 - rate * slope);
                return self.latency_secs(at.max(1.0));
            }
            low = high;
        }
        low.latency_secs
    }
}
