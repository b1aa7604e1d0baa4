//! Requests that a replica answers a second within its objectives: a table by load, from replays.
//!
//! A service of the simulated cluster has too many requests to be played one by one in each of many runs, and a policy
//! asks what replicas could do at loads that never come. So the replica model plays requests once for each of some
//! loads and numbers of replicas, and [`TokenProfile`] keeps the shares that miss an objective.
//! `docs/src/results/llm-services.md` compares whole runs with a replay of every request.

use thiserror::Error;

use super::limits::{ReplicaLimits, ReplicaLimitsError};
use super::request::{LlmOutcome, LlmRequest, SECOND_PS, ServedTokens};
use super::server::TokenServer;
use super::service::LlmService;
use crate::model::serving::{BINS, edge};
use crate::seed::{Stream, keyed};
use crate::service::{TokenCell, TokenProfile};

/// Numbers of replicas that are measured.
const COUNTS: [u32; 3] = [1, 4, 16];
/// Loads that are measured, relative to the requests per second of replicas that never run out of requests.
/// Further tokens are in time up to some load and late a little above it, so the upper loads are close to each other.
const LOADS: [f64; 15] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];
/// Requests of a measurement, and those beyond for each replica.
const REQUESTS: (u32, u32) = (6_000, 600);
/// Share of requests at the start of a measurement that are not counted.
const WARM: f64 = 0.3;
/// Requests of the measurement of replicas that are full, and of that of an idle one.
const FULL_REQUESTS: u32 = 4_000;
const IDLE_REQUESTS: u32 = 400;

/// Objectives of a service that runs a language model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenObjectives {
    /// Longest time to the first token (TTFT), seconds.
    pub ttft_secs: f64,
    /// Longest mean time of a further token (TPOT), seconds.
    pub tpot_secs: f64,
    /// Share of requests that keep both.
    pub target: f64,
}

/// Reason for which a replica has no profile.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MeasureError {
    /// Limits that contradict each other.
    #[error(transparent)]
    Limits(#[from] ReplicaLimitsError),
    /// The memory of a replica holds no request of this length.
    #[error("a request of {input} and {output} tokens does not fit into the {kv_tokens} tokens of a replica's memory")]
    TooLong {
        /// Tokens of the prompt.
        input: u32,
        /// Tokens of the answer.
        output: u32,
        /// Tokens in memory.
        kv_tokens: u64,
    },
    /// Not even a replica without other requests keeps an objective.
    #[error("{name} is {secs} s, and an idle replica takes {least:.4} s for the share {target} of these requests")]
    Objective {
        /// Objective that cannot be kept.
        name: &'static str,
        /// Value of the objective, seconds.
        secs: f64,
        /// Least value that an idle replica keeps, seconds.
        least: f64,
        /// Share of requests that are to keep it.
        target: f64,
    },
}

/// Measures replicas of `server` under its requests. Equal arguments give equal tables.
///
/// # Errors
/// [`MeasureError`] where a request fits on no replica, or an idle replica misses an objective.
pub fn measure(server: &TokenServer, objectives: &TokenObjectives) -> Result<TokenProfile, MeasureError> {
    let limits = ReplicaLimits { timeout_ps: u64::MAX, ..server.limits };
    let measured = Measured { server, limits, objectives };
    let idle = measured.idle()?;
    let (per_sec, full_tpot) = measured.full()?;
    let edges: Vec<f64> = (0..BINS - 1).map(edge).collect();
    let mut cells = Vec::with_capacity(COUNTS.len() * (LOADS.len() + 1));
    for (key, &count) in (0..).zip(&COUNTS) {
        let mut before: Option<TokenCell> = None;
        for (at, &share) in (0..).zip(&LOADS) {
            let mut cell = measured.cell(key * 100 + at, count, per_sec * share * f64::from(count), &edges)?;
            // More load never helps; what a measurement says otherwise is chance.
            before.iter().for_each(|before| cell.at_least(before));
            before = Some(cell.clone());
            cells.push(cell);
        }
        if let Some(most) = before {
            cells.push(full_cell(&most, full_tpot));
        }
    }
    let loads = LOADS.into_iter().chain([1.0]).collect();
    Ok(TokenProfile { per_sec, idle_ttft_secs: idle, edges, counts: COUNTS.into(), loads, cells })
}

/// Cell of replicas that never run out of requests: the waits are those of the cell before it and do not count the
/// backlog, further tokens take what they take in a full batch.
fn full_cell(most: &TokenCell, full_tpot: f64) -> TokenCell {
    let tpot = full_tpot.max(most.tpot);
    let either = most.ttft.iter().zip(&most.either).map(|(ttft, either)| either.max(1.0 - (1.0 - ttft) * (1.0 - tpot)));
    TokenCell { ttft: most.ttft.clone(), either: either.collect(), tpot }
}

