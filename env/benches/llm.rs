//! Cost of a request to a language model: a replica that skips over equal steps against one that plays each of them,
//! and pools that divide prefill and decode.
//! Run with `cargo xtask bench llm`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "clock/mod.rs"]
mod clock;
#[path = "../tests/support/llm_steps.rs"]
mod llm_steps;

use goodput_env::model::serving::llm::{
    BatchTime, KvLink, LlmOutcome, LlmPools, LlmRequest, LlmService, ReplicaLimits, ReplicaPool, StepCosts,
};
use goodput_env::seed::{Stream, rng};
use rand::RngExt;

fn main() {
    let costs = StepCosts {
        fixed_ms: 6.0,
        sequence_ms: 0.01,
        context_ms: 3e-5,
        prompt_ms: 0.02,
        pair_ms: 1e-7,
        ..StepCosts::default()
    };
    let step = BatchTime::new(&costs, 8192).expect("costs of a step");
    let limits = ReplicaLimits { sequences: 256, tokens: 8192, kv_tokens: 500_000, block: 16, timeout_ps: u64::MAX };
    println!("{:>10} {:>14} {:>14} {:>8}", "gap_ms", "requests/s", "by single step", "ratio");
    for gap_ms in [150_u64, 300, 1000] {
        let many = requests(gap_ms);
        let mut service = LlmService::new(1, limits, &step).expect("limits");
        let start = clock::cpu_secs();
        let skipped = service.replay(&many, &[]);
        let fast = clock::cpu_secs() - start;
        let (few, start) = (&many[..2_000], clock::cpu_secs());
        let stepped = llm_steps::replay(limits, &step, few);
        let slow = clock::cpu_secs() - start;
        assert_eq!(skipped[..1000], stepped[..1000], "both replicas serve alike");
        let [fast, slow] = [many.len() as f64 / fast, few.len() as f64 / slow];
        println!("{gap_ms:>10} {fast:>14.0} {slow:>14.0} {:>8.1}", fast / slow);
    }
    println!("{:>10} {:>14}", "pools", "requests/s");
    for (prefill, decode, gap_ms) in [(1, 3, 150), (2, 6, 60), (8, 24, 15)] {
        let many = requests(gap_ms);
        let pool = |count| ReplicaPool { count, limits, step: step.clone() };
        let link = KvLink { bytes_per_token: 327_680, bytes_per_sec: 50_000_000_000 };
        let mut pools = LlmPools::new(&pool(prefill), &pool(decode), link).expect("pools");
        let start = clock::cpu_secs();
        let played = pools.replay(&many, &[]);
        let secs = clock::cpu_secs() - start;
        assert!(played.outcomes.iter().all(|outcome| matches!(outcome, LlmOutcome::Served(_))));
        println!("{:>10} {:>14.0}", format!("{prefill}+{decode}"), many.len() as f64 / secs);
    }
}

/// Requests with this mean time between them.
fn requests(gap_ms: u64) -> Vec<LlmRequest> {
    let mut random = rng(1, Stream::Workload);
    let mut arrival_ps = 0;
    let mut request = |_| {
        arrival_ps += random.random_range(0..=2 * gap_ms) * 1_000_000_000;
        let (input, output) = (random.random_range(100..4000), random.random_range(20..800));
        LlmRequest { arrival_ps, input, cached: 0, output }
    };
    (0..200_000).map(&mut request).collect()
}
