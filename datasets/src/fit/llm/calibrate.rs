//! Costs of a step from one run of a server, request by request: those of the replay with the nearest times.
//!
//! The distance is the mean absolute error of the time to the first token over its mean, and that of the time of a
//! further token over its mean. The simplex of Nelder and Mead (Computer Journal 1965) moves over the logarithms of
//! the costs.

use goodput_env::model::serving::llm::{BatchTime, LlmOutcome, LlmService, ReplicaLimits, StepCosts};
use goodput_forecast::nelder_mead::minimise;

use crate::llm::LlmTrace;

/// Replays at most.
const REPLAYS: usize = 3_000;
/// Sizes of the first simplex of each search, one after the other.
const SIMPLEXES: [f64; 3] = [0.4, -0.2, 0.1];
/// Costs that are fitted.
const COSTS: usize = 5;

type Point = [f64; COSTS];

/// The costs near `start` that replay the measured times of `trace` best on `replicas` replicas, and their distance.
/// A cost that is 0 at the start stays 0.
pub fn calibrate(trace: &LlmTrace, replicas: u32, limits: ReplicaLimits, start: &StepCosts) -> (StepCosts, f64) {
    let with = |point: &Point| {
        let [fixed, sequence, context, prompt, pair] = point.map(f64::exp);
        StepCosts {
            fixed_ms: start.fixed_ms * fixed,
            experts_ms: start.experts_ms * fixed,
            expert_share: start.expert_share,
            sequence_ms: start.sequence_ms * sequence,
            context_ms: start.context_ms * context,
            prompt_ms: start.prompt_ms * prompt,
            pair_ms: start.pair_ms * pair,
        }
    };
    let far = |point: &Point| distance(trace, replicas, limits, &with(point)).unwrap_or(f64::INFINITY);
    // A simplex that has become flat moves no more, so the search begins again from its best point with a new one.
    let (mut point, mut least) = ([0.0; COSTS], f64::INFINITY);
    for size in SIMPLEXES {
        (point, least) = minimise(far, point, size, REPLAYS / SIMPLEXES.len());
    }
    (with(&point), least)
}

/// Distance of a replay from the measured times; `None` where the costs or limits are impossible.
pub fn distance(trace: &LlmTrace, replicas: u32, limits: ReplicaLimits, costs: &StepCosts) -> Option<f64> {
    let step = BatchTime::new(costs, limits.tokens).ok()?;
    let outcomes = LlmService::new(replicas, limits, &step).ok()?.replay(&trace.requests, &[]);
    let (mut first, mut each) = ([0.0; 2], [0.0; 2]);
    for ((outcome, measured), request) in outcomes.iter().zip(&trace.measured).zip(&trace.requests) {
        let LlmOutcome::Served(served) = outcome else { return None };
        first[0] += (served.ttft_secs() - measured.ttft_secs).abs();
        first[1] += measured.ttft_secs;
        let Some(tpot) = served.tpot_secs() else { continue };
        let known = (measured.latency_secs - measured.ttft_secs) / f64::from(request.output - 1);
        each[0] += (tpot - known).abs();
        each[1] += known;
    }
    // Answers of one token have no further ones.
    let of_each = if each[1] > 0.0 { each[0] / each[1] } else { 0.0 };
    Some(first[0] / first[1] + of_each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::MeasuredTimes;
    use goodput_env::model::serving::llm::LlmRequest;

    #[test]
    fn costs_that_made_a_run_are_found_from_others() {
        let truth =
            StepCosts { fixed_ms: 12.0, sequence_ms: 0.05, context_ms: 1e-4, prompt_ms: 0.06, ..Default::default() };
        let limits = ReplicaLimits { sequences: 16, tokens: 512, kv_tokens: 1 << 20, block: 16, timeout_ps: u64::MAX };
        let request = |at: u64| LlmRequest {
            arrival_ps: at * 150_000_000_000,
            input: 50 + (at * 977 % 1500) as u32,
            cached: 0,
            output: 10 + (at * 131 % 300) as u32,
        };
        let requests: Vec<LlmRequest> = (0..150).map(request).collect();
        let step = BatchTime::new(&truth, limits.tokens).unwrap();
        let outcomes = LlmService::new(1, limits, &step).unwrap().replay(&requests, &[]);
        let measured = outcomes.iter().map(|outcome| match outcome {
            LlmOutcome::Served(served) => {
                MeasuredTimes { ttft_secs: served.ttft_secs(), latency_secs: served.latency_secs() }
            }
            other => panic!("{other:?}"),
        });
        let trace = LlmTrace { measured: measured.collect(), requests, ..LlmTrace::default() };
        let start = StepCosts { fixed_ms: 8.0, prompt_ms: 0.1, ..truth };
        let before = distance(&trace, 1, limits, &start).unwrap();
        let (found, after) = calibrate(&trace, 1, limits, &start);
        assert!(after < 0.01 && after < before / 20.0, "{before} {after}");
        assert!((found.prompt_ms / truth.prompt_ms - 1.0).abs() < 0.05, "{found:?}");
    }
}
