//! Requests, limits and costs of the tests of language models.

use goodput_env::model::serving::llm::{BatchTime, LlmRequest, ReplicaLimits, StepCosts};
use goodput_env::seed::{Stream, rng};
use rand::RngExt;

/// A millisecond in picoseconds.
pub const MILLI: u64 = 1_000_000_000;

/// Limits of a replica that none of the requests meets.
pub const ROOMY: ReplicaLimits =
    ReplicaLimits { sequences: 64, tokens: 512, kv_tokens: 1 << 20, block: 16, timeout_ps: u64::MAX };

/// Time of a step of a mixture of experts.
pub fn step() -> BatchTime {
    let costs = StepCosts {
        fixed_ms: 8.0,
        experts_ms: 4.0,
        expert_share: 0.05,
        sequence_ms: 0.02,
        context_ms: 8e-5,
        prompt_ms: 0.04,
        pair_ms: 3e-7,
    };
    BatchTime::new(&costs, 2048).unwrap()
}

/// Requests at random times, `gap_ms` apart in the mean. One in three has a part of its prompt in memory, and one in
/// eight asks for one token.
pub fn requests(count: u64, gap_ms: u64, seed: u64) -> Vec<LlmRequest> {
    let mut random = rng(seed, Stream::Workload);
    let mut arrival_ps = 0;
    let mut request = |_| {
        arrival_ps += random.random_range(0..=2 * gap_ms) * MILLI;
        let input = random.random_range(1..1500);
        let cached = if random.random_range(0..3) == 0 { random.random_range(0..input) } else { 0 };
        let output = if random.random_range(0..8) == 0 { 1 } else { random.random_range(1..400) };
        LlmRequest { arrival_ps, input, cached, output }
    };
    (0..count).map(&mut request).collect()
}