impl TokenCell {
    fn at_least(&mut self, other: &Self) {
        let raise = |of: &mut [f64], by: &[f64]| of.iter_mut().zip(by).for_each(|(of, by)| *of = of.max(*by));
        raise(&mut self.ttft, &other.ttft);
        raise(&mut self.either, &other.either);
        self.tpot = self.tpot.max(other.tpot);
    }
}

struct Measured<'a> {
    server: &'a TokenServer,
    limits: ReplicaLimits,
    objectives: &'a TokenObjectives,
}

impl Measured<'_> {
    /// Median TTFT of a replica that has one request at a time, seconds.
    fn idle(&self) -> Result<f64, MeasureError> {
        let mut random = keyed(0, Stream::Requests, 0);
        // An hour apart, no request meets another one.
        let requests =
            (0..u64::from(IDLE_REQUESTS)).map(|at| self.server.load.request(at * 3600 * SECOND_PS, &mut random));
        let served = self.replay(1, &requests.collect::<Vec<_>>())?;
        let TokenObjectives { ttft_secs, tpot_secs, target } = *self.objectives;
        let ttft = sorted(served.iter().map(ServedTokens::ttft_secs).collect());
        let tpot = sorted(served.iter().filter_map(ServedTokens::tpot_secs).collect());
        for (name, secs, values) in [("ttft", ttft_secs, &ttft), ("tpot", tpot_secs, &tpot)] {
            let least = quantile(values, target);
            if secs < least {
                return Err(MeasureError::Objective { name, secs, least, target });
            }
        }
        Ok(quantile(&ttft, 0.5))
    }

    /// Requests a second of a replica with a backlog, and the share that misses the objective of further tokens there.
    fn full(&self) -> Result<(f64, f64), MeasureError> {
        let mut random = keyed(0, Stream::Requests, 1);
        let requests: Vec<LlmRequest> = (0..FULL_REQUESTS).map(|_| self.server.load.request(0, &mut random)).collect();
        let mut served = self.replay(1, &requests)?;
        served.sort_by_key(|served| served.last_ps);
        // At both ends the batch is not full.
        let middle = &served[served.len() / 5..served.len() * 4 / 5];
        let (Some(first), Some(last)) = (middle.first(), middle.last()) else { return Ok((0.0, 1.0)) };
        let secs = (last.last_ps - first.last_ps) as f64 / SECOND_PS as f64;
        let late = middle.iter().filter(|served| self.is_tpot_late(served)).count();
        Ok(((middle.len() - 1) as f64 / secs.max(1e-9), late as f64 / middle.len() as f64))
    }

    fn is_tpot_late(&self, served: &ServedTokens) -> bool {
        served.tpot_secs().is_some_and(|secs| secs > self.objectives.tpot_secs)
    }

    /// Shares of requests at `per_sec` requests a second on `count` replicas.
    fn cell(&self, key: u64, count: u32, per_sec: f64, edges: &[f64]) -> Result<TokenCell, MeasureError> {
        let mut random = keyed(0, Stream::Requests, 2 + key);
        let most = REQUESTS.0 + REQUESTS.1 * count;
        let until_ps = (f64::from(most) / per_sec * SECOND_PS as f64) as u64;
        let mut requests = Vec::with_capacity(most as usize * 2);
        self.server.load.extend(&mut requests, per_sec, (0, until_ps), &mut random);
        let served = self.replay(count, &requests)?;
        let served = &served[(served.len() as f64 * WARM) as usize..];
        let all = served.len().max(1) as f64;
        let multiple = |served: &ServedTokens| served.ttft_secs() / self.objectives.ttft_secs;
        let share = |is: &dyn Fn(&ServedTokens) -> bool| served.iter().filter(|one| is(one)).count() as f64 / all;
        let ttft = edges.iter().map(|&edge| share(&|one| multiple(one) > edge)).collect();
        let either = edges.iter().map(|&edge| share(&|one| multiple(one) > edge || self.is_tpot_late(one))).collect();
        Ok(TokenCell { ttft, either, tpot: share(&|one| self.is_tpot_late(one)) })
    }

    /// Times of the answers, in order of arrival.
    fn replay(&self, count: u32, requests: &[LlmRequest]) -> Result<Vec<ServedTokens>, MeasureError> {
        let outcomes = LlmService::new(count, self.limits, &self.server.step)?.replay(requests, &[]);
        let times = |(outcome, request): (LlmOutcome, &LlmRequest)| match outcome {
            LlmOutcome::Served(served) => Ok(served),
            LlmOutcome::TooLong | LlmOutcome::TimedOut => {
                let LlmRequest { input, output, .. } = *request;
                Err(MeasureError::TooLong { input, output, kv_tokens: self.limits.kv_tokens })
            }
        };
        outcomes.into_iter().zip(requests).map(times).collect()
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Value of ascending ones that a share of `1 - share` exceeds at most; 0 where there are none.
fn quantile(values: &[f64], share: f64) -> f64 {
    let at = (share * values.len() as f64).ceil() as usize;
    values.get(at.clamp(1, values.len().max(1)) - 1).copied().unwrap_or(0.0)
}
